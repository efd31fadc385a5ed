// The built page (dist/), in headless Chromium, from a sub-path: `node --test tests/browser/page.test.mjs`.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, serve } from "./harness.mjs";

let server, browser;
before(async () => { server = await serve(); browser = await launch(); });
after(async () => { await browser?.close(); await server?.close(); });

/** A test with a fresh page that must end without troubles. */
const pageTest = (name, run, options) => test(name, { timeout: 60_000 }, async () => {
  const opened = await open(browser, server.url, options);
  try {
    await run(opened.page);
    assert.deepEqual(opened.troubles, []);
  } finally {
    await opened.close();
  }
});

pageTest("the page starts its worker and shows the answer", async (page) => {
  await page.getByText("pong: hello").waitFor();
});

pageTest("the worker's files are named after their content", async (page) => {
  const name = await page.getAttribute("meta[name=worker]", "content");
  assert.match(name, /^worker-[0-9a-f]{16}\.js$/);
});
