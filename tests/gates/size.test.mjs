// What is sent before anybody has touched anything, compressed, beside what was kept of the last commit
// (benches/SIZES.json, written by scripts/gates.sh --keep).
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gate, kept, pages } from "./gate.mjs";

const BUDGET = 200;
/** Twice the budget, or a tenth more than the last commit had, is no accident. */
const FAR_OFF = 2 * BUDGET;
const SIZES = fileURLToPath(new URL("../../benches/SIZES.json", import.meta.url));
const own = pages({ compressed: true });
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
/** A file's name without the hash of its content. */
const plain = (name) => name.replace(/-[0-9a-f]{16}/, "");
const total = (sizes) => Object.values(sizes).reduce((sum, bytes) => sum + bytes, 0);

gate("compressed, before interaction", `≤ ${BUDGET} KiB (fails above ${FAR_OFF}, if it also grew by a tenth)`, async (context) => {
  const { page, close } = await own.page("", { touch: false, reducedMotion: "no-preference" });
  await page.getByTestId("race").waitFor();
  await page.waitForLoadState("networkidle");
  await page.waitForTimeout(3000); // what a page starts by itself is started by now
  await close();
  const now = {};
  // Each file once: what several workers ask for comes from the cache, or would with a real host.
  for (const { name, bytes } of own.server.sent) now[plain(name)] = bytes;
  const last = kept(SIZES)?.before_interaction ?? {};
  for (const name of [...new Set([...Object.keys(now), ...Object.keys(last)])].sort()) {
    const change = name in last && name in now ? ` (${now[name] >= last[name] ? "+" : "−"}${Math.abs(now[name] - last[name])} bytes)` : name in now ? " (new)" : " (gone)";
    context.diagnostic(`${name}: ${kib(now[name] ?? 0)}${change}`);
  }
  if (process.env.WARMROUTE_KEEP) writeFileSync(SIZES, `${JSON.stringify({ before_interaction: sorted(now) }, null, 2)}\n`);
  const [size, before] = [total(now), total(last)];
  const grew = before ? size / before - 1 : 0;
  const beside = before ? `, ${grew >= 0 ? "+" : "−"}${Math.abs(100 * grew).toFixed(1)} % against the last commit's ${kib(before)}` : ", nothing kept to compare";
  return { found: `${kib(size)}${beside}`, met: size <= BUDGET * 1024, failed: size > FAR_OFF * 1024 && grew > 0.1 };
});

const sorted = (sizes) => Object.fromEntries(Object.entries(sizes).sort(([a], [b]) => (a < b ? -1 : 1)));
