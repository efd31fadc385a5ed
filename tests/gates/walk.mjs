// A walk through the page with the keyboard alone, in any browser: from stop to stop with the tab key, using each control on
// the way. A driver has `run(expression)`, which is evaluated in the page, `press(key)`, which is a real
// key, and `settle()`, which waits until the race is over.

/** Installed in the page as `walk`: what is at the focus, and what became of it. Refers to nothing outside of itself. */
export function install() {
  const numbers = new WeakMap();
  const seen = new WeakSet();
  const keys = new Set();
  let count = 0, last = null, clicks = 0, armed = false;
  const number = (element) => numbers.get(element) ?? (numbers.set(element, (count += 1)), count);
  const text = (ids) => ids.split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim();
  const nameOf = (element) => [
    element.getAttribute("aria-labelledby") && text(element.getAttribute("aria-labelledby")), element.getAttribute("aria-label"),
    element.labels?.length ? [...element.labels].map((label) => label.textContent).join(" ") : "",
    /^(BUTTON|A|SUMMARY)$/.test(element.tagName) ? element.textContent : "", element.title,
  ].find((name) => name?.trim())?.trim() ?? "";
  const called = (element) => `${element.closest("section[id], header, main")?.id ?? ""}${element.closest("[data-lane]") ? `, lane ${element.closest("[data-lane]").dataset.lane}` : ""} ${element.tagName.toLowerCase()}${element.type ? `[${element.type}]` : ""} “${nameOf(element).slice(0, 60)}”`;
  /** What stands for an element that is drawn anew; radio buttons of a group, and the requests of a column, are one stop. */
  const keyOf = (element) => {
    if (element.type === "radio") return `radio ${element.name}`;
    if (element.matches(".chip")) return `chip ${element.closest("[data-lane]")?.dataset.lane}`;
    return `${element.closest("section[id]")?.id} ${element.dataset.testid ?? ""} ${called(element)}`;
  };
  const kindOf = (element) => {
    const tag = element.tagName.toLowerCase();
    if (tag === "input") return { range: "range", checkbox: "checkbox", radio: "radio", file: "file" }[element.type] ?? "text";
    if (tag === "textarea") return "text";
    if (tag === "button" || tag === "a") return "press";
    if (tag === "summary" || tag === "select") return tag;
    if (element.closest("figure.plot")) return "plot";
    return element.getAttribute("role") === "slider" ? "slider" : "scroller";
  };
  const looks = (element) => {
    const s = getComputedStyle(element);
    return [s.outlineStyle, s.outlineWidth, s.outlineColor, s.outlineOffset, s.boxShadow, s.borderTopColor, s.backgroundColor, s.textDecorationLine].join("|");
  };
  const rgb = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const paper = (element) => {
    for (let at = element.parentElement; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  /** The contrast of the outline with what is around the element; 0 where there is none. */
  const outlined = (element) => {
    const s = getComputedStyle(element);
    if (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 1) return 0;
    const [a, b] = [light(rgb(s.outlineColor)), light(paper(element))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const onScreen = (element) => {
    const r = element.getBoundingClientRect();
    const [left, right] = [Math.max(r.left, 0), Math.min(r.right, innerWidth)], [top, bottom] = [Math.max(r.top, 0), Math.min(r.bottom, innerHeight)];
    if (right - left < 1 || bottom - top < 1) return false;
    const hit = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return Boolean(hit && (element.contains(hit) || hit.contains(element)));
  };
  const value = (element) => ({
    range: () => element.value, text: () => element.value, select: () => element.value, checkbox: () => String(element.checked),
    radio: () => document.querySelector(`input[name="${element.name}"]:checked`)?.value ?? "", press: () => String(clicks),
    summary: () => String(element.parentElement.open), plot: () => element.closest("figure").querySelector(".plot-readout")?.textContent ?? "",
    scroller: () => `${element.scrollLeft} ${element.scrollTop}`, slider: () => element.getAttribute("aria-valuenow"), file: () => "",
  })[kindOf(element)]();
  addEventListener("click", (event) => {
    if (!armed) return;
    clicks += 1;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  window.walk = {
    /** The stop at the focus, or null where nothing of the page has it. */
    here() {
      const element = document.activeElement;
      if (!element || element === document.body || element === document.documentElement || !document.hasFocus()) return null;
      const faults = [];
      if (last && last.element !== element && last.element.isConnected) {
        if (!(last.element.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) faults.push("comes before the stop before it in the document");
        if (looks(last.element) === last.looks) faults.push(`looks the same with and without the focus: ${last.called}`);
      }
      if (!nameOf(element)) faults.push("has no name");
      if (!onScreen(element)) faults.push("is not on the screen when it has the focus");
      const contrast = outlined(element);
      if (contrast < 3) faults.push(`has no outline of contrast 3 (${contrast.toFixed(1)})`);
      const again = seen.has(element);
      seen.add(element);
      keys.add(keyOf(element));
      last = { element, looks: looks(element), called: called(element) };
      return { number: number(element), section: element.closest("section[id]")?.id ?? "", called: called(element), kind: kindOf(element), faults, again, scrolls: element.scrollWidth > element.clientWidth + 1 };
    },
    value: () => value(document.activeElement),
    /** Whether a value's slider or list is at its end. */
    atEnd: () => {
      const element = document.activeElement;
      return element.tagName === "SELECT" ? element.selectedIndex === element.options.length - 1 : Number(element.value) >= Number(element.max);
    },
    arm: (on) => { armed = on; },
    forget: () => { last = null; },
    /** What could have the focus and did not get it. */
    missed: () => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
      .filter((e) => e.tabIndex >= 0 && !e.disabled && !seen.has(e) && e.checkVisibility() && !keys.has(keyOf(e)))
      .map(called),
  };
}

const soon = async (driver, before) => {
  for (let tries = 0; tries < 20; tries += 1) {
    const now = await driver.run("walk.value()");
    if (now !== before) return now;
    await new Promise((done) => setTimeout(done, 25));
  }
  return before;
};

/** Presses a key at the focus; a fault where nothing comes of it. */
async function expectChange(driver, key, faults) {
  const before = await driver.run("walk.value()");
  await driver.press(key);
  if ((await soon(driver, before)) === before) faults.push(`does nothing on ${key}`);
}

/** Uses the control at the focus as its kind is used, and leaves it as it was. */
async function use(driver, { kind, scrolls }) {
  const faults = [];
  const there = (key) => expectChange(driver, key, faults);
  if (kind === "range" || kind === "select") {
    const [on, back] = kind === "range" ? ["ArrowRight", "ArrowLeft"] : ["ArrowDown", "ArrowUp"];
    const end = await driver.run("walk.atEnd()");
    await there(end ? back : on);
    await there(end ? on : back);
  } else if (kind === "press") {
    await driver.run("walk.arm(true)");
    await there("Enter");
    await driver.run("walk.arm(false)");
  } else if (kind === "checkbox") {
    await there("Space");
    await new Promise((done) => setTimeout(done, 150)); // a reader does not press twice within a frame
    await there("Space");
  } else if (kind === "radio") await there("ArrowDown");
  else if (kind === "summary") {
    await there("Enter");
    if ((await driver.run("walk.value()")) === "false") await there("Space");
  } else if (kind === "text") {
    await driver.press("End");
    await there("7");
    await there("Backspace");
  } else if (kind === "plot" || kind === "slider") await there("ArrowRight");
  else if (kind === "scroller" && scrolls) await there("ArrowRight");
  return faults;
}

/** Walks from the start of the page to its end; the stops, and what was wrong with each. */
export async function walkThrough(driver, { most = 600 } = {}) {
  const stops = [], faults = [];
  const missed = async () => {
    await driver.settle();
    return (await driver.run("walk.missed()")).map((called) => `never gets the focus: ${called}`);
  };
  for (let step = 0; step < most; step += 1) {
    await driver.press("Tab");
    const stop = await driver.run("walk.here()");
    if (!stop && stops.length) return { stops, faults: [...faults, ...(await missed())] };
    if (!stop) continue;
    if (stops.length > 1 && stop.number === stops[0].number) return { stops, faults: [...faults, ...(await missed())] };
    if (stop.again && stop.kind !== "radio") {
      return { stops, faults: [...faults, `the walk comes back to ${stop.called} and does not end`] };
    }
    const before = stops.at(-1)?.section;
    stops.push(stop);
    faults.push(...stop.faults.map((fault) => `${stop.called} ${fault}`), ...(await use(driver, stop)).map((fault) => `${stop.called} ${fault}`));
    // What a section's controls began is over before the next section is walked through.
    if (before !== undefined && before !== stop.section) await driver.settle();
  }
  return { stops, faults: [...faults, `no end after ${most} stops`] };
}
