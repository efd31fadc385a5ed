// The built page before its scripts, without them, without a network, and under its policy, in headless Chromium:
// `node --test tests/browser/paint.test.mjs`.
import assert from "node:assert/strict";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch, open, serve } from "./harness.mjs";
import { pageTests, raceOver } from "./pages.mjs";

const pageTest = pageTests();
const timeout = 120_000;

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/** A server of its own for each test that takes it away or counts what it is asked. */
const withServer = (name, run) => test(name, { timeout }, async () => {
  const server = await serve();
  try { await run(server); } finally { await server.close(); }
});


/** Gathers what the page's policy forbids, from the page's first moment on. */
const watchPolicy = (page) => page.addInitScript(() => {
  globalThis.forbidden = [];
  document.addEventListener("securitypolicyviolation", (event) => {
    globalThis.forbidden.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
  });
});

withServer("without JavaScript everything that can be read is there", async (server) => {
  const { page, troubles, close } = await open(browser, server.url, { javaScriptEnabled: false });
  try {
    const text = await page.locator("body").innerText();
    for (const said of [
      "Which replica should get this request?", "Without JavaScript this page is to be read", "Requests are not units of work",
      "What a prefix block is", "Computed when this page was built", "The race is over", "What this leaves out", "The words",
    ]) assert.ok(text.includes(said), said);
    assert.ok(!text.includes("…\n"), "nothing waits for a script");
    // Numbers of the race, of twenty seeds and of the map, by the core.
    const results = page.locator("#results noscript table");
    assert.equal(await results.locator("tbody tr").count(), 3);
    assert.match(await results.locator("tbody tr").nth(2).innerText(), /0\.0648[^]*62\.4 %[^]*2 9 7 6/);
    assert.ok(await page.locator("#seeds noscript circle").count() >= 3 * 3 * 20);
    assert.match(await page.locator("#hot noscript td").last().innerText(), /\d+ %/);
    // Figures with lines and blocks in them, of a size to be seen.
    for (const figure of ["#results noscript .plot-surface", "#race noscript .lane", ".scatter svg", "#problem .work", "#costs .homes", "#cold-start table"]) {
      const box = await page.locator(figure).first().boundingBox();
      assert.ok(box && box.width > 150 && box.height > 20, `${figure}: ${JSON.stringify(box)}`);
    }
    assert.equal(await page.locator("#results noscript .plot-surface path.line.prefix-affinity").count() >= 3, true);
    // What needs a script is not offered.
    for (const button of await page.locator("button").all()) {
      if (await button.isVisible()) assert.ok(await button.evaluate((b) => b.closest(".map, .lane")), await button.innerText());
    }
    assert.deepEqual(await page.locator("input:visible, select:visible, textarea:visible").count(), 0);
    // What is preloaded for scripts is refused where scripts are.
    assert.deepEqual(troubles.filter((trouble) => !trouble.endsWith(".js csp")), []);
  } finally {
    await close();
  }
});

withServer("the page takes over what was there, moves nothing, and asks nobody else", async (server) => {
  const { page, troubles, close } = await open(browser, "about:blank", { reducedMotion: "reduce" });
  const elsewhere = [];
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(server.url)) elsewhere.push(request.url());
  });
  try {
    await watchPolicy(page);
    await page.addInitScript(() => {
      globalThis.shift = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) globalThis.shift += entry.value;
      }).observe({ type: "layout-shift", buffered: true });
      document.addEventListener("DOMContentLoaded", () => { globalThis.served = document.querySelector("h1"); });
    });
    await page.goto(server.url);
    await page.mouse.move(1, 1);
    await raceOver(page);
    assert.ok(await page.evaluate(() => globalThis.served === document.querySelector("h1") && served.isConnected), "not rendered anew");
    assert.ok(await page.evaluate(() => globalThis.shift) < 0.02, "nothing moved");
    assert.equal(await page.getByTestId("lane-round-robin").count(), 1);
    for (const section of await page.locator("section").all()) await section.scrollIntoViewIfNeeded();
    await page.waitForTimeout(500);
    assert.deepEqual(await page.evaluate(() => globalThis.forbidden), []);
    assert.deepEqual(elsewhere, []);
    assert.equal(await page.evaluate(() => document.cookie), "");
    assert.deepEqual(troubles.filter((trouble) => !trouble.startsWith("elsewhere")), []);
  } finally {
    await close();
  }
});

pageTest("the policy allows the page's own files and WebAssembly, and nothing else", "?backend=modelled", async (page, { troubles }) => {
  const policy = await page.getAttribute('meta[http-equiv="Content-Security-Policy"]', "content");
  assert.match(policy, /^default-src 'none';/);
  assert.ok(!/unsafe-(inline|eval'|hashes)(?<!wasm-unsafe-eval')|https?:|\*|data:/.test(policy), policy);
  await raceOver(page);
  assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("[style], style, script:not([src])")]
    .map((element) => element.outerHTML.slice(0, 80))), [], "nothing inline");
  // It holds: what it forbids does not happen.
  const blocked = await page.evaluate(async () => {
    const heard = new Promise((done) => document.addEventListener("securitypolicyviolation", (e) => done(e.effectiveDirective)));
    const script = document.createElement("script");
    script.textContent = "globalThis.ran = true";
    document.head.append(script);
    return [await heard, globalThis.ran ?? false];
  });
  assert.deepEqual(blocked, ["script-src-elem", false]);
  assert.match(troubles.splice(0).join(), /^console: Executing inline script violates [^]*The action has been blocked\.$/);
});

pageTest("an address is heard after the first render, and only then written", "?replicas=3&cold_precision=int4", async (page) => {
  await page.waitForFunction(() => document.querySelector("[data-testid=p-replicas]")?.value === "3");
  assert.equal(new URL(page.url()).search, "?replicas=3&cold_precision=int4");
  await raceOver(page);
  assert.equal(await page.getByTestId("lane-round-robin").locator(".replica").count(), 3);
});

/** Waits until the service worker has kept all files. */
const kept = (page) => page.evaluate(async () => {
  await navigator.serviceWorker.ready;
  while (!navigator.serviceWorker.controller) await new Promise((done) => { setTimeout(done, 50); });
});

withServer("after the first visit the page needs no network: it loads, computes a race and sweeps", async (server) => {
  const { page, close } = await open(browser, server.url, { reducedMotion: "reduce" });
  try {
    await raceOver(page);
    await kept(page);
    assert.equal(await page.evaluate(() => performance.getEntriesByType("navigation").length), 1, "it did not load itself anew");
    const figures = await page.getByTestId("row-prefix-affinity").innerText();
    await server.close();
    await page.context().setOffline(true);
    await page.reload();
    await raceOver(page);
    assert.equal(await page.getByTestId("row-prefix-affinity").innerText(), figures);
    await page.goto(`${server.url}?replicas=2&requests=12`);
    await raceOver(page);
    assert.match(await page.getByTestId("row-round-robin").innerText(), /6 6/);
  } finally {
    await close();
  }
});

test("a newer build takes over once no page of the older one is open", { timeout }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "warmroute-"));
  await cp(process.env.WARMROUTE_DIST ?? fileURLToPath(new URL("../../dist", import.meta.url)), folder, { recursive: true });
  const server = await serve(folder);
  const change = async (name, from, to) => {
    const text = await readFile(join(folder, name), "utf8");
    assert.equal(text.split(from).length, 2, from);
    await writeFile(join(folder, name), text.replace(from, to));
  };
  const { page, troubles, close } = await open(browser, server.url, { reducedMotion: "reduce" });
  try {
    await kept(page);
    const [old] = await page.evaluate(() => caches.keys());
    assert.ok(old.startsWith(`warmroute ${server.url} `), old);
    await page.evaluate(() => caches.open("someone else's"));
    await change("index.html", "<title>warmroute:", "<title>newer: warmroute:");
    const build = (await readFile(join(folder, "service_worker.js"), "utf8")).match(/BUILD = "([0-9a-f]{16})"/)[1];
    await change("service_worker.js", `"${build}"`, '"0123456789abcdef"');
    await page.evaluate(async () => {
      const registration = await navigator.serviceWorker.ready;
      await registration.update();
      while (!registration.waiting) await new Promise((done) => { setTimeout(done, 50); });
    });
    await page.reload();
    await raceOver(page);
    assert.match(await page.title(), /^warmroute/, "the older build stays whole while it is open");
    const context = page.context();
    await page.goto("about:blank");
    const next = await context.newPage();
    await next.waitForTimeout(500);
    await next.goto(server.url);
    await next.waitForFunction(async (name) => !(await caches.keys()).includes(name), old, { timeout: 10_000 });
    assert.match(await next.title(), /^newer: /);
    assert.deepEqual((await next.evaluate(() => caches.keys())).sort(), ["someone else's", old.replace(build, "0123456789abcdef")]);
    assert.deepEqual(troubles, []);
  } finally {
    await close();
    await server.close();
    await rm(folder, { recursive: true });
  }
});

withServer("nothing more is loaded before the reader gives a sign, and what was pressed early is not lost", async (server) => {
  const { page, troubles, close } = await open(browser, "about:blank", { reducedMotion: "reduce", touch: false });
  const asked = [];
  page.on("request", (request) => asked.push(request.url().slice(server.url.length)));
  try {
    await page.goto(server.url);
    await page.waitForTimeout(1500);
    assert.deepEqual(asked.filter((name) => /^app-|^worker-|^service/.test(name)), []);
    // Slower than the reader.
    await page.route("**/app-*.wasm", async (route) => { await new Promise((done) => { setTimeout(done, 1000); }); await route.continue(); });
    await page.getByTestId("p-replicas").evaluate((input) => {
      input.value = "2";
      input.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await page.locator("#blocks button").evaluate((button) => button.click());
    await raceOver(page);
    assert.equal(new URL(page.url()).search, "?replicas=2");
    assert.match(await page.getByTestId("blocks-said").innerText(), /^0 of 6 blocks are found/);
    assert.deepEqual(troubles.filter((trouble) => !trouble.startsWith("elsewhere")), []);
  } finally {
    await close();
  }
});

withServer("on paper nothing is cut off and nothing waits to be pressed", async (server) => {
  const { page, close } = await open(browser, server.url, { reducedMotion: "reduce", colorScheme: "dark", viewport: { width: 720, height: 1000 } });
  try {
    await raceOver(page);
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("button:visible").evaluateAll((all) => all.filter((b) => !b.closest(".map, .lane")).length), 0);
    assert.equal(await page.locator("input:visible, select:visible, textarea:visible").count(), 0);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    const cut = await page.evaluate(() => [...document.querySelectorAll(".scroll, .cold-scroll, .lane, figure")]
      .filter((box) => box.getClientRects().length && box.scrollWidth > box.clientWidth + 2).map((box) => box.className || box.tagName));
    assert.deepEqual(cut, []);
  } finally {
    await close();
  }
});
