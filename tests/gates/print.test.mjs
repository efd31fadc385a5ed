// The page on paper: dark on white whatever the theme, no controls, nothing cut off, and the figures with it.
import { faults, gate, pages } from "./gate.mjs";
import { MODELLED, raceOver, seeAll } from "./visit.mjs";

const own = pages();

gate("print", "dark on white in both themes, no controls, nothing cut off", async (context) => {
  const found = [];
  for (const colorScheme of ["light", "dark"]) {
    const { page, close } = await own.page(MODELLED, { colorScheme, viewport: { width: 760, height: 1000 } });
    await raceOver(page);
    await seeAll(page);
    await page.emulateMedia({ media: "print", colorScheme });
    const faults = await page.evaluate(() => {
      const light = (colour) => { const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number); return a === 0 ? 1 : (0.3 * r + 0.6 * g + 0.1 * b) / 255; };
      const shown = (e) => e.checkVisibility() && e.getClientRects().length > 0;
      const list = [];
      const body = getComputedStyle(document.body);
      if (light(body.backgroundColor) < 0.9) list.push(`the paper is ${body.backgroundColor}`);
      if (light(body.color) > 0.4) list.push(`the ink is ${body.color}`);
      for (const e of document.querySelectorAll(".transport button, .buttons button, #controls input")) {
        if (shown(e)) { list.push(`a control is printed: ${e.closest("section[id]")?.id} ${e.textContent || e.id}`); break; }
      }
      for (const e of document.querySelectorAll(".scroll, .cold-scroll, .router")) {
        if (shown(e) && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible") {
          list.push(`cut off: ${e.getAttribute("aria-label") ?? e.className} of ${e.closest("section[id]")?.id}, ${e.scrollWidth} in ${e.clientWidth}`);
        }
      }
      for (const section of document.querySelectorAll("main section[id]:not(#controls)")) {
        if (!shown(section)) list.push(`not printed: ${section.id}`);
        for (const figure of section.querySelectorAll("figure")) if (!shown(figure)) { list.push(`a figure of ${section.id} is not printed`); break; }
      }
      const root = document.documentElement;
      if (root.scrollWidth > root.clientWidth + 1) list.push(`something sticks out of the paper: ${root.scrollWidth} in ${root.clientWidth}`);
      return list;
    });
    found.push(...faults.map((fault) => `${colorScheme}: ${fault}`));
    const pdf = await page.pdf({ format: "A4" });
    context.diagnostic(`${colorScheme}: ${(pdf.toString("latin1").match(/\/Type \/Page\b/g) ?? []).length} pages of A4`);
    await close();
  }
  return faults(found, context, "fine in both");
});
