// A worker that is ended, in each figure that has any: the page says so or goes on, and the figure comes to its end.
import assert from "node:assert/strict";
import { gate, pages } from "./gate.mjs";
import { id, MODELLED, raceOver, scanOver, sweepOver } from "./visit.mjs";

const own = pages();
const asked = "the figure comes to its end all the same";
const begun = (page, name) => page.waitForFunction(
  (name) => (document.querySelector(`[data-testid=${name}] progress`)?.value ?? 0) > 0, name, { timeout: 60_000 });

/** Workers are counted as they are made, so that any of them can be ended as a browser short of memory may. */
const watch = () => {
  const Real = window.Worker;
  window.workers = [];
  window.Worker = class extends Real {
    constructor(...all) { super(...all); window.workers.push(this); }
  };
};

async function killed(query, run, context) {
  const { page, troubles, close } = await own.page(query, { init: watch });
  const found = await run(page);
  await close();
  assert.deepEqual(troubles, []);
  context.diagnostic(found);
  return { found, met: true };
}

gate("workers killed, race", asked, (context) => killed("?requests=60", async (page) => {
  const columns = ["round-robin", "least-tokens", "prefix-affinity"].map((policy) => id(page, `lane-${policy}`));
  for (const column of columns) await column.getByText(/computing: [1-9]\d* of/).waitFor({ timeout: 60_000 });
  await page.evaluate(() => [0, 1, 2].forEach((lane) => window.__warmrouteKillWorker(lane)));
  for (const column of columns) await column.getByText(/This worker died/).waitFor({ timeout: 60_000 });
  for (const column of columns) await column.getByTestId("revive").click();
  await raceOver(page);
  return "all three said so, were restarted, and the race is over";
}, context));

gate("workers killed, sweep", asked, (context) => killed(`${MODELLED}&devices=separate&requests=1000&sweep_seeds=20`, async (page) => {
  await id(page, "sweep-run").click();
  await begun(page, "sweep-progress");
  await page.evaluate(() => window.__warmrouteKillPoolWorker(0));
  await sweepOver(page);
  assert.equal(await id(page, "sweep-partial").count(), 0);
  return "replaced, the sweep is over";
}, context));

gate("workers killed, replicas counted", asked, (context) => killed(
  `${MODELLED}&devices=separate&tenants=48&requests=1000&rate=16&sweep_seeds=8`, async (page) => {
    await id(page, "scan-run").click();
    await begun(page, "scan-results");
    await page.evaluate(() => window.__warmrouteKillPoolWorker(0));
    await scanOver(page);
    return "replaced, all are counted";
  }, context));

gate("workers killed, machine measured", "it is said, and it can be measured again", (context) => killed(MODELLED, async (page) => {
  await raceOver(page);
  await id(page, "measure").click();
  await page.getByText(/[1-9]\d* of \d+ measurements/).waitFor({ timeout: 60_000 });
  // The youngest worker measures. A worker that dies of an error says so; this one dies as one that throws.
  await page.evaluate(() => {
    const last = window.workers.at(-1);
    last.terminate();
    last.dispatchEvent(new ErrorEvent("error", { message: "out of memory" }));
  });
  await id(page, "bench").getByText(/Could not be measured/).waitFor({ timeout: 30_000 });
  await id(page, "measure").click();
  await id(page, "use-prices").waitFor({ timeout: 90_000 });
  return "said so, measured again";
}, context));
