// Sweeps and replica-equivalents in the built page (dist/), in headless Chromium: `node --test tests/browser/sweep.test.mjs`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { id, pageTests, said, sweepOver } from "./pages.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const test = pageTests({ timeout: 180_000, commandLine: true });
/** The race is short and computes nothing. */
const sweepTest = (name, query, run, options) => test(name, `?backend=modelled${query}`, run, options);

/** By cargo, so that it is never an older build's answer. */
const native = (command, ...flags) => execFileSync(
  "cargo", ["run", "--quiet", "--release", "--locked", "--bin", "warmroute", "--", ...command.split(" ").slice(1), ...flags],
  { cwd: root, encoding: "utf8", maxBuffer: 1 << 28 });
const downloaded = async (page, button) => {
  const [download] = await Promise.all([page.waitForEvent("download"), id(page, button).click()]);
  return readFile(await download.path(), "utf8");
};
const progress = (page) => page.waitForFunction(
  () => (document.querySelector("[data-testid=sweep-progress] progress")?.value ?? 0) > 0, null, { timeout: 60_000 });

for (const [name, query, command] of [
  ["one parameter", "&requests=12&sweep_over=rate=2:6:2&sweep_seeds=3",
    "warmroute sweep --over rate=2:6:2 --seeds 85..88 --requests 12"],
  ["two parameters, other policies, devices of their own",
    "&devices=separate&tenants=12&max_imbalance=1.5&sweep_over=replicas=1,2,4&sweep_and=rate=8,16&sweep_seeds=4..6&sweep_policy=round-robin,longest-prefix",
    "warmroute sweep --over replicas=1,2,4 --over rate=8,16 --seeds 4..6 --policy round-robin,longest-prefix --tenants 12 --devices separate --max-imbalance 1.5"],
  ["an accelerator", "&accelerator=h100&requests=40&sweep_over=tp=1,2&sweep_seeds=2",
    "warmroute sweep --over tp=1,2 --seeds 85..87 --requests 40 --accelerator h100"],
]) {
  sweepTest(`a sweep has the command line's bytes: ${name}`, query, async (page) => {
    assert.equal(await id(page, "sweep-results").count(), 0, "nothing runs before it is asked for");
    await id(page, "sweep-run").click();
    await sweepOver(page);
    assert.equal(await id(page, "sweep-command").textContent(), command);
    assert.equal(await downloaded(page, "sweep-json"), native(command, "--json"));
    assert.equal(await downloaded(page, "sweep-csv"), native(command, "--csv"));
    assert.equal(await id(page, "sweep-partial").count(), 0);
  });
}

sweepTest("what the page computes is priced here, and it says so", "&backend=tinygpt&requests=12&sweep_over=rate=4,8&sweep_seeds=2", async (page) => {
  assert.match(await id(page, "priced").textContent(), /priced, not computed/);
  assert.match(await id(page, "sweep-size").textContent(), /2 points × 2 seeds × 3 policies: 12 runs of 12 requests each/);
  await id(page, "sweep-run").click();
  await sweepOver(page);
  const command = await id(page, "sweep-command").textContent();
  assert.equal(await downloaded(page, "sweep-json"), native(command, "--json"));
});

sweepTest("the table and the knees are the results'", "&devices=separate&tenants=48&requests=200&sweep_over=rate=8,16,24&sweep_seeds=2", async (page) => {
  await id(page, "sweep-run").click();
  await sweepOver(page);
  const { cells } = JSON.parse(await downloaded(page, "sweep-json"));
  await id(page, "sweep-results").locator("summary").click();
  const rows = await id(page, "sweep-table").locator("tbody tr").evaluateAll(
    (all) => all.map((row) => [...row.children].map((cell) => cell.textContent.trim())));
  const percent = (f) => `${(100 * f).toFixed(1)} %`;
  assert.deepEqual(rows, cells.map((cell) => {
    const { mean, p10, p90, n } = cell.goodput_fraction;
    return [String(cell.rate), cell.policy, percent(mean), percent(p10), percent(p90), String(n)];
  }));
  const knees = await id(page, "knees").locator("li").allTextContents();
  for (const knee of knees) {
    const own = cells.filter((cell) => knee.startsWith(cell.policy));
    const kept = own.filter((cell) => cell.goodput_fraction.mean >= 0.95).map((cell) => cell.rate);
    const words = kept.length === 3 ? "at every value here, up to 24" : kept.length ? `up to ${kept.at(-1)} requests/s (at ` : "nowhere here";
    assert.ok(knee.includes(words), `${knee}: ${words}`);
  }
});

const LONG = "&devices=separate&requests=2000&sweep_seeds=100";

sweepTest("a sweep is cancelled at once, what is done stays, and it can be run again", LONG, async (page) => {
  await id(page, "sweep-run").click();
  await progress(page);
  await id(page, "sweep-cancel").click();
  const partial = await id(page, "sweep-partial").textContent();
  const [, done, of] = partial.match(/Partial: (\d+) of (\d+) runs/).map(Number);
  assert.ok(done > 0 && done < of, partial);
  await page.waitForTimeout(700);
  assert.equal(await id(page, "sweep-partial").textContent(), partial, "nothing more is done");
  assert.equal(await id(page, "sweep-json").isDisabled(), true);
  await id(page, "sweep-seeds").fill("1");
  await id(page, "sweep-stale").waitFor();
  await id(page, "sweep-run").click();
  await sweepOver(page);
  assert.equal(await id(page, "sweep-stale").count() + await id(page, "sweep-partial").count(), 0);
});

sweepTest("a worker that dies is replaced, and nothing is lost", "&devices=separate&requests=1000&sweep_over=rate=4,8,12,16&sweep_seeds=25", async (page) => {
  await id(page, "sweep-run").click();
  await progress(page);
  await page.evaluate(() => window.__warmrouteKillPoolWorker(0));
  await sweepOver(page);
  const command = await id(page, "sweep-command").textContent();
  assert.equal(await downloaded(page, "sweep-csv"), native(command, "--csv"));
});

sweepTest("a job that two workers die at is named, and the sweep stops", "&requests=12&sweep_over=rate=4,8&sweep_seeds=2", async (page) => {
  // Workers that fail as soon as they are told anything.
  await page.evaluate(() => {
    const Real = window.Worker;
    window.Worker = class extends Real {
      postMessage() { this.dispatchEvent(new ErrorEvent("error", { message: "out of memory" })); }
    };
  });
  await id(page, "sweep-run").click();
  await id(page, "sweep-results").getByText(/It stopped: two workers died at rate 4, seed 85.*out of memory/).waitFor({ timeout: 30_000 });
  assert.equal(await id(page, "sweep-cancel").isDisabled(), true);
});

sweepTest("what cannot be is refused where it was typed, and nothing is lost", "&requests=12", async (page) => {
  for (const [field, text, problem] of [
    ["sweep-from-0", "0", /found `0`; it is a number from 0\.001 to 100000/],
    ["sweep-to-0", "ten", /found `ten`/],
    ["sweep-step-0", "-1", /found `-1`; a step is a number above 0/],
    ["sweep-seeds", "none", /found `none`; it is FROM\.\.TO/],
  ]) {
    const input = id(page, field);
    const good = await input.inputValue();
    await input.fill(text);
    await id(page, `${field}-problem`).waitFor();
    assert.match(await id(page, `${field}-problem`).textContent(), problem);
    assert.equal(await input.getAttribute("aria-invalid"), "true");
    assert.equal(await input.getAttribute("aria-describedby"), `${field}-problem`);
    assert.equal(await input.inputValue(), text, "the reader's text stays");
    assert.equal(await id(page, "sweep-run").isDisabled(), true);
    await input.fill(good);
    await id(page, `${field}-problem`).waitFor({ state: "detached" });
  }
  await id(page, "sweep-seeds").fill("900");
  assert.match(await id(page, "sweep-plan-problem").textContent(), /27000 runs; the page takes at most 20000/);
});

sweepTest("with the keyboard alone: values, run, plot", "&requests=12&sweep_seeds=2", async (page) => {
  await id(page, "sweep-param-0").focus();
  await page.keyboard.type("Repl");
  await page.waitForFunction(() => document.querySelector("[data-testid=sweep-values-0]")?.value === "1,2,4,8");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), "sweep-values-0");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("2,3");
  await page.keyboard.press("Enter");
  await sweepOver(page);
  assert.equal(new URL(page.url()).search, "?requests=12&backend=modelled&sweep_over=replicas=2,3&sweep_seeds=2");
  const plot = id(page, "sweep-results").locator("svg.plot-surface");
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const readout = await id(page, "sweep-results").locator(".plot-readout").textContent();
  assert.match(readout, /^Replicas 3: round-robin [\d.]+ % \([\d.]+ % to [\d.]+ %\), least-tokens /);
});

sweepTest("the address brings a sweep back, and says what it did not understand",
  "&requests=12&sweep_and=devices=shared,separate&sweep_figure=reuse&sweep_polic=x", async (page) => {
    assert.match(await id(page, "notices").textContent(), /sweep_polic: no such setting of the sweep/);
    await page.waitForFunction(() => location.search === "?requests=12&backend=modelled&sweep_and=devices=shared,separate&sweep_figure=reuse");
    assert.equal(await id(page, "sweep-param-1").inputValue(), "devices");
    await id(page, "sweep-run").click();
    await sweepOver(page);
    assert.equal(await id(page, "sweep-results").locator("svg.plot-surface").count(), 2);
    await id(page, "sweep-param-1").selectOption("");
    await page.waitForFunction(() => location.search === "?requests=12&backend=modelled&sweep_figure=reuse");
  });

sweepTest("replicas are counted in replicas, as the command line does", "&devices=separate&tenants=48&requests=200&rate=16&sweep_seeds=3", async (page) => {
  await id(page, "scan-run").click();
  await said(page, "scan-verdict", "replicas are worth");
  const command = await id(page, "scan-command").textContent();
  assert.equal(command, "warmroute equivalents --seeds 85..88 --requests 200 --rate 16 --tenants 48 --devices separate");
  const sentence = native(command).trim().split("\n").at(-1);
  assert.match(sentence, /^4 prefix-affinity replicas are worth \d+ round-robin replicas?/);
  assert.ok((await id(page, "scan-verdict").textContent()).startsWith(`${sentence}.`), sentence);
  await id(page, "scan-results").locator("summary").click();
  const rows = await id(page, "scan-table").locator("tbody tr").evaluateAll(
    (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  const percent = (f) => `${(100 * f).toFixed(1)} %`;
  assert.deepEqual(rows, JSON.parse(native(command, "--json")).map(
    (one) => [String(one.seed), percent(one.target), String(one.equivalents), percent(one.fractions.at(-1))]));
});

for (const [name, options] of [
  ["320 px", { viewport: { width: 320, height: 700 } }],
  ["320 px, dark, at two device pixels", { viewport: { width: 320, height: 700 }, colorScheme: "dark", deviceScaleFactor: 2 }],
]) {
  sweepTest(`nothing sticks out of a sweep: ${name}`,
    "&requests=12&sweep_and=max_imbalance=1.5,inf&sweep_seeds=2&sweep_policy=all", async (page) => {
      await id(page, "sweep-run").click();
      await sweepOver(page);
      await id(page, "scan-run").click();
      await said(page, "scan-verdict", "replicas are worth");
      await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
      await id(page, "sweep-from-0").fill("a long text that is no number at all");
      await page.waitForTimeout(200);
      const [content, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(content <= window_, `${content} > ${window_}`);
    }, options);
}
