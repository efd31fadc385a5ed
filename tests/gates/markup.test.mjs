// html-validate on the page as it is served, and on what the page makes of itself, at the start and after each figure ran;
// and the console, which is to stay empty all the while.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { faults, gate, pages } from "./gate.mjs";
import { runAll } from "./visit.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = process.env.WARMROUTE_HTML_VALIDATE;
const needs = [{ what: "html-validate", path: folder }];
const own = pages();

/** One line a fault. A document that a browser wrote has the browser's style: only what it means is asked of it. */
async function invalid(html, extend) {
  const { HtmlValidate, StaticConfigLoader } = await import(pathToFileURL(join(folder, "dist/esm/index.js")));
  const loader = new StaticConfigLoader({ root: true, extends: extend, rules });
  const report = await new HtmlValidate(loader).validateString(html);
  return report.results.flatMap(({ messages }) => messages)
    .map(({ ruleId, message, line, column, selector }) => `${ruleId}: ${message} at ${line}:${column} ${selector ?? ""}`);
}
const written = ["html-validate:standard", "html-validate:a11y", "html-validate:document"];
// Files are not pinned by their hash: a stale one in some cache must not stop the page (Trunk.toml). Lists may have names.
const rules = { "require-sri": "off", "aria-label-misuse": ["error", { allowAnyNamable: true }] };
const unique = (list) => [...new Set(list.map((line) => line.replace(/ at \d+:\d+/, "")))];

gate("html-validate, as served", "clean", async (context) =>
  faults(await invalid(await readFile(join(process.env.WARMROUTE_DIST ?? join(root, "dist"), "index.html"), "utf8"), written), context, "clean"), { needs });

gate("html-validate, as rendered", "clean, before and after each figure ran", async (context) => {
  const { page, close } = await own.page("?backend=modelled");
  await page.getByTestId("race").waitFor();
  const whole = async () => `<!doctype html>\n${await page.evaluate(() => document.documentElement.outerHTML)}`;
  const before = await invalid(await whole(), written);
  await runAll(page);
  const after = await invalid(await whole(), written);
  await close();
  return faults(unique([...before, ...after]), context, "clean");
}, { needs });

gate("console", "empty, with each figure run, and nothing asked of elsewhere", async (context) => {
  const { page, troubles, close } = await own.page("");
  const said = [];
  page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on("requestfailed", (request) => said.push(`failed: ${request.url()}`));
  await page.reload(); // from here on everything is heard, whatever its kind
  await runAll(page, { measure: true });
  await close();
  return faults([...new Set([...said, ...troubles])], context, "empty");
});
