// axe-core on the whole page: no violation in light and dark, at 320 and 1,280 px, before and after each figure ran.
import { faults, gate, pages } from "./gate.mjs";
import { id, MODELLED, runAll } from "./visit.mjs";

const axe = process.env.WARMROUTE_AXE;
const needs = [{ what: "axe-core", path: axe }];
const own = pages();
const LOOKS = [[320, "light"], [320, "dark"], [1280, "light"], [1280, "dark"]];

/** All violations, one line for each kind with the first of its elements. */
async function violations(page) {
  return page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations
    .map(({ id, help, nodes }) => `${id} (${nodes.length}): ${help}: ${nodes.slice(0, 3).map((n) => n.target.join(" ")).join(" , ")}`));
}

/** The same page in each look. */
async function inEachLook(page) {
  const found = [];
  for (const [width, colorScheme] of LOOKS) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    await page.waitForTimeout(300);
    found.push(...(await violations(page)).map((line) => `${width} px, ${colorScheme}: ${line}`));
  }
  return found;
}

async function opened() {
  const { page, close } = await own.page(MODELLED, { bypassCSP: true });
  await id(page, "race").waitFor();
  await page.addScriptTag({ path: axe });
  return { page, close };
}

gate("axe, before anything ran", "0 violations, light and dark, 320 and 1,280 px", async (context) => {
  const { page, close } = await opened();
  const found = await inEachLook(page);
  await close();
  return faults(found, context, "0 violations in 4 looks");
}, { needs });

gate("axe, after each figure ran", "0 violations, light and dark, 320 and 1,280 px", async (context) => {
  const { page, close } = await opened();
  await runAll(page, { measure: true });
  // A refused value, a bet, a chosen request and a cell of the map have looks of their own.
  await id(page, "p-rate").fill("fast");
  await id(page, "sweep-seeds").fill("none");
  await id(page, "hot-map").locator("td button").last().click();
  await page.locator(".chip").first().click();
  await page.locator("input[type=radio]").first().check();
  const found = await inEachLook(page);
  await close();
  return faults(found, context, "0 violations in 4 looks");
}, { needs });
