// Prints how large the built page (dist/) is, file by file: as it is, with gzip -9 and with brotli -11; then what a reader
// loads before doing anything, and with it the worker that the race starts. node scripts/size.mjs [FOLDER]
//   --json: as JSON, to be compared with another build's.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";

const args = process.argv.slice(2);
const folder = args.find((arg) => !arg.startsWith("--")) ?? fileURLToPath(new URL("../dist", import.meta.url));

/** The most that is loaded before interaction, compressed: the 200 KiB. */
const BUDGET = 200 * 1024;

const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(folder.length + 1)).sort();
const sizes = files.map((name) => {
  const body = readFileSync(join(folder, name));
  return { name, raw: body.length, gzip: gzipSync(body, { level: 9 }).length, brotli: brotliCompressSync(body).length };
});
const sum = (name, of) => of.reduce(
  (all, size) => ({ name, raw: all.raw + size.raw, gzip: all.gzip + size.gzip, brotli: all.brotli + size.brotli }),
  { name, raw: 0, gzip: 0, brotli: 0 });

// The service worker comes after all of it, and fetches again only what is not in the browser's cache.
const first = sizes.filter(({ name }) => /^(index\.html|start-|app-.*\.(js|wasm)$|[^/]*\.css$)/.test(name) || name === "static/favicon.svg");
const worker = sizes.filter(({ name }) => name.startsWith("worker-"));
const totals = [sum("before interaction", first), sum("with the race's worker", [...first, ...worker])];

if (args.includes("--json")) {
  console.log(JSON.stringify({ files: sizes, totals, budget: BUDGET }, null, 2));
} else {
  const line = ({ name, raw, gzip, brotli }) => console.log(name.padEnd(36), ...[raw, gzip, brotli].map((n) => String(n).padStart(9)));
  console.log("bytes".padEnd(36), ...["raw", "gzip", "brotli"].map((word) => word.padStart(9)));
  sizes.forEach(line);
  totals.forEach(line);
  const part = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
  console.log(`before interaction: ${part(totals[0].gzip)} with gzip, ${part(totals[0].brotli)} with brotli, of ${part(BUDGET)}`);
}
