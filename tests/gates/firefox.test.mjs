// Firefox: the tests that run in a browser (tests/web*.rs), and the walk with the keyboard alone through the built page.
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { serve } from "../browser/harness.mjs";
import { faults, gate } from "./gate.mjs";
import { firefox, until } from "./gecko.mjs";
import { install, walkThrough } from "./walk.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const needs = [{ what: "Firefox", path: process.env.FIREFOX }, { what: "geckodriver", path: process.env.GECKODRIVER_BIN }];

gate("Firefox, tests in the browser", "all of tests/web*.rs pass", async (context) => {
  const files = readdirSync(`${root}/tests`).filter((name) => /^web.*\.rs$/.test(name)).flatMap((name) => ["--test", name.slice(0, -3)]);
  const { stdout, stderr } = await promisify(execFile)("wasm-pack", [
    "test", "--headless", "--firefox", "--geckodriver", process.env.GECKODRIVER_BIN, "--mode", "no-install", "--", "--locked", ...files,
  ], {
    cwd: root, maxBuffer: 1 << 26,
    env: { ...process.env, MOZ_HEADLESS: "1", WASM_BINDGEN_TEST_WEBDRIVER_JSON: process.env.WARMROUTE_WEBDRIVER_JSON ?? `${root}/webdriver.json` },
  }).catch((error) => error);
  const results = [...`${stdout}\n${stderr}`.matchAll(/test result: (\w+)\. (\d+) passed; (\d+) failed/g)];
  const sum = (at) => results.reduce((all, result) => all + Number(result[at]), 0);
  const met = results.length === files.length / 2 && sum(2) > 0 && sum(3) === 0 && results.every((result) => result[1] === "ok");
  if (!met) for (const line of `${stdout}\n${stderr}`.split("\n").slice(-40)) context.diagnostic(line);
  return { found: `${sum(2)} passed, ${sum(3)} failed, in ${results.length} of ${files.length / 2} files`, met };
}, { needs, timeout: 600_000 });

const over = `document.querySelector("[data-testid=verdict]")?.textContent.startsWith("The race is over")`;
const settle = async (browser) => {
  await browser.run(`document.querySelector("[data-testid=skip]")?.click()`);
  await until(browser, over);
};

gate("keyboard walk, Firefox", "every control reached, seen, named, used; in order; no trap", async (context) => {
  const server = await serve();
  const browser = await firefox({ prefs: { "ui.prefersReducedMotion": 1, "accessibility.tabfocus": 7 } });
  try {
    await browser.go(`${server.url}?backend=modelled`);
    await browser.press("Shift"); // the page starts at the reader's first sign
    await until(browser, over);
    // What is computed when it is seen.
    await browser.run(`document.getElementById("hot").scrollIntoView()`);
    await until(browser, `[...document.querySelectorAll("[data-testid=hot-map] td button")].every((cell) => cell.textContent !== "…")`);
    await browser.run(`document.getElementById("seeds").scrollIntoView()`);
    await until(browser, `document.querySelector("#seeds .strips")?.dataset.done === "20"`);
    await browser.run("scrollTo(0, 0)");
    await browser.run(`(${install})()`);
    const { stops, faults: found } = await walkThrough({ run: browser.run, press: browser.press, settle: () => settle(browser) });
    context.diagnostic(`Firefox ${browser.version}, ${stops.length} stops`);
    return faults([...new Set(found)], context, `${stops.length} stops, all fine`);
  } finally {
    await browser.close();
    await server.close();
  }
}, { needs, timeout: 300_000 });
