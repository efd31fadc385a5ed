// What moves: nothing where less motion is wanted, nothing that is off the screen, and while the race is scrubbed the main
// thread keeps up. And what is said to who does not see it: once, when all has settled.
import { faults, gate, median, pages } from "./gate.mjs";
import { MODELLED, openDetails, raceOver, runAll, seeAll } from "./visit.mjs";

const own = pages();
const SECTIONS = () => [...document.querySelectorAll("main section[id]")].map((section) => section.id);

/** Counts, from before the page's first script on: frames asked for, and what is drawn and changed in figures off the screen. */
const counters = () => {
  const counts = { frames: 0, drawn: [], changed: [] };
  window.gate = counts;
  const real = window.requestAnimationFrame;
  window.requestAnimationFrame = (f) => { counts.frames += 1; return real.call(window, f); };
  const off = (element) => {
    const r = element.getBoundingClientRect();
    return r.bottom < -1 || r.top > innerHeight + 1;
  };
  const called = (element) => `${element.closest("section[id]")?.id ?? ""} ${element.tagName.toLowerCase()}.${element.getAttribute("class") ?? ""}`;
  for (const name of ["stroke", "fill", "fillRect", "fillText"]) {
    const draw = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...all) {
      if (off(this.canvas)) counts.drawn.push(called(this.canvas.parentElement));
      return draw.apply(this, all);
    };
  }
  new MutationObserver((records) => {
    for (const { target } of records) {
      const element = target.nodeType === 1 ? target : target.parentElement;
      const figure = element?.closest("figure, .lane, .strips");
      const section = figure?.closest("section[id]");
      if (section && off(section)) counts.changed.push(called(figure));
    }
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
};
const counted = async (page, milliseconds) => {
  await page.evaluate(() => Object.assign(window.gate, { frames: 0, drawn: [], changed: [] }));
  await page.waitForTimeout(milliseconds);
  return page.evaluate(() => ({
    frames: window.gate.frames, drawn: [...new Set(window.gate.drawn)], changed: [...new Set(window.gate.changed)],
    moving: document.getAnimations().filter((a) => a.playState === "running").length,
  }));
};

gate("reduced motion", "no frame and no animation after settle, in any section", async (context) => {
  const { page, close } = await own.page(MODELLED, { init: counters });
  await runAll(page);
  const found = [];
  for (const section of await page.evaluate(SECTIONS)) {
    await page.evaluate((id) => document.getElementById(id).scrollIntoView({ behavior: "instant" }), section);
    await page.waitForTimeout(100);
    const { frames, moving } = await counted(page, 250);
    if (frames || moving) found.push(`${section}: ${frames} frames, ${moving} animations`);
  }
  await close();
  return faults(found, context);
});

gate("off-screen figures", "no frame, nothing drawn, nothing changed, while the race runs elsewhere", async (context) => {
  const { page, close } = await own.page(`${MODELLED}&requests=200`, { reducedMotion: "no-preference", init: counters });
  await page.evaluate(() => document.getElementById("race").scrollIntoView({ behavior: "instant" }));
  await page.waitForFunction(() => Number(document.querySelector("[data-testid=time]").value) > 20, null, { timeout: 60_000 });
  // What a worker tells of its progress is no motion: all has been computed, and is only shown.
  await page.waitForFunction(() => document.querySelectorAll(".lane .status progress").length === 0, null, { timeout: 90_000 });
  const playing = await counted(page, 2000);
  const found = playing.frames ? [] : ["the race asked for no frame while it was looked at: nothing is compared"];
  for (const [what, changes] of [["drawn", playing.drawn], ["changed", playing.changed]]) {
    for (const one of changes) found.push(`${what} while the race is looked at: ${one}`);
  }
  for (const elsewhere of ["problem", "cold-start"]) {
    await page.evaluate((id) => document.getElementById(id).scrollIntoView({ behavior: "instant" }), elsewhere);
    // A browser tells what is off the screen when it has time; on a busy machine that is seconds.
    let seen = await counted(page, 1000);
    for (let tries = 0; tries < 5 && seen.frames; tries += 1) seen = await counted(page, 1000);
    const { frames, drawn, changed } = seen;
    if (frames) found.push(`${frames} frames a second at #${elsewhere}`);
    for (const one of drawn) found.push(`drawn at #${elsewhere}: ${one}`);
    for (const one of changed) found.push(`changed at #${elsewhere}: ${one}`);
  }
  await close();
  return faults([...new Set(found)], context);
});

gate("live regions", "one that is polite; said once a race, when it is over", async (context) => {
  const { page, close } = await own.page(`${MODELLED}&requests=40`, { reducedMotion: "no-preference", init: () => {
    window.said = [];
    const POLITE = "[aria-live=polite], [role=status]:not([aria-live]), [role=log]:not([aria-live]), output:not([aria-live])";
    window.polite = () => [...document.querySelectorAll(POLITE)].map((e) => e.id || e.dataset.testid || e.className || e.tagName);
    new MutationObserver((records) => {
      for (const { target } of records) {
        const region = (target.nodeType === 1 ? target : target.parentElement)?.closest(POLITE);
        if (region) window.said.push(region.textContent);
      }
    }).observe(document, { subtree: true, childList: true, characterData: true });
  } });
  await page.evaluate(() => document.getElementById("race").scrollIntoView({ behavior: "instant" }));
  await raceOver(page);
  await page.waitForTimeout(1200);
  const said = await page.evaluate(() => window.said);
  const first = await page.evaluate(() => window.polite());
  await runAll(page);
  await openDetails(page);
  const all = await page.evaluate(() => window.polite());
  await close();
  const found = [];
  for (const regions of [first, all]) if (regions.length !== 1) found.push(`${regions.length} polite regions: ${regions.join(", ")}`);
  if (said.length !== 1 || !said[0].startsWith("The race is over")) found.push(`said in a race: ${said.length} times, “${said[0] ?? ""}”`);
  return faults([...new Set(found)], context, "one, once");
});

/** Frames a second and tasks over 50 ms, while the default race's time is dragged to and fro for two seconds. */
async function scrub(page) {
  return page.evaluate(async () => {
    const slider = document.querySelector("[data-testid=time]");
    const long = [];
    const observer = new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration)));
    observer.observe({ entryTypes: ["longtask"] });
    let frames = 0;
    const began = performance.now();
    await new Promise((done) => {
      const next = (now) => {
        frames += 1;
        const part = (now - began) / 2000;
        slider.value = String(Math.round(500 + 480 * Math.sin(part * 12)));
        slider.dispatchEvent(new InputEvent("input", { bubbles: true }));
        if (part < 1) requestAnimationFrame(next);
        else done();
      };
      requestAnimationFrame(next);
    });
    const seconds = (performance.now() - began) / 1000;
    await new Promise((done) => setTimeout(done, 100));
    observer.disconnect();
    return { rate: frames / seconds, long: long.length, longest: Math.max(0, ...long) };
  });
}

gate("scrubbing the default race", "60 frames a second, no task over 50 ms (fails below 8 a second)", async (context) => {
  const { page, close } = await own.page("");
  await raceOver(page);
  await seeAll(page);
  await page.evaluate(() => document.getElementById("race").scrollIntoView({ behavior: "instant" }));
  await page.waitForTimeout(500);
  const runs = [];
  for (let run = 0; run < 3; run += 1) runs.push(await scrub(page));
  await close();
  for (const { rate, long, longest } of runs) context.diagnostic(`${rate.toFixed(1)} frames a second, ${long} long tasks, the longest ${longest} ms`);
  const [rate, long] = [median(runs.map((run) => run.rate)), median(runs.map((run) => run.long))];
  return {
    found: `${rate.toFixed(0)} frames a second, ${long} long tasks (medians of 3)`, met: rate >= 58 && long === 0,
    failed: rate < 8,
  };
});
