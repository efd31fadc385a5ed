// The chapter's figures in the built page (dist/), in headless Chromium: `node --test tests/browser/chapter.test.mjs`.
import assert from "node:assert/strict";
import { id, pageTests } from "./pages.mjs";

const test = pageTests();
/** The race computes nothing: figures are what is looked at. */
const chapterTest = (name, run, options) => test(name, "?backend=modelled", run, options);

const text = (page, name) => id(page, name).innerText();
const slider = (page, section, label) => page.locator(`#${section}`).getByRole("slider", { name: label });
/** Moves a slider by the keyboard alone. */
const press = async (locator, key, times = 1) => {
  await locator.focus();
  for (let i = 0; i < times; i += 1) await locator.press(key);
};

chapterTest("every section has its heading and its figure, and takeaways lead to them", async (page) => {
  for (const section of ["problem", "scatter", "loads", "affinity", "blocks", "race", "reading", "hot", "worth", "costs", "cold-start", "takeaways"]) {
    assert.equal(await page.locator(`section#${section} h2`).count(), 1, section);
  }
  const links = await page.locator("#takeaways a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
  assert.equal(links.length, 6);
  for (const link of links) assert.equal(await page.locator(link).count(), 1, link);
});

chapterTest("requests that are alike are the same work; more spread is more uneven", async (page) => {
  const spread = slider(page, "problem", "How far the lengths spread");
  await press(spread, "Home");
  assert.match(await text(page, "problem-figure"), /takes 1\.0 times as long as the cheapest/);
  await press(spread, "End");
  const [, factor] = (await text(page, "problem-figure")).match(/takes (\d+) times as long/);
  assert.ok(Number(factor) > 50, factor);
});

chapterTest("round-robin computes every prefix on every replica, in the end", async (page) => {
  assert.match(await text(page, "scatter-figure"), /18 of 24 requests/);
  await press(slider(page, "scatter", "Requests"), "End");
  assert.match(await text(page, "scatter-figure"), /24 of 240 requests/);
  await press(slider(page, "scatter", "Replicas"), "Home");
  assert.match(await text(page, "scatter-figure"), /6 of 240 requests/);
});

chapterTest("connections and tokens are counted as the policies count them", async (page) => {
  assert.match(await text(page, "pick-least-requests"), /Replica 0 had the fewest requests in flight: 2 \/ 3 \/ 4/);
  assert.match(await text(page, "pick-least-tokens"), /Replica 1 had the fewest outstanding tokens: 8,400 \/ 450 \/ 4,650/);
  for (let i = 0; i < 2; i += 1) await page.getByRole("button", { name: "Give replica 1 a long request" }).click();
  assert.match(await text(page, "pick-least-tokens"), /Replica 2 had the fewest outstanding tokens: 8,400 \/ 8,850 \/ 4,650/);
  for (let i = 0; i < 2; i += 1) await page.getByRole("button", { name: "finish one request of replica 0" }).click();
  assert.match(await text(page, "pick-least-tokens"), /Replica 0/);
});

chapterTest("a prompt's beginning decides, until the guard fires", async (page) => {
  const before = await text(page, "affinity-why");
  const field = page.locator("#affinity-text");
  await field.fill(`${await field.inputValue()} And more.`);
  assert.equal(await text(page, "affinity-why"), before, "what follows the prefix changes nothing");
  await press(slider(page, "affinity", "Outstanding tokens of that replica"), "End");
  assert.match(await text(page, "affinity-why"), /^The guard fired/);
  await page.locator("#affinity").getByRole("checkbox").uncheck();
  assert.match(await text(page, "affinity-why"), /no guard/);
  await field.fill("ü€");
  assert.match(await text(page, "affinity-why"), /hashes to replica \d/);
});

chapterTest("a block is found by what it holds and all before it", async (page) => {
  assert.match(await text(page, "blocks-said"), /^4 of 6 blocks are found/);
  await page.getByRole("button", { name: "another first letter" }).click();
  assert.match(await text(page, "blocks-said"), /^0 of 6 blocks are found/);
  await page.locator("#blocks-second").fill("");
  assert.match(await text(page, "blocks-said"), /^0 of 0 blocks are found/);
});

chapterTest("a bet is settled by the race", async (page) => {
  await page.locator('input[name=bet-fastest][value="prefix-affinity"]').check();
  await page.locator('input[name=bet-uneven][value="least-tokens"]').check();
  await page.waitForFunction(() => /Your bet holds: prefix-affinity with a median TTFT of/.test(
    document.querySelector("[data-testid=bet-fastest]").textContent), null, { timeout: 60_000 });
  assert.match(await text(page, "bet-uneven"), /You bet on least-tokens with an imbalance of 1\.00\. It is prefix-affinity with an imbalance of 1\.50/);
  await id(page, "tenants").waitFor();
  assert.equal(await id(page, "tenants").locator("tbody tr").count(), 6);
});

chapterTest("reading the result: one tenant, and a processor for each", async (page) => {
  await press(slider(page, "reading", "Tenants"), "Home");
  const reuse = async (policy) => Number((await id(page, `reading-${policy}`).locator("td").nth(1).innerText()).replace(" %", ""));
  await press(slider(page, "reading", "Requests"), "End");
  assert.ok(Math.abs(await reuse("round-robin") - await reuse("prefix-affinity")) < 3, "with one tenant all find it");
  const before = await id(page, "reading-prefix-affinity").innerText();
  await page.getByRole("button", { name: "a processor for each" }).click();
  assert.notEqual(await id(page, "reading-prefix-affinity").innerText(), before);
});

chapterTest("the map fills when it is looked at, and a cell moves the sliders", async (page) => {
  const cells = id(page, "hot-map").locator("td button");
  assert.equal(await cells.count(), 42);
  assert.equal(await cells.first().innerText(), "…", "nothing is computed before");
  await page.locator("#hot").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => [...document.querySelectorAll("[data-testid=hot-map] td button")]
    .every((cell) => cell.textContent !== "…"), null, { timeout: 60_000 });
  await cells.last().click();
  assert.match(await text(page, "hot-said"), /95 %[^]*no guard[^]*gets 288 of 300 requests/);
  const at = (guard, share) => cells.nth(guard * 6 + share).innerText();
  assert.equal(await at(5, 4), await at(6, 4), "a guard of four on four replicas is none");
});

chapterTest("twenty seeds are tried beside the race's one", async (page) => {
  await page.locator("#seeds").scrollIntoViewIfNeeded();
  await page.locator('#seeds .strips[data-done="20"]').waitFor({ timeout: 60_000 });
  assert.equal(await page.locator("#seeds circle").count() >= 3 * 3 * 20, true);
});

chapterTest("a replica goes, and nearly every prefix has another home", async (page) => {
  const [, lost, moved] = (await text(page, "costs-said")).match(/It had\s+(\d+)\s+of them, and\s+(\d+)\s+have another home/);
  assert.ok(Number(moved) > 2 * Number(lost), `${lost} ${moved}`);
});

chapterTest("nothing sticks out of any section at 320 px", async (page) => {
  const wide = await page.evaluate(() => [...document.querySelectorAll("section[id]")]
    .filter((section) => section.scrollWidth > section.clientWidth + 1).map((section) => section.id));
  assert.deepEqual(wide, []);
}, { viewport: { width: 320, height: 700 } });
