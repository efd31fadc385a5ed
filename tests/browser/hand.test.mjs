// Time in the reader's hands, in the built page (dist/), in headless Chromium: `node --test tests/browser/hand.test.mjs`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { id, pageTests, raceOver } from "./pages.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const test = pageTests({ commandLine: true });
const handTest = (name, run, { query = "?backend=modelled", ...options } = {}) => test(name, query, run, options);

const text = (page, name) => id(page, name).innerText();
/** Goes to a thousandth of the race, as a pointer on the scale does. */
const scrub = (page, part) => page.evaluate((value) => {
  const scale = document.querySelector("[data-testid=time]");
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(scale, String(value));
  scale.dispatchEvent(new InputEvent("input", { bubbles: true }));
}, part);
/** Everything that is drawn of the lanes. */
const picture = (page) => page.locator(".lanes").first().innerHTML();
const frames = (page, n = 2) => page.evaluate((left) => new Promise((done) => {
  const next = () => { left -= 1; if (left < 0) done(); else requestAnimationFrame(next); };
  next();
}), n);

handTest("events are stepped through by keyboard alone, and each says what it was", async (page) => {
  await raceOver(page);
  const scale = id(page, "time");
  await scale.focus();
  await page.keyboard.press("Home");
  assert.equal(await scale.inputValue(), "0");
  assert.equal(await text(page, "happened"), "Nothing has happened yet.");
  const lines = [];
  for (let i = 0; i < 5; i += 1) {
    const before = await text(page, "happened");
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction((old) => document.querySelector("[data-testid=happened]").innerText !== old, before);
    lines.push(await text(page, "happened"));
  }
  assert.match(lines[0], /request 0 arrives \(tenant \w, \d+ prompt tokens\): round-robin to replica 0, least-tokens to replica 0, prefix-affinity to replica \d/);
  assert.match(lines[0], /round-robin: replica 0 begins a step of .* \(request 0 is admitted with 0 tokens cached/);
  for (let i = 3; i >= 0; i -= 1) {
    await page.keyboard.press(i % 2 ? "," : "ArrowLeft");
    await page.waitForFunction((line) => document.querySelector("[data-testid=happened]").innerText === line, lines[i]);
  }
  await page.keyboard.press(".");
  await page.waitForFunction((line) => document.querySelector("[data-testid=happened]").innerText === line, lines[1]);
  // A screen reader is told where the reader rests, and only there.
  await page.waitForFunction((line) => document.querySelector("[data-testid=verdict]").textContent === line, lines[1]);
  await id(page, "step-back").click();
  await page.waitForFunction((line) => document.querySelector("[data-testid=happened]").innerText === line, lines[0]);
  await scale.focus();
  await page.keyboard.press("End");
  await raceOver(page);
  assert.equal(await id(page, "step-forward").isDisabled(), true);
});

handTest("scrubbing back and forth gives the same picture", async (page) => {
  await raceOver(page);
  const seen = new Map();
  for (const part of [800, 200, 500, 990, 20, 500, 800, 990, 200, 20]) {
    await scrub(page, part);
    await frames(page);
    const now = await picture(page);
    assert.equal(seen.get(part) ?? now, now, `at ${part}`);
    seen.set(part, now);
  }
  assert.equal(new Set(seen.values()).size, 5);
});

handTest("a request is marked in every lane and its life is told; Escape lets it go", async (page) => {
  await raceOver(page);
  await scrub(page, 600);
  const chip = id(page, "lane-least-tokens").locator(".row.done .chip").first();
  const request = await chip.getAttribute("data-request");
  await chip.hover();
  await page.waitForFunction((id) => document.querySelectorAll(`.chip[data-request='${id}'][aria-pressed=true]`).length === 3, request);
  assert.equal(await page.locator(".chip[aria-pressed=true]").count(), 3);
  const lives = id(page, "lives");
  assert.equal(await lives.getAttribute("data-request"), request);
  for (const policy of ["round-robin", "least-tokens", "prefix-affinity"]) {
    const cells = await id(page, `life-${policy}`).locator("td").allInnerTexts();
    assert.equal(cells.length, 7);
    assert.match(cells[0], /^replica \d$/);
    assert.match(cells[2], /^\d+ of \d+$/);
    // The chip of this lane is on the replica that the table says.
    const where = page.locator(`[data-testid=lane-${policy}] .replica`, { has: page.locator(`.chip[data-request='${request}']`) });
    assert.equal(await where.getAttribute("aria-label"), cells[0]);
  }
  const rows = id(page, "decision-least-tokens").locator("tbody tr");
  assert.equal(await rows.count(), 4, "every candidate");
  assert.equal(await id(page, "decision-least-tokens").locator("tr.chosen").count(), 1);
  assert.ok(await lives.locator(".lifeline rect").count() >= 3);
  await chip.focus();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelectorAll(".chip[aria-pressed=true]").length === 0);
  assert.equal(await lives.getAttribute("data-request"), null);
  assert.equal(await page.locator("#race [style]").count(), 0, "nothing needs an inline style but what a canvas sets");
});

handTest("a tap does what a pointer does", async (page) => {
  await raceOver(page);
  await id(page, "lane-round-robin").locator(".chip").nth(2).tap();
  await page.waitForFunction(() => document.querySelectorAll(".chip[aria-pressed=true]").length === 3);
}, { hasTouch: true, viewport: { width: 390, height: 800 } });

/** Asks for a fork of a lane at a thousandth of the race. */
const fork = async (page, { at = 350, lane = "0", key = "policy", value }) => {
  await scrub(page, at);
  await id(page, "fork-lane").selectOption(lane);
  await id(page, "fork-key").selectOption(key);
  if (value !== undefined) {
    const control = id(page, "fork-value");
    if (key === "policy") await control.selectOption(value); else await control.fill(value);
  }
  await id(page, "fork-here").click();
};
const bothKnown = (page) => id(page, "both").waitFor({ timeout: 60_000 });

handTest("a fork shows both futures, which are one run up to its moment", async (page) => {
  await raceOver(page);
  const row = (policy) => id(page, `row-${policy}`).locator("td").evaluateAll((all) => all.map((td) => td.firstChild.data.trim()));
  const roundRobin = await row("round-robin");
  await fork(page, { value: "prefix-affinity" });
  await bothKnown(page);
  assert.match(await text(page, "agreement"), /^Up to [\d.]+ (s|ms) both are one run: all [\d,]+ events are the same\.$/);
  const cells = (key) => id(page, `both-${key}`).locator("td").allInnerTexts();
  assert.equal((await cells("ttft_p50"))[0], roundRobin[0], "as it was is the table's row");
  const [before, after, difference] = await cells("reuse");
  assert.equal(before, roundRobin[6]);
  assert.ok(parseFloat(after) > parseFloat(before) && /^\+[\d.]+ %\s*better$/.test(difference), difference);
  // The command line beside it comes to the same.
  const [, ...flags] = (await text(page, "fork-command")).split(" ");
  const native = JSON.parse(execFileSync(
    "cargo", ["run", "--quiet", "--release", "--locked", "--bin", "warmroute", "--", ...flags, "--json"], { cwd: root, encoding: "utf8" }));
  assert.equal(`${(100 * native.fork.reuse).toFixed(1)} %`, after);
  assert.deepEqual((await cells("ttft_p95")).slice(0, 2), [native.original, native.fork].map((one) => one.ttft.p95.toFixed(4)));
  // The fork's lane is its lane at the moment, and goes on by itself.
  const drawn = (lane) => page.locator(`[data-testid=lane-${lane}] .replicas`).evaluate((all) => all.innerText);
  assert.equal(await drawn("fork"), await drawn("round-robin"));
  await scrub(page, 800);
  await frames(page);
  assert.notEqual(await drawn("fork"), await drawn("round-robin"));
  // The chosen request is marked in the fork too.
  await id(page, "lane-fork").locator(".chip").first().hover();
  await page.waitForFunction(() => document.querySelectorAll(".chip[aria-pressed=true]").length === 4);
  await id(page, "life-the fork").waitFor();
  await id(page, "fork-drop").click();
  await id(page, "futures").waitFor({ state: "detached" });
  assert.equal(await id(page, "lane-fork").count(), 0);
});

handTest("replicas can join and leave; what cannot be is said beside the field", async (page) => {
  await raceOver(page);
  await fork(page, { at: 300, lane: "1", key: "replicas", value: "0" });
  assert.match(await text(page, "fork-problem"), /found `0`; it is a whole number from 1 to 1024/);
  await fork(page, { at: 300, lane: "1", key: "replicas", value: "6" });
  await bothKnown(page);
  assert.equal(await id(page, "lane-fork").locator(".replica").count(), 6);
  assert.match(await text(page, "agreement"), /are the same/);
  await fork(page, { at: 500, lane: "2", key: "max_imbalance", value: "1" });
  await page.waitForFunction(() => /race of prefix-affinity/.test(document.querySelector("[data-testid=futures]")?.innerText));
  await bothKnown(page);
  assert.match(await text(page, "agreement"), /are the same/);
});

handTest("a fork of tensors is the scheduler's, and agrees with them up to its moment", async (page) => {
  await raceOver(page);
  await fork(page, { at: 400, value: "least-tokens" });
  await bothKnown(page);
  assert.match(await text(page, "agreement"), /are the same/);
}, { query: "" });

handTest("a stop-watch's run cannot be forked, and why is said", async (page) => {
  assert.match(await text(page, "fork-obstacle"), /stop-watch/);
}, { query: "?clock=measured&requests=4" });

handTest("a fork whose worker is killed is run again by another", async (page) => {
  await raceOver(page);
  await fork(page, { at: 300, value: "prefix-affinity" });
  // Hired two tenths of a second after it was asked for; a run of this length takes a while.
  await page.waitForTimeout(400);
  await page.evaluate(() => window.__warmrouteKillWorker(3));
  await bothKnown(page);
  assert.match(await text(page, "agreement"), /are the same/);
}, { query: "?backend=modelled&requests=400&rate=20" });

handTest("scrubbing the default race keeps the page's own thread free", async (page) => {
  await raceOver(page);
  const run = () => page.evaluate(() => new Promise((done) => {
    const long = [];
    const observer = new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration)));
    observer.observe({ entryTypes: ["longtask"] });
    const scale = document.querySelector("[data-testid=time]");
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
    const began = performance.now();
    let n = 0;
    const next = () => {
      if (n === 180) {
        const rate = (180 / (performance.now() - began)) * 1000;
        setTimeout(() => { observer.disconnect(); done({ long, rate }); }, 300);
        return;
      }
      // Forth, back, and to and fro.
      const part = n < 60 ? n * 16 : n < 120 ? (120 - n) * 16 : (n * 397) % 1000;
      set.call(scale, String(part));
      scale.dispatchEvent(new InputEvent("input", { bubbles: true }));
      n += 1;
      requestAnimationFrame(next);
    };
    next();
  }));
  await id(page, "race").scrollIntoViewIfNeeded();
  await run();
  // The thread's own time, since the machine may be busy with something else.
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const spent = async () => (await cdp.send("Performance.getMetrics")).metrics.find((metric) => metric.name === "TaskDuration").value;
  const before = await spent();
  const { long, rate } = await run();
  const each = ((await spent()) - before) * 1000 / 180;
  console.log(`# scrubbing: ${long.length} tasks over 50 ms${long.length ? ` (longest ${Math.max(...long).toFixed(0)} ms)` : ""} `
    + `in 180 moments, ${rate.toFixed(1)} moments a second, ${each.toFixed(1)} ms of the thread each`);
  // A frame has 16.7 ms; what is structurally slow is far beyond that, on any machine.
  assert.ok(each < 40, `${each.toFixed(1)} ms a moment`);
});

handTest("an address with a bad, a doubled and a long value keeps the rest, and names them", async (page) => {
  const said = await text(page, "notices");
  assert.match(said, /user_min: it is left out, as it does not go with the rest/);
  assert.match(said, /rate: it is there more than once; the last, `5`, counts/);
  assert.match(said, /seed: found `9{48}…`/);
  assert.equal(await id(page, "p-replicas").inputValue(), "3");
  assert.equal(await id(page, "p-rate").inputValue(), "5");
}, { query: `?backend=modelled&user_min=40&rate=9&replicas=3&rate=5&seed=${"9".repeat(500)}` });

handTest("a race whose requests are all rejected says so in every lane and in its result", async (page) => {
  await raceOver(page);
  assert.match(await text(page, "verdict"), /Requests rejected: round-robin 24 of 24/);
  const said = await id(page, "rejected").allInnerTexts();
  assert.equal(said.length, 3);
  for (const one of said) assert.match(one, /^24 requests rejected; the latest is request 23: .*KV blocks; the pool has 4\.$/);
  assert.match(await id(page, "rejections").first().innerText(), /round-robin: 24 of 24 requests rejected/);
}, { query: "?backend=modelled&blocks=4" });

handTest("what a lane says of its memory adds up", async (page) => {
  await raceOver(page);
  for (const said of await id(page, "status").allTextContents()) {
    const [all, ...parts] = [...said.matchAll(/([\d.]+) MiB/g)].map((match) => Math.round(Number(match[1]) * 10));
    assert.equal(parts.length, 3, said);
    assert.equal(parts.reduce((sum, part) => sum + part), all, said);
  }
}, { query: "" });
