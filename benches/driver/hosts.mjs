// Where the two sides of the benchmark run: natively, in wasm under node, in wasm under headless Chromium.
// Each host has `version`, `ask(side, words, passes)`, which answers with a number, and `close()`.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { load } from "./sides.mjs";

/** Two processes that answer line by line, on one thread each. */
async function native({ programs }) {
  const env = { ...process.env, RAYON_NUM_THREADS: "1", CANDLE_NUM_THREADS: "1" };
  const start = (program) => {
    const child = spawn(program, ["--serve"], { env, stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return {
      async ask(words, passes) {
        child.stdin.write(`${passes} ${words}\n`);
        return Number((await lines.next()).value ?? NaN);
      },
      end: () => child.stdin.end(),
    };
  };
  const sides = { ours: start(programs.ours), peer: start(programs.peer) };
  return {
    version: "this machine's code",
    ask: (side, words, passes) => sides[side].ask(words, passes),
    close: async () => Object.values(sides).forEach((side) => side.end()),
  };
}

/** A new instance of a side's module in this process. */
export async function inNode(folder, side) {
  const at = join(folder, side, "side");
  return load(pathToFileURL(`${at}.js`).href, await readFile(`${at}_bg.wasm`));
}

/** Both modules in this process. */
async function node({ folder }) {
  const sides = { ours: await inNode(folder, "ours"), peer: await inNode(folder, "peer") };
  return {
    version: `node ${process.version}, V8 ${process.versions.v8}`,
    ask: async (side, words, passes) => sides[side].ask(words, passes),
    close: async () => {},
  };
}

/** Both modules in one page, isolated so that its clock is fine. */
async function chromium({ folder }) {
  // The harness needs playwright-core, which the other hosts do not.
  const { launch, open, serve } = await import("../../tests/browser/harness.mjs");
  const server = await serve(folder, {
    "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp",
  });
  const browser = await launch();
  const close = async () => {
    await browser.close();
    await server.close();
  };
  try {
    const { page, troubles } = await open(browser, server.url);
    await page.waitForFunction(() => "ask" in globalThis, null, { timeout: 60_000 }).catch(() => {
      throw new Error(`the page did not start: ${troubles.join("; ")}`);
    });
    if (!(await page.evaluate(() => crossOriginIsolated))) throw new Error("the page is not isolated: its clock is coarse");
    return {
      version: `Chromium ${browser.version()}`,
      ask: (side, words, passes) => page.evaluate((question) => globalThis.ask(...question), [side, words, passes]),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Every host by name; each takes where the programs and the wasm modules are. */
export const HOSTS = { native, node, chromium };
