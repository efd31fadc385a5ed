// The built page (dist/), in headless Chromium, from a sub-path: `node --test tests/browser/page.test.mjs`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { id, pageTests, raceOver } from "./pages.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const test = pageTests({ commandLine: true });
const pageTest = (name, run, { query = "", ...options } = {}) => test(name, query, run, options);

const cells = (page, policy) => id(page, `row-${policy}`).locator("td").evaluateAll(
  (all) => all.map((cell) => [...cell.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join("").trim()));
/** What the command line writes for the same parameters. */
const native = (...flags) => execFileSync(
  // By cargo, so that it is never an older build's answer.
  "cargo", ["run", "--quiet", "--release", "--locked", "--bin", "warmroute", "--", "run", "--json", ...flags],
  { cwd: root, encoding: "utf8", maxBuffer: 1 << 28 });
const downloaded = async (page) => {
  const [download] = await Promise.all([page.waitForEvent("download"), id(page, "download").click()]);
  return readFile(await download.path(), "utf8");
};

pageTest("the worker's files are named after their content", async (page) => {
  const name = await page.getAttribute("meta[name=worker]", "content");
  assert.match(name, /^worker-[0-9a-f]{16}\.js$/);
});

pageTest("the race ends, and the table has the command line's figures", async (page) => {
  await raceOver(page);
  const reports = JSON.parse(native());
  assert.equal(reports.length, 3);
  for (const report of reports) {
    const row = await cells(page, report.policy);
    assert.equal(row[0], report.ttft.p50.toFixed(4));
    assert.equal(row[3], report.output_tokens_per_second.toFixed(1));
    assert.equal(row[6], `${(100 * report.reuse).toFixed(1)} %`);
    assert.equal(row[8], report.assignments.join(" "));
  }
  assert.equal(await id(page, "row-prefix-affinity").locator("td.best").count() > 0, true, "a winner is marked");
});

pageTest("the default race says what it holds in memory, and takes less than 160 MB in all", async (page) => {
  await raceOver(page);
  const said = await id(page, "status").allTextContents();
  assert.equal(said.length, 3);
  const mib = said.map((text) => {
    const [, all, kv, weights] = text.match(/; ([\d.]+) MiB of memory: ([\d.]+) MiB of keys and values, ([\d.]+) MiB of weights/);
    assert.ok(Number(kv) > 0 && Number(weights) > 5 && Number(all) > Number(kv) + Number(weights), text);
    return Number(all);
  });
  assert.ok(mib.reduce((sum, all) => sum + all) * 1.048576 < 160, `${mib} MiB`);
});

for (const [query, flags] of [
  ["", []],
  ["?rate=20&replicas=3&seed=5&max_imbalance=1.5", ["--rate", "20", "--replicas", "3", "--seed", "5", "--max-imbalance", "1.5"]],
  ["?requests=40&tenants=9&skew=1.1&devices=separate&cost=tinygpt-wasm",
    ["--requests", "40", "--tenants", "9", "--skew", "1.1", "--devices", "separate", "--cost", "tinygpt-wasm"]],
]) {
  pageTest(`the JSON is the command line's, byte for byte: ${query || "defaults"}`, async (page) => {
    await raceOver(page);
    assert.equal(await downloaded(page), native(...flags));
  }, { query });
}

pageTest("a control changes the race, the address and the table; reset brings the defaults", async (page) => {
  await raceOver(page);
  const before = await cells(page, "round-robin");
  await id(page, "p-replicas").fill("2");
  await page.waitForFunction(() => location.search === "?replicas=2");
  await page.waitForFunction(() => document.querySelector("[data-testid=verdict]").textContent === "");
  await raceOver(page);
  const two = await cells(page, "round-robin");
  assert.notDeepEqual(two, before);
  assert.equal(two[8], "12 12");
  assert.match(await id(page, "command").textContent(), /^warmroute run --replicas 2$/);
  await id(page, "reset").click();
  await page.waitForFunction(() => location.search === "");
  await raceOver(page);
  assert.deepEqual(await cells(page, "round-robin"), before);
});

pageTest("a value out of range is refused with the reason beside it", async (page) => {
  const input = id(page, "p-replicas");
  await input.fill("9999");
  const problem = id(page, "p-replicas-problem");
  await problem.waitFor();
  assert.match(await problem.textContent(), /9999.*from 1 to 1024/);
  assert.equal(await input.getAttribute("aria-invalid"), "true");
  assert.ok((await input.getAttribute("aria-describedby")).includes("p-replicas-problem"));
  assert.equal(await input.inputValue(), "9999", "the reader's text stays");
  assert.equal(new URL(page.url()).search, "", "the last good value stays in force");
  await input.fill("3");
  await problem.waitFor({ state: "detached" });
});

pageTest("an address brings back what it was made from, and says what it did not understand", async (page) => {
  await id(page, "notices").waitFor();
  assert.match(await id(page, "notices").textContent(), /tenant.*did you mean `tenants`/);
  assert.equal(await id(page, "p-rate").inputValue(), "12.5");
  assert.equal(await id(page, "p-max_imbalance").inputValue(), "inf");
  await page.waitForFunction(() => location.search === "?rate=12.5&max_imbalance=inf");
  await id(page, "dismiss").click();
  await id(page, "notices").waitFor({ state: "detached" });
  await page.reload();
  // What was prerendered has the defaults until the program is there.
  await page.waitForFunction(() => document.querySelector("[data-testid=p-rate]").value === "12.5");
  assert.equal(await id(page, "notices").count(), 0);
}, { query: "?rate=12.5&tenant=3&max_imbalance=inf" });

pageTest("a worker that dies says so, the others go on, and it can be started again", async (page) => {
  const lane = id(page, "lane-least-tokens");
  await lane.getByText(/computing: \d+ of/).waitFor({ timeout: 30_000 });
  await page.evaluate(() => window.__warmrouteKillWorker(1));
  await lane.getByText(/This worker died/).waitFor({ timeout: 30_000 });
  for (const other of ["round-robin", "prefix-affinity"]) {
    await id(page, `lane-${other}`).getByText(/computed in/).waitFor({ timeout: 90_000 });
  }
  await lane.getByTestId("revive").click();
  await lane.getByText(/computed in/).waitFor({ timeout: 90_000 });
  await raceOver(page);
}, { query: "?requests=120" });

pageTest("after all workers died a restart brings new ones", async (page) => {
  await id(page, "lane-prefix-affinity").getByText(/computing: \d+ of/).waitFor({ timeout: 30_000 });
  await page.evaluate(() => [0, 1, 2].forEach((lane) => window.__warmrouteKillWorker(lane)));
  await id(page, "restart").click();
  await raceOver(page);
}, { query: "?requests=60" });

pageTest("a price beyond the clock is said, and the page stands", async (page) => {
  await id(page, "lane-round-robin").getByText(/This cannot be run: .*213 days/).waitFor({ timeout: 30_000 });
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
  await id(page, "p-cost").fill("chapter-cpu");
  await raceOver(page);
}, { query: `?backend=modelled&cost=${Array(6).fill("18446744073709551615").join(",")}` });

pageTest("the cold start is part of the address", async (page) => {
  assert.match(await page.locator("main").innerText(), /8\.03 × 10⁹ parameters × 0\.5 byte ÷/);
  await raceOver(page);
  assert.equal(new URL(page.url()).search, "?backend=modelled&cold_precision=int4");
}, { query: "?backend=modelled&cold_precision=int4" });

pageTest("what ends can be cancelled and run again", async (page) => {
  await id(page, "lane-round-robin").getByText(/computing: /).waitFor({ timeout: 30_000 });
  await id(page, "cancel").click();
  await id(page, "lane-round-robin").getByText("cancelled").waitFor();
  await id(page, "restart").click();
  await id(page, "lane-round-robin").getByText(/computing: /).waitFor({ timeout: 30_000 });
}, { query: "?requests=400" });

pageTest("a request is explained with the keyboard alone, in every column", async (page) => {
  await raceOver(page);
  const chips = id(page, "lane-round-robin").locator(".chip[tabindex='0']");
  assert.equal(await chips.count(), 1, "one stop for the tab key");
  await chips.focus();
  await page.keyboard.press("Home");
  await page.waitForFunction(() => document.activeElement?.dataset.request === "0");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.activeElement?.dataset.request === "1");
  for (const [policy, words] of [
    ["round-robin", /It was replica 1's turn/], ["least-tokens", /outstanding tokens/], ["prefix-affinity", /hashes to replica/],
  ]) {
    const why = id(page, `lane-${policy}`).getByTestId("why");
    assert.equal(await why.getAttribute("data-request"), "1");
    assert.match(await why.textContent(), words);
  }
});

pageTest("the replay moves by itself and stops at the end", async (page) => {
  await id(page, "race").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => Number(document.querySelector("[data-testid=time]").value) > 50, null, { timeout: 60_000 });
  await id(page, "play").click();
  const paused = await id(page, "time").inputValue();
  await page.waitForTimeout(300);
  assert.equal(await id(page, "time").inputValue(), paused);
  await id(page, "skip").click();
  await raceOver(page);
  const frames = await page.evaluate(() => new Promise((done) => {
    let asked = 0;
    const real = window.requestAnimationFrame;
    window.requestAnimationFrame = (f) => { asked += 1; return real.call(window, f); };
    setTimeout(() => done(asked), 500);
  }));
  assert.equal(frames, 0, "no frame is asked for once all is shown");
}, { reducedMotion: "no-preference" });

for (const [name, options] of [
  ["320 px", { viewport: { width: 320, height: 700 } }],
  ["dark, at two device pixels", { colorScheme: "dark", deviceScaleFactor: 2 }],
]) {
  pageTest(`nothing sticks out: ${name}`, async (page) => {
    await raceOver(page);
    const [content, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(content <= window_, `${content} > ${window_}`);
  }, options);
}

pageTest("this machine can be measured, and its prices used", async (page) => {
  await raceOver(page);
  await id(page, "measure").click();
  await id(page, "use-prices").waitFor({ timeout: 90_000 });
  await id(page, "use-prices").click();
  await page.waitForFunction(() => /cost=\d+(,\d+){5}/.test(location.search));
  await raceOver(page);
});
