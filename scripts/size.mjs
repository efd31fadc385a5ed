// Prints how large the built page (dist/) is, file by file: as it is, with gzip -9 and with brotli -11; then what a reader
// loads before doing anything, with the program, and with the worker that the race starts. node scripts/size.mjs [FOLDER]
//   --json: as JSON, to be compared with another build's.
import { readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";

const args = process.argv.slice(2);
const folder = args.find((arg) => !arg.startsWith("--")) ?? fileURLToPath(new URL("../dist", import.meta.url));

/** The most that is loaded before interaction, compressed: the 200 KiB. */
const BUDGET = 200 * 1024;

const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name))).sort();
const sizes = files.map((name) => {
  const body = readFileSync(join(folder, name));
  return { name, raw: body.length, gzip: gzipSync(body, { level: 9 }).length, brotli: brotliCompressSync(body).length };
});
const sum = (name, of) => of.reduce(
  (all, size) => ({ name, raw: all.raw + size.raw, gzip: all.gzip + size.gzip, brotli: all.brotli + size.brotli }),
  { name, raw: 0, gzip: 0, brotli: 0 });

// What index.html asks for by itself; the program once the reader gives a sign (scripts/page/start.js), which starts the race;
// the service worker then fetches what is not in the browser's cache yet.
const of = (pattern) => sizes.filter(({ name }) => pattern.test(name));
const first = of(/^(index\.html|start-.*\.js|[^/]*\.css|static\/.*)$/);
const program = of(/^app-/);
const totals = [
  sum("before interaction", first), sum("with the program", [...first, ...program]),
  sum("with the race's worker", [...first, ...program, ...of(/^worker-/)]),
];

if (args.includes("--json")) {
  console.log(JSON.stringify({ files: sizes, totals, budget: BUDGET }, null, 2));
} else {
  const line = ({ name, raw, gzip, brotli }) => console.log(name.padEnd(36), ...[raw, gzip, brotli].map((n) => String(n).padStart(9)));
  console.log("bytes".padEnd(36), ...["raw", "gzip", "brotli"].map((word) => word.padStart(9)));
  sizes.forEach(line);
  totals.forEach(line);
  const part = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
  for (const { name, gzip, brotli } of totals) console.log(`${name}: ${part(gzip)} with gzip, ${part(brotli)} with brotli`);
  console.log(`the most before interaction: ${part(BUDGET)}`);
}
