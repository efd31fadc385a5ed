// Ways through the page that the gates share.
import { id, raceOver as over, said, sweepOver } from "../browser/pages.mjs";

export { id, sweepOver };

/** Nothing is computed with tensors: figures are what is looked at. */
export const MODELLED = "?backend=modelled";

/** Gives the sign that the page starts at (after a reload, too), and waits until it has. */
export async function sign(page) {
  await page.mouse.move(2, 2);
  await page.mouse.move(1, 1);
  await page.waitForFunction(() => window.__warmrouteKillWorker, null, { timeout: 60_000 });
}

/** Waits until every figure of the race is in the table. */
export const raceOver = async (page) => (await sign(page), over(page));

/** The same, without the replay. */
export async function showResult(page) {
  if (await id(page, "skip").isEnabled()) await page.evaluate(() => document.querySelector("[data-testid=skip]").click());
  await raceOver(page);
}

export const scanOver = (page) => said(page, "scan-verdict", "worth");

/** Scrolls to every section and lets what is computed when it is seen be computed. */
export async function seeAll(page) {
  await page.evaluate(async () => {
    for (const section of document.querySelectorAll("section[id]")) {
      section.scrollIntoView({ behavior: "instant" });
      await new Promise((done) => setTimeout(done, 60));
    }
  });
  await id(page, "hot-map").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => [...document.querySelectorAll("[data-testid=hot-map] td button")]
    .every((cell) => cell.textContent !== "…"), null, { timeout: 60_000 });
  await page.locator("#seeds").scrollIntoViewIfNeeded();
  await page.locator('#seeds .strips[data-done="20"]').waitFor({ timeout: 60_000 });
}

/** Runs each figure to its end: the race, what is computed when it is seen, a sweep, replicas counted, this machine measured. */
export async function runAll(page, { measure = false } = {}) {
  await raceOver(page);
  await seeAll(page);
  for (const [field, value] of [["sweep-from-0", "4"], ["sweep-to-0", "8"], ["sweep-step-0", "4"], ["sweep-seeds", "2"]]) {
    if (await id(page, field).count()) await id(page, field).fill(value);
  }
  await id(page, "sweep-run").click();
  await sweepOver(page);
  await id(page, "scan-run").click();
  await scanOver(page);
  if (measure) {
    await id(page, "measure").click();
    await id(page, "use-prices").waitFor({ timeout: 90_000 });
  }
  await openDetails(page);
}

export const openDetails = (page) => page.evaluate(
  () => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
