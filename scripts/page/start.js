// Starts the page at the reader's first sign. Until then it is what was written when it was built, text, figures and tables,
// and whoever only reads its beginning has loaded no more than that. An address with parameters or a part's name, a reader who
// comes back and files that are kept here anyway are signs as well. scripts/after_build.mjs fills in the names.
const MODULE = "./app.js";
const WASM = "./app_bg.wasm";

const SIGNS = ["pointermove", "pointerdown", "touchstart", "wheel", "scroll", "keydown", "focusin", "click", "input", "change"];
const listening = { capture: true, passive: true };

/** What was pressed and what was changed before anything could hear it, in order. */
const early = new Map();

function sign({ type, target }) {
  if (type === "click" && target.closest("button")) early.set(target.closest("button"), null);
  if ((type === "input" || type === "change") && "value" in target) {
    early.set(target, { value: target.value, checked: target.checked });
  }
  start();
}

let begun = false;
async function start() {
  if (begun) return;
  begun = true;
  const loading = Promise.all([import(MODULE), fetch(WASM)]).catch(() => []);
  const [module, wasm] = await loading;
  // Where it did not arrive, the next sign is another try.
  if (!wasm?.ok) {
    begun = false;
    return;
  }
  await module.default({ module_or_path: wasm });
  // Effects and listeners are there a moment later.
  setTimeout(() => {
    for (const name of SIGNS) removeEventListener(name, sign, listening);
    early.forEach(again);
    keep();
  });
}

/** Does again what nothing heard. */
function again(done, element) {
  if (!element.isConnected) return;
  if (!done) return element.click();
  Object.assign(element, done);
  for (const name of ["input", "change"]) element.dispatchEvent(new Event(name, { bubbles: true }));
}

/** Keeps the build's files for when there is no network. Where that cannot be, nothing is missing. */
function keep() {
  if (isSecureContext && navigator.serviceWorker) navigator.serviceWorker.register("service_worker.js").catch(() => {});
}

for (const name of SIGNS) addEventListener(name, sign, listening);
const [visit] = performance.getEntriesByType("navigation");
if (location.search || location.hash || visit?.type !== "navigate" || navigator.serviceWorker?.controller) start();
