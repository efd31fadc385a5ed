// What the test files here share: a server, a browser, and a fresh page a test.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch, open, serve } from "./harness.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * What the tests of one file share: a server and a browser for all of them, and `pageTest(name, query, run, options)`, a test
 * with a fresh page that must end without troubles. No motion unless it is asked for. With `commandLine`, what the tests ask
 * of the command line is built before their time counts.
 */
export function pageTests({ timeout = 120_000, commandLine = false } = {}) {
  let server, browser;
  before(async () => {
    if (commandLine) execFileSync("cargo", ["build", "--quiet", "--release", "--locked", "--bin", "warmroute"], { cwd: root });
    server = await serve();
    browser = await launch();
  });
  after(async () => { await browser?.close(); await server?.close(); });
  return (name, query, run, options = {}) => test(name, { timeout }, async () => {
    const opened = await open(browser, server.url + query, { reducedMotion: "reduce", acceptDownloads: true, ...options });
    try {
      await run(opened.page, opened);
      assert.deepEqual(opened.troubles, []);
    } finally {
      await opened.close();
    }
  });
}

export const id = (page, name) => page.getByTestId(name);
/** Waits until what stands under a name has these words. */
export const said = (page, name, words) => page.waitForFunction(
  ([name, words]) => document.querySelector(`[data-testid=${name}]`)?.textContent.includes(words), [name, words], { timeout: 120_000 });
/** Waits until every figure of the race is in the table. */
export const raceOver = (page) => page.waitForFunction(
  () => document.querySelector("[data-testid=verdict]")?.textContent.startsWith("The race is over"), null, { timeout: 120_000 });
export const sweepOver = (page) => said(page, "sweep-verdict", "The sweep is over");
