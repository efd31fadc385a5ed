// Serves a built page from a sub-path, and opens it in headless Chromium. Used by the tests here, by
// scripts/*.mjs and by the benchmarks. CHROMIUM and WARMROUTE_PLAYWRIGHT tell where the browser and playwright-core are.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("../..", import.meta.url));
const cache = process.env.WARMROUTE_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "warmroute");
const { chromium } = createRequire(import.meta.url)(
  process.env.WARMROUTE_PLAYWRIGHT ?? join(cache, "playwright-core-1.60.0/node_modules/playwright-core"),
);

const types = {
  ".css": "text/css", ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".json": "application/json",
  ".mjs": "text/javascript", ".png": "image/png", ".svg": "image/svg+xml", ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
};

/** The page's address is new at every visit; files with a hash in their names are for ever, others for a while. */
const lifetime = (name) => {
  if (extname(name) === ".html") return "no-cache";
  return /-[0-9a-f]{16}/.test(name) ? "public, max-age=31536000, immutable" : "public, max-age=86400";
};

/**
 * Serves a folder (dist/ by default) on a free port of loopback, under `/some/where/`; `headers` come with all of it.
 * `compressed` serves as a good host would: gzip, and a lifetime for each file. `sent` is what went out: name and bytes.
 */
export async function serve(folder = process.env.WARMROUTE_DIST ?? join(root, "dist"), headers = {}, { compressed = false } = {}) {
  const base = "/some/where/";
  const sent = [];
  const zipped = new Map();
  const zip = (name, body) => {
    if (!zipped.has(name)) zipped.set(name, gzipSync(body, { level: 9 }));
    return zipped.get(name);
  };
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    try {
      if (!path.startsWith(base)) throw new Error("outside the sub-path");
      const name = normalize(path.slice(base.length) || "index.html");
      if (name.startsWith("..")) throw new Error("outside the folder");
      let body = await readFile(join(folder, name));
      const own = { "content-type": types[extname(name)] ?? "application/octet-stream", ...headers };
      if (compressed) {
        Object.assign(own, { "cache-control": lifetime(name), vary: "accept-encoding" });
        if (/\bgzip\b/.test(request.headers["accept-encoding"] ?? "") && extname(name) !== ".png") {
          own["content-encoding"] = "gzip";
          body = zip(name, body);
        }
      }
      sent.push({ name, bytes: body.length });
      response.writeHead(200, own).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${server.address().port}${base}`,
    sent,
    close: () => new Promise((done) => { server.closeAllConnections(); server.close(done); }),
  };
}

/** Headless Chromium. As root it needs --no-sandbox; it opens only what is served here. */
export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});

/**
 * Opens a new page with playwright's context options (viewport, colorScheme, deviceScaleFactor, …); `init` runs in it before
 * its own scripts do. Without `touch` nothing is touched, so that the page does not start.
 * `troubles` gathers console errors, exceptions, failed requests and requests to anywhere else.
 */
export async function open(browser, url, { init, touch = true, ...options } = {}) {
  const context = await browser.newContext(options);
  if (init) await context.addInitScript(init);
  const page = await context.newPage();
  const troubles = [];
  page.on("console", (message) => message.type() === "error" && troubles.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => troubles.push(`exception: ${error}`));
  page.on("requestfailed", (request) => troubles.push(`failed: ${request.url()} ${request.failure()?.errorText}`));
  page.on("response", (response) => response.status() >= 400 && troubles.push(`${response.status()}: ${response.url()}`));
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== new URL(url).origin) {
      troubles.push(`elsewhere: ${request.url()}`);
    }
  });
  await page.goto(url);
  // The page starts at the reader's first sign; until then it shows its default state, whatever the address says.
  if (touch && options.javaScriptEnabled !== false) {
    await page.mouse.move(1, 1);
    await page.waitForFunction(() => !document.querySelector("#app") || window.__warmrouteKillWorker);
  }
  return { page, troubles, close: () => context.close() };
}
