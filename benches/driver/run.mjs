// Runs the benchmark and prints its tables: node benches/driver/run.mjs [native] [node] [chromium] [--quick]
//   --ours PROGRAM --peer PROGRAM --folder FOLDER
// PROGRAM are the two sides' native programs, FOLDER has page.html and their wasm modules; scripts/bench.sh makes them.
// A thorough run of all hosts is also kept, as benches/RESULTS.md.
import { writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { HOSTS, inNode } from "./hosts.mjs";
import { QUICK, THOROUGH, alone, beside, question } from "./pairs.mjs";
import { render } from "./results.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean", default: false }, ours: { type: "string" }, peer: { type: "string" },
    folder: { type: "string" },
  },
});
const places = { programs: { ours: values.ours, peer: values.peer }, folder: values.folder };
const names = positionals.length ? positionals : Object.keys(HOSTS);
for (const name of names) if (!(name in HOSTS)) throw new Error(`no host \`${name}\`; it is ${Object.keys(HOSTS).join(" | ")}`);
const effort = values.quick ? QUICK : THOROUGH;
const say = (text) => process.stderr.write(`    ${text}\n`);

const prefill = (tokens) => ({ words: `prefill ${tokens}`, label: `prefill ${tokens}`, each: 1 });
const decode = (batch, context) => ({
  words: `decode ${batch} ${context}`, label: `decode ${batch} at ${context}, a token`, each: batch,
});
const WORKS = values.quick
  ? [prefill(64), prefill(432), decode(1, 432), decode(8, 432)]
  : [...[16, 64, 432, 1024, 2000].map(prefill), ...[432, 1600].flatMap((context) => [1, 4, 8].map((batch) => decode(batch, context)))];

/** Everything about one host. */
async function measure(name) {
  const host = await HOSTS[name](places);
  try {
    const rows = [];
    for (const work of WORKS) {
      const ours = question(host, "ours", work.words);
      const peer = question(host, "peer", work.words);
      const floor = question(host, "ours", `floor ${work.words}`);
      const found = await beside(ours, [peer, floor], effort);
      const flops = await host.ask("ours", `flops ${work.words}`, 1);
      rows.push({ ...work, flops, ours: found.ours, peer: found.others[0], floor: found.others[1] });
      say(`${name}: ${work.label}`);
    }
    const weights = await alone(question(host, "ours", "weights"), effort);
    const run = await alone(question(host, "ours", "run"), effort);
    return { name, version: host.version, rows, weights, run };
  } finally {
    await host.close();
  }
}

/** The engine natively beside the engine in wasm under node, for the works that have bars. */
async function nativeBesideWasm() {
  const [native, node] = [await HOSTS.native(places), await HOSTS.node(places)];
  try {
    const rows = [];
    for (const work of [prefill(432), decode(1, 432), decode(8, 432)]) {
      const ours = (host) => question(host, "ours", work.words);
      const found = await beside(ours(native), [ours(node)], effort);
      rows.push({ ...work, native: found.ours, wasm: found.others[0] });
      say(`native beside wasm: ${work.label}`);
    }
    return rows;
  } finally {
    await native.close();
    await node.close();
  }
}

/** Bytes of the engine's parts, and of whole wasm memories, each of an instance that has done nothing else. */
async function memory() {
  const after = async (side, words) => {
    const instance = await inNode(places.folder, side);
    const answer = instance.ask(words, 1);
    return { answer, bytes: instance.bytes(), instance };
  };
  const prompt = "prefill 2000";
  const store = await after("ours", `bytes store ${prompt}`);
  const scratch = await after("ours", `bytes scratch ${prompt}`);
  const parts = {
    weights: scratch.instance.ask("bytes weights", 1), store: store.answer, scratch: scratch.answer,
  };
  const wasm = [["ours, prefill 2000", store.bytes], ["candle, prefill 2000", (await after("peer", prompt)).bytes]];
  for (const policy of ["round-robin", "least-tokens", "prefix-affinity"]) {
    wasm.push([`ours, a default run, ${policy}`, (await after("ours", `run ${policy}`)).bytes]);
  }
  return { parts, wasm };
}

const started = { date: new Date(), load: loadavg()[0] };
const parts = names.includes("node") ? await memory() : null;
const both = names.includes("native") && names.includes("node");
const compared = both ? await nativeBesideWasm() : [];
const hosts = [];
for (const name of names) hosts.push(await measure(name));
const results = { effort, started, hosts, nativeBesideWasm: compared, memory: parts };
const text = render({ ...results, ended: { load: loadavg()[0] } });
process.stdout.write(text);
if (!values.quick && Object.keys(HOSTS).every((name) => names.includes(name))) {
  await writeFile(fileURLToPath(new URL("../RESULTS.md", import.meta.url)), text);
}
