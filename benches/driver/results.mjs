// Makes the benchmark's results a page of Markdown: the machine and versions, the bars, and a table for each host.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus } from "node:os";

/** A Markdown table of rows of text, the first one its head; columns as wide as they need. */
function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  const rule = `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`;
  return [line(rows[0]), rule, ...rows.slice(1).map(line)].join("\n");
}

/** Milliseconds, to three digits where there are not more before the point. */
const ms = (seconds) => (seconds < 1 ? (1e3 * seconds).toPrecision(3) : (1e3 * seconds).toFixed(0));
const times = ({ median, min, max }) => `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;
const inverse = ({ median, min, max }) => ({ median: 1 / median, min: 1 / max, max: 1 / min });
const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

/** The version that a lock file has of a package. */
function locked(name) {
  const lock = readFileSync(new URL("../peer/Cargo.lock", import.meta.url), "utf8");
  return lock.match(new RegExp(`name = "${name}"\nversion = "(.*)"`))[1];
}

/** One host's works. */
function works({ rows }) {
  return table([
    ["work", "ours ms", "candle ms", "candle ÷ ours", "floor ms", "ours ÷ floor", "floor GFLOP/s"],
    ...rows.map(({ label, each, flops, ours, peer, floor }) => [
      label, ms(ours.median / each), ms(peer.time.median / each), times(peer.ratio), ms(floor.time.median / each),
      times(inverse(floor.ratio)), (flops / floor.time.median / 1e9).toFixed(1),
    ]),
  ]);
}

/** Every bar on every host that it holds for: what, how much is asked, what was found, whether it is met. */
function bars({ hosts, nativeBesideWasm }) {
  const rows = [["bar", "where", "asked", "found", "met"]];
  const bar = (what, where, asked, found, met) => rows.push([what, where, asked, times(found), met ? "yes" : "**no**"]);
  for (const host of hosts.filter(({ name }) => name !== "native")) {
    const found = (words) => host.rows.find((row) => row.words === words);
    const atLeast = (words, what, least) => {
      const ratio = found(words)?.peer.ratio;
      if (ratio) bar(what, host.name, `≥ ${least}`, ratio, ratio.median >= least);
    };
    atLeast("prefill 432", "prefill 432, candle ÷ ours", 3.5);
    const above = found("prefill 432") && inverse(found("prefill 432").floor.ratio);
    if (above) bar("prefill 432, ours ÷ floor", host.name, "≤ 1.3", above, above.median <= 1.3);
    for (const [batch, least] of [[1, 3], [8, 6]]) {
      for (const context of [432, 1600]) {
        atLeast(`decode ${batch} ${context}`, `decode ${batch} at ${context}, candle ÷ ours`, least);
      }
    }
  }
  for (const { label, wasm } of nativeBesideWasm) {
    bar(`${label}, wasm ÷ native`, "native, node", "≥ 1", wasm.ratio, wasm.ratio.median >= 1);
  }
  return table(rows);
}

/** The whole page. */
export function render(results) {
  const { effort, started, ended, hosts, memory } = results;
  const rustc = execFileSync("rustc", ["--version"], { encoding: "utf8" }).trim();
  const lines = [
    "# Benchmarks",
    "",
    "Made by `scripts/bench.sh`; what is measured and how is in README.md.",
    "",
    `- ${started.date.toISOString().slice(0, 16).replace("T", " ")} UTC`,
    `- ${cpus()[0].model}, ${cpus().length} processors; load ${started.load.toFixed(1)} at the start, ${ended.load.toFixed(1)} at the end`,
    `- ${rustc}; candle ${locked("candle-transformers")}; ${hosts.map(({ version }) => version).join("; ")}`,
    `- ${effort.pairs} pairs of at least ${1e3 * effort.lasts} ms each; times and ratios are medians, with the least and greatest ratio of a pair`,
    "",
    "## Bars",
    "",
    bars(results),
  ];
  for (const host of hosts) {
    const title = host.name === "native" ? "Natively" : `In wasm: ${host.version}`;
    lines.push("", `## ${title}`, "", works(host), "");
    lines.push(
      `Weights made in ${ms(host.weights.median)} ms; a whole default run, its three policies one after the other, in ${ms(host.run.median)} ms.`,
    );
  }
  if (memory) {
    const { weights, store, scratch } = memory.parts;
    lines.push(
      "", "## Memory", "",
      `The engine's parts after a prefill of 2,000 tokens: weights ${megabytes(weights)} MB, keys and values ${megabytes(store)} MB, scratch ${megabytes(scratch)} MB. Whole wasm memories, each of an instance that did nothing else:`,
      "",
      table([["after", "wasm memory MB"], ...memory.wasm.map(([what, bytes]) => [what, megabytes(bytes)])]),
    );
  }
  return `${lines.join("\n")}\n`;
}
