// The address: what it says comes back, after a reload, in another tab, and when the reader goes back and forth.
import { faults, gate, pages } from "./gate.mjs";
import { id, raceOver, showResult, sign } from "./visit.mjs";

const own = pages();

/** Everything that can be set, by its label or name, and the race's figures. */
const state = (page) => page.evaluate(() => {
  const all = {};
  document.querySelectorAll("#controls input, #controls select, #worth input, #worth select, #cold-start input, #cold-start select").forEach((e, at) => {
    const name = e.id || e.dataset.testid || e.getAttribute("aria-label") || String(at);
    all[name] = e.type === "checkbox" ? e.checked : e.value;
  });
  document.querySelectorAll("[data-testid=results] tbody tr").forEach((row) => { all[row.dataset.testid] = row.textContent; });
  all.query = location.search;
  return all;
});
const differences = (when, before, after) => [...new Set([...Object.keys(before), ...Object.keys(after)])]
  .filter((key) => before[key] !== after[key]).map((key) => `${when}: ${key} was ${before[key]}, is ${after[key]}`);

/** Sets things in every part of the page that the address keeps. */
async function set(page) {
  await page.evaluate(() => document.querySelectorAll("#controls details").forEach((d) => { d.open = true; }));
  for (const [field, value] of [["p-requests", "40"], ["p-rate", "12.5"], ["p-replicas", "3"], ["p-seed", "7"], ["p-slo_ttft", "0.5"]]) {
    await id(page, field).fill(value);
  }
  await id(page, "p-devices").selectOption("separate");
  await id(page, "policy-longest-prefix").check();
  await page.locator("#cold-start select").nth(1).selectOption({ index: 1 });
  await id(page, "sweep-seeds").fill("3");
  await id(page, "sweep-policy-round-robin").uncheck();
  await page.waitForTimeout(400);
  await showResult(page);
}

gate("address, round trip", "state to address to reload to the same controls and figures", async (context) => {
  const { page, troubles, close } = await own.page("?backend=modelled");
  await raceOver(page);
  await set(page);
  const before = await state(page);
  const found = before.query.length > 40 ? [] : [`the address has too little: ${before.query}`];
  await page.reload();
  await raceOver(page);
  found.push(...differences("after a reload", before, await state(page)));
  const other = await own.page(before.query);
  await raceOver(other.page);
  found.push(...differences("in another tab", before, await state(other.page)));
  await other.close();
  await close();
  return faults([...found, ...troubles], context, `${Object.keys(before).length} values the same`);
});

gate("address, back and forward", "restore what was left, within the page and from another", async (context) => {
  const { page, troubles, close } = await own.page("?backend=modelled");
  await raceOver(page);
  await set(page);
  const before = await state(page);
  const found = [];
  const place = () => page.evaluate(() => Math.round(scrollY));
  await page.evaluate(() => document.querySelector("#takeaways").scrollIntoView({ behavior: "instant" }));
  const left = await place();
  await page.locator("#takeaways a").first().click();
  await page.waitForFunction(() => location.hash === "#scatter");
  found.push(...differences("after a link", before, await state(page)));
  await page.goBack();
  await page.waitForTimeout(300);
  if (Math.abs((await place()) - left) > 50) found.push(`back: the page is at ${await place()}, and was left at ${left}`);
  found.push(...differences("back", before, await state(page)));
  await page.goForward();
  await page.waitForTimeout(300);
  found.push(...differences("forward", before, await state(page)));
  await page.goto("about:blank");
  await page.goBack();
  await raceOver(page);
  found.push(...differences("back from elsewhere", before, await state(page)));
  // Addresses that a reader went to by hand are steps of the history, and each brings its own state.
  await page.goto(`${own.server.url}?backend=modelled&requests=12`);
  await sign(page);
  await page.waitForFunction(() => document.querySelector("[data-testid=p-requests]")?.value === "12");
  await page.goBack();
  await raceOver(page);
  found.push(...differences("back from another address", before, await state(page)));
  await page.goForward();
  await sign(page);
  await page.waitForFunction(() => document.querySelector("[data-testid=p-requests]")?.value === "12", null, { timeout: 10_000 });
  await close();
  return faults([...found, ...troubles], context, "all restored");
});

gate("address, nonsense", "what is not understood is said, and left out", async (context) => {
  const { page, troubles, close } = await own.page("?backend=modelled&rate=-3&requests=1e99&nonsense=1&sweep_seeds=x&cold_precision=int5");
  await raceOver(page);
  const notices = await id(page, "notices").textContent();
  const found = ["rate", "requests", "nonsense", "sweep_seeds", "cold_precision"].filter((key) => !notices.includes(key)).map((key) => `nothing is said of ${key}`);
  const query = await page.evaluate(() => location.search);
  if (query !== "?backend=modelled") found.push(`the address is ${query}`);
  await close();
  return faults([...found, ...troubles], context, "5 of 5 said");
});
