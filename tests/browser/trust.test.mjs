// What can be taken along of a chart, and what a chart is drawn on, in the built page (dist/), in headless Chromium:
// `node --test tests/browser/trust.test.mjs`.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { id, pageTests, raceOver, said } from "./pages.mjs";

const test = pageTests({ timeout: 180_000 });
const QUERY = "?backend=modelled&requests=12";
const clipboard = { permissions: ["clipboard-read", "clipboard-write"] };

async function sweepOver(page) {
  await id(page, "sweep-run").click();
  await said(page, "sweep-verdict", "The sweep is over");
}
async function download(page, name) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).click()]);
  return { name: file.suggestedFilename(), bytes: await readFile(await file.path()) };
}
const copied = async (page, name) => {
  await page.getByRole("button", { name, exact: true }).click();
  return page.evaluate(() => navigator.clipboard.readText());
};
/** A canvas's pixels: its size, and how many are not transparent. */
const ink = (page, selector) => page.locator(`${selector} canvas`).evaluate((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return { width: canvas.width, height: canvas.height, ink: data.filter((alpha, at) => at % 4 === 3 && alpha > 0).length };
});

/** All that can be taken along of a chart, and that it is the same. */
async function taken(page, figure, name, head) {
  await page.getByRole("button", { name: `Take it along: ${name}`, exact: true }).click();
  const file = `warmroute-${figure.slice("figure-".length)}`;

  const png = await download(page, `Download ${name} as PNG`);
  assert.equal(png.name, `${file}.png`);
  assert.equal(png.bytes.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n");
  assert.deepEqual([png.bytes.readUInt32BE(16), png.bytes.readUInt32BE(20)], [1440, 800]);

  const svg = await download(page, `Download ${name} as SVG`);
  assert.equal(svg.name, `${file}.svg`);
  const seen = await page.evaluate((text) => {
    const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    return { root: root.nodeName, kind: root.namespaceURI, title: root.querySelector("title")?.textContent, lines: root.querySelectorAll("path.line").length };
  }, svg.bytes.toString().replace(/<style>[^]*?<\/style>/, "")); // The file's own style sheet is nothing for this page's policy.
  assert.match(svg.bytes.toString(), /<style>/);
  assert.deepEqual({ ...seen, lines: seen.lines > 3 }, { root: "svg", kind: "http://www.w3.org/2000/svg", title: name, lines: true });

  const csv = await download(page, `Download ${name} as CSV`);
  const json = await download(page, `Download ${name} as JSON`);
  assert.deepEqual([csv.name, json.name], [`${file}.csv`, `${file}.json`]);
  const [heads, ...rows] = csv.bytes.toString().trimEnd().split("\n");
  const { figure: called, points } = JSON.parse(json.bytes.toString());
  assert.equal(heads, head);
  assert.equal(called, name);
  assert.deepEqual(rows, points.map((point) => Object.values(point).map((value) => value ?? "").join(",")));
  assert.ok(points.length > 5 && points.some((point) => point.y > 0), `${points.length} points`);

  const table = page.getByRole("region", { name: `Table of ${name}`, exact: true });
  const toggle = page.getByRole("button", { name: `Table: ${name}`, exact: true });
  assert.equal(await table.count(), 0);
  await toggle.focus();
  await page.keyboard.press("Enter");
  const count = await table.locator("tbody tr").count();
  assert.ok(count > 1 && count <= 200, `${count} rows`);
  assert.equal(await table.getAttribute("tabindex"), "0");
  assert.equal(await toggle.getAttribute("aria-expanded"), "true");
  await toggle.click();
  assert.equal(await table.count(), 0);
  for (const button of await page.locator(`#${figure} .tools button`).all()) {
    const { width, height } = await button.boundingBox();
    assert.ok(width >= 24 && height >= 24, `${await button.innerText()}: ${width} × ${height}`);
  }
  return points;
}

test("a chart of the race is taken along, and its link brings the same numbers back", QUERY, async (page) => {
  await raceOver(page);
  const points = await taken(page, "figure-reuse", "Reuse", "series,simulated time (s),prompt tokens found cached (fraction)");
  assert.equal(await copied(page, "Copy the command for Reuse"), await id(page, "command").textContent());
  const link = await copied(page, "Copy the link to Reuse");
  assert.match(link, /\?requests=12&backend=modelled#figure-reuse$/);

  const other = await page.context().newPage();
  await other.goto(link);
  await raceOver(other);
  await other.waitForFunction(() => {
    const { top } = document.querySelector("#figure-reuse").getBoundingClientRect();
    return top > -1 && top < innerHeight;
  });
  await other.getByRole("button", { name: "Take it along: Reuse", exact: true }).click();
  const again = await download(other, "Download Reuse as JSON");
  assert.deepEqual(JSON.parse(again.bytes.toString()).points, points);
}, clipboard);

test("a chart of a sweep is taken along", `${QUERY}&sweep_over=rate=2:6:2&sweep_seeds=3`, async (page) => {
  await sweepOver(page);
  const name = "good requests over arrival rate";
  const points = await taken(page, "figure-sweep", name, "series,Arrival rate (requests/s),good requests (fraction),10th percentile,90th percentile");
  assert.equal(points.length, 9);
  assert.equal(await copied(page, `Copy the command for ${name}`), await id(page, "sweep-command").textContent());
  assert.match(await copied(page, `Copy the link to ${name}`), /sweep_over=rate=2:6:2&sweep_seeds=3#figure-sweep$/);
}, clipboard);

for (const deviceScaleFactor of [1, 2]) {
  test(`a live chart is drawn on a canvas, sharp at a density of ${deviceScaleFactor}; on paper it is SVG`, QUERY, async (page) => {
    await raceOver(page);
    const figure = "#figure-imbalance";
    const box = await page.locator(`${figure} .plot-surface`).boundingBox();
    const drawn = await ink(page, figure);
    assert.ok(Math.abs(drawn.width - box.width * deviceScaleFactor) <= deviceScaleFactor, `${drawn.width} for ${box.width}`);
    assert.ok(drawn.ink > 2000, `${drawn.ink} pixels`);
    const [canvas, still] = ["canvas", "g.still"].map((what) => page.locator(`${figure} ${what}`));
    assert.deepEqual([await canvas.isVisible(), await still.isVisible()], [true, false]);
    await page.waitForTimeout(700);
    await page.emulateMedia({ media: "print" });
    assert.deepEqual([await canvas.isVisible(), await still.isVisible()], [false, true]);
    assert.ok(await still.locator("path.line.prefix-affinity").count() > 0);
    assert.equal(await page.locator(`${figure} .tools`).isVisible(), false);
  }, { deviceScaleFactor });
}

test("a chart follows the reader's theme, and what is printed at once is all of it", QUERY, async (page) => {
  await raceOver(page);
  const text = () => page.locator("#figure-goodput canvas").evaluate((canvas) => canvas.toDataURL());
  const light = await text();
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForFunction((light) => document.querySelector("#figure-goodput canvas").toDataURL() !== light, light);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.ok(await page.locator("#figure-goodput g.still path.line.prefix-affinity").count() > 0);
  assert.equal(await page.locator("figure.plot [style]").count(), 0);
});
