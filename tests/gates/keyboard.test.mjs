// The keyboard alone, in Chromium: every control of the page is reached, seen, named and used, in the document's order.
// tests/gates/firefox.test.mjs walks the same way.
import { faults, gate, pages } from "./gate.mjs";
import { MODELLED, raceOver, seeAll, showResult } from "./visit.mjs";
import { install, walkThrough } from "./walk.mjs";

const own = pages();
const settled = async (page) => { await raceOver(page); await seeAll(page); await page.evaluate(() => scrollTo(0, 0)); };

for (const [theme, width] of [["light", 1280], ["dark", 320]]) {
  gate(`keyboard walk, Chromium, ${width} px, ${theme}`, "every control reached, seen, named, used; in order; no trap", async (context) => {
    const { page, troubles, close } = await own.page(MODELLED, { viewport: { width, height: 800 }, colorScheme: theme });
    await settled(page);
    await page.evaluate(install);
    const found = await walkThrough({
      run: (expression) => page.evaluate(expression),
      press: (key) => page.keyboard.press(key),
      settle: () => showResult(page),
    });
    await close();
    const all = [...new Set([...found.faults, ...troubles])];
    context.diagnostic(`${found.stops.length} stops`);
    return faults(all, context, `${found.stops.length} stops, all fine`);
  });
}

gate("keyboard, backwards", "shift and tab come to the same stops", async (context) => {
  const { page, close } = await own.page(MODELLED);
  await settled(page);
  const around = async (key) => {
    await page.evaluate(() => { document.activeElement.blur(); getSelection().removeAllRanges(); });
    await page.evaluate(install);
    const numbers = [];
    for (let step = 0; step < 600; step += 1) {
      await page.keyboard.press(key);
      const here = await page.evaluate(() => {
        const e = document.activeElement;
        // What a request's focus brings with it stands before the request, and is met one way only.
        if (e.closest(".why")) return -1;
        return e === document.body ? null : [...document.querySelectorAll("*")].indexOf(e);
      });
      if (here === null ? numbers.length : here === numbers[0]) break;
      if (here !== null && here !== -1) numbers.push(here);
    }
    return numbers;
  };
  const [on, back] = [await around("Tab"), await around("Shift+Tab")];
  const wrong = [...on.filter((at) => !back.includes(at)), ...back.filter((at) => !on.includes(at))];
  const what = await page.evaluate((all) => all.map((at) => document.querySelectorAll("*")[at].outerHTML.slice(0, 160)), wrong);
  await close();
  return faults(what.map((element) => `a stop one way only: ${element}`), context, `${on.length} there, ${back.length} back`);
});

gate("keyboard, the focus stays", "no button that is pressed loses the focus to nowhere", async (context) => {
  const { page, troubles, close } = await own.page(MODELLED, { acceptDownloads: true });
  await settled(page);
  await page.evaluate(() => { document.querySelectorAll("details").forEach((details) => { details.open = true; }); });
  const lost = [];
  // Buttons that are alike in their rows are pressed once.
  const names = await page.evaluate(() => [...document.querySelectorAll("main button:not(:disabled):not(.chip):not(.cell)")]
    .map((button) => `${button.closest("section[id]")?.id ?? ""}|${(button.getAttribute("aria-label") ?? button.textContent).trim()}`));
  for (const name of [...new Set(names)]) {
    const [section, text] = name.split("|");
    const button = page.locator(section ? `#${section} button` : "main button").filter({ hasText: text }).first();
    if (!(await button.count()) || !(await button.isEnabled())) continue;
    await button.focus();
    await page.keyboard.press("Enter");
    await page.waitForTimeout(400);
    if (await page.evaluate(() => document.activeElement === document.body)) lost.push(`${section}: ${text}`);
    await page.waitForTimeout(50);
  }
  await close();
  return faults([...lost.map((one) => `loses the focus: ${one}`), ...troubles], context, `${new Set(names).size} buttons keep it`);
});
