// Measures what a step of TinyGPT costs in headless Chromium, by the built page's own "Measure this machine":
//   node scripts/measure_price.mjs [ROUNDS]
// Prints each round's six constants (picoseconds: prefill base, per token, per pair; decode likewise) and their
// medians, which is how the preset tinygpt-wasm was written down. Run it while nothing else runs.
import { launch, open, serve } from "../tests/browser/harness.mjs";

const rounds = Number(process.argv[2] ?? 5);
const server = await serve();
const browser = await launch();
try {
  const found = [];
  for (let round = 0; round < rounds; round++) {
    // A race of one request, so that its workers are soon done.
    const { page } = await open(browser, `${server.url}?requests=1&replicas=1`, { reducedMotion: "reduce" });
    await page.waitForTimeout(4000);
    await page.getByTestId("measure").click();
    await page.getByTestId("use-prices").click({ timeout: 120_000 });
    await page.waitForFunction(() => location.search.includes("cost="));
    const cost = new URL(page.url()).searchParams.get("cost");
    console.log(cost, "|", await page.getByTestId("bench").innerText());
    found.push(cost.split(",").map(Number));
    await page.context().close();
  }
  const median = (i) => found.map((cost) => cost[i]).sort((a, b) => a - b)[Math.floor(rounds / 2)];
  console.log("median", [0, 1, 2, 3, 4, 5].map(median).join(","));
} finally {
  await browser.close();
  await server.close();
}
