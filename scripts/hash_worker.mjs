// Run by trunk after each build (Trunk.toml): names the worker's files after their content, so that no cache
// can pair an old worker with a new page, and makes the worker's module start itself.
import { createHash } from "node:crypto";
import { readFileSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const at = (name) => join(process.env.TRUNK_STAGING_DIR, name);
const replaceOnce = (text, from, to) => {
  if (text.split(from).length !== 2) throw new Error(`expected exactly one ${from}`);
  return text.replace(from, () => to);
};

let js = readFileSync(at("worker.js"), "utf8");
const wasm = readFileSync(at("worker_bg.wasm"));
const hash = createHash("sha256").update(js).update(wasm).digest("hex").slice(0, 16);

js = replaceOnce(js, "'worker_bg.wasm'", `'worker-${hash}_bg.wasm'`);
if (!js.includes("function __wbg_init(")) throw new Error("worker.js has no __wbg_init");
writeFileSync(at(`worker-${hash}.js`), `${js}\nawait __wbg_init();\n`);
unlinkSync(at("worker.js"));
renameSync(at("worker_bg.wasm"), at(`worker-${hash}_bg.wasm`));

const html = readFileSync(at("index.html"), "utf8");
writeFileSync(at("index.html"), replaceOnce(html, "worker.js", `worker-${hash}.js`));
