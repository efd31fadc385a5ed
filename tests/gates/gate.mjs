// What the gates share: a gate is a test that also writes down what it found beside what was asked. scripts/gates.sh
// prints the table of all (table.mjs) from the file that WARMROUTE_GATES names.
import assert from "node:assert/strict";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, open, serve } from "../browser/harness.mjs";

const write = (row) => process.env.WARMROUTE_GATES && appendFileSync(process.env.WARMROUTE_GATES, `${JSON.stringify(row)}\n`);
const firstLine = (error) => `error: ${String(error?.message ?? error).split("\n")[0]}`;

/**
 * A gate: `run` returns `{ found, met, failed }`. A structural gate fails where it is not met, and gives no `failed`; one
 * that measures says itself when it is far off. `needs` is a path or a reason: without it the gate is skipped, and says so.
 */
export function gate(name, asked, run, { timeout = 400_000, needs = [] } = {}) {
  const missing = needs.filter(({ path }) => !path || !existsSync(path)).map(({ what }) => what);
  if (missing.length) {
    const found = `skipped: there is no ${missing.join(", no ")}`;
    write({ name, asked, found, met: null });
    return test(name, { skip: found }, () => {});
  }
  return test(name, { timeout }, async (context) => {
    try {
      const { found, met, failed = !met } = await run(context);
      write({ name, asked, found: String(found), met });
      context.diagnostic(`found: ${found}; asked: ${asked}`);
      assert.ok(!failed, `${found}; asked: ${asked}`);
      return;
    } catch (error) {
      if (error.code !== "ERR_ASSERTION" || !error.message.endsWith(`asked: ${asked}`)) {
        write({ name, asked, found: firstLine(error), met: false });
      }
      throw error;
    }
  });
}

/**
 * A server and a browser for all gates of a file, and `page(query, options)`, which opens a page that is closed when the
 * file is done. No motion unless it is asked for.
 */
export function pages(serveOptions = {}) {
  const own = { opened: [] };
  before(async () => {
    own.server = await serve(undefined, {}, serveOptions);
    own.browser = await launch();
  });
  after(async () => { await own.browser?.close(); await own.server?.close(); });
  own.page = async (query = "", options = {}) => {
    const opened = await open(own.browser, own.server.url + query, { reducedMotion: "reduce", ...options });
    return opened;
  };
  return own;
}

/** The gate of a list of faults: met where there is none. The first few are shown, all are printed. */
export function faults(list, context, fine = "none") {
  for (const fault of list) context?.diagnostic(fault);
  return { found: list.length ? `${list.length}: ${list.slice(0, 2).join("; ")}` : fine, met: list.length === 0 };
}

export const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** What is kept of the last commit's sizes, or nothing. */
export const kept = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null);
