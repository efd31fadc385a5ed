// Run by trunk after each build (Trunk.toml). Names the worker's files after their content, so that no cache can pair an
// old worker with a new page. In release it also writes the page's markup into index.html, so that it is read before any
// script runs, and takes the script that trunk writes into index.html out of it, so that the page's policy need not allow
// any. What is to be hosted (and is not served by trunk, whose page loads itself anew) gets that policy, and a service
// worker that keeps the build's files for when there is no network.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const own = dirname(fileURLToPath(import.meta.url));
const at = (name) => join(process.env.TRUNK_STAGING_DIR, name);
const read = (name) => readFileSync(at(name), "utf8");
const hashed = (...texts) => {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text);
  return hash.digest("hex").slice(0, 16);
};
const replaceOnce = (text, from, to) => {
  if (text.split(from).length !== 2) throw new Error(`expected exactly one ${from}`);
  return text.replace(from, () => to);
};

/** What the page may load and do: its own files and WebAssembly. */
const POLICY = [
  "default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
  "worker-src 'self'", "manifest-src 'self'", "base-uri 'none'", "form-action 'none'",
].join("; ");

nameWorker();
if (process.env.TRUNK_PROFILE === "release") {
  let html = read("index.html");
  const hosted = !html.includes("__TRUNK_ADDRESS__");
  html = replaceOnce(html, '<div id="app"></div>', `<div id="app">${markup()}</div>`);
  if (hosted) {
    html = takeScriptOut(html);
    html = replaceOnce(html, '<meta charset="utf-8">',
      `<meta charset="utf-8">\n    <meta http-equiv="Content-Security-Policy" content="${POLICY}">`);
  }
  writeFileSync(at("index.html"), html);
  if (hosted) writeServiceWorker();
}

/** The worker's module starts itself, and index.html knows its name. */
function nameWorker() {
  let js = read("worker.js");
  const hash = hashed(js, readFileSync(at("worker_bg.wasm")));
  js = replaceOnce(js, "'worker_bg.wasm'", `'worker-${hash}_bg.wasm'`);
  if (!js.includes("function __wbg_init(")) throw new Error("worker.js has no __wbg_init");
  writeFileSync(at(`worker-${hash}.js`), `${js}\nawait __wbg_init();\n`);
  unlinkSync(at("worker.js"));
  renameSync(at("worker_bg.wasm"), at(`worker-${hash}_bg.wasm`));
  writeFileSync(at("index.html"), replaceOnce(read("index.html"), 'content="worker.js"', `content="worker-${hash}.js"`));
}

/** The page in its default state, rendered natively by a program that is compiled for nothing else. */
function markup() {
  const flags = ["--quiet", "--locked", "--profile", "prerender", "--features", "prerender", "--bin", "prerender"];
  return execFileSync("cargo", ["run", ...flags], {
    cwd: join(own, ".."), encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "inherit"],
  });
}

/** The script that starts the page, in a file of its own; and nothing is fetched before it says so. */
function takeScriptOut(html) {
  const scripts = [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([^]*?)<\/script>/g)];
  if (scripts.length !== 1) throw new Error(`expected one script in index.html, not ${scripts.length}`);
  const [whole, script] = scripts[0];
  const [module, wasm] = [/from '([^']+)'/, /module_or_path: '([^']+)'/].map((found) => script.match(found)[1]);
  let js = readFileSync(join(own, "page/start.js"), "utf8");
  js = replaceOnce(js, '"./app.js"', JSON.stringify(module));
  js = replaceOnce(js, '"./app_bg.wasm"', JSON.stringify(wasm));
  const name = `start-${hashed(js)}.js`;
  writeFileSync(at(name), js);
  return replaceOnce(html, whole, `<script type="module" src="./${name}"></script>`)
    .replace(/\s*<link rel="(modulepreload|preload)"[^>]*>/g, "");
}

/** The service worker, with the names of all files of this build and a hash of what is in them. */
function writeServiceWorker() {
  const all = readdirSync(process.env.TRUNK_STAGING_DIR, { recursive: true, withFileTypes: true });
  const files = all.filter((entry) => entry.isFile())
    .map((entry) => relative(at("."), join(entry.parentPath ?? entry.path, entry.name)).replaceAll(sep, "/")).sort();
  const build = hashed(...files.flatMap((name) => [name, "\0", readFileSync(at(name))]));
  const js = readFileSync(join(own, "page/service_worker.js"), "utf8");
  const lists = replaceOnce(js, 'const FILES = ["index.html"];', `const FILES = ${JSON.stringify(files)};`);
  writeFileSync(at("service_worker.js"), replaceOnce(lists, 'const BUILD = "";', `const BUILD = "${build}";`));
}
