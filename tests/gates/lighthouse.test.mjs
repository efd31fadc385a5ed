// Lighthouse's scores of the built page, as a phone would load it (simulated throttling), from a host that compresses.
// Performance is the median of three runs; the other categories must hold in each.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { serve } from "../browser/harness.mjs";
import { gate, median } from "./gate.mjs";

/** A busy machine costs half of the points: what it blocks is multiplied by four. Below this the page itself is at fault. */
const FAR_OFF = 30;
const RUNS = 3;
const folder = process.env.WARMROUTE_LIGHTHOUSE ?? "";
const needs = [{ what: "lighthouse", path: folder }];
const categories = ["performance", "accessibility", "best-practices", "seo"];

const load = (path) => import(pathToFileURL(join(folder, path)));
let reports = [];
before(async () => {
  if (!folder || !existsSync(folder)) return;
  const { default: lighthouse } = await load("lighthouse/core/index.js");
  const { launch } = await load("chrome-launcher/dist/index.js");
  const server = await serve(undefined, {}, { compressed: true });
  try {
    for (let run = 0; run < RUNS; run += 1) {
      const chrome = await launch({
        chromePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
        chromeFlags: ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"],
      });
      try {
        const { lhr } = await lighthouse(server.url, { port: chrome.port, onlyCategories: categories, output: "json", logLevel: "error" });
        reports.push(lhr);
      } finally {
        await chrome.kill();
      }
    }
  } finally {
    await server.close();
  }
}, { timeout: 400_000 });
after(() => { reports = []; });

const scores = (category) => reports.map((lhr) => Math.round(100 * (lhr.categories[category].score ?? 0)));
const seconds = (audit) => `${(median(reports.map((lhr) => lhr.audits[audit].numericValue)) / 1000).toFixed(1)} s`;
/** What cost points in any run: audit, and the first thing it names. */
const lost = (category) => [...new Set(reports.flatMap((lhr) => lhr.categories[category].auditRefs
  .filter(({ id, weight }) => weight > 0 && lhr.audits[id].score !== null && lhr.audits[id].score < 1)
  .map(({ id }) => {
    const [first] = lhr.audits[id].details?.items ?? [];
    return `${id}${first ? `: ${first.node?.snippet ?? first.description ?? first.source ?? JSON.stringify(first)}`.slice(0, 200) : ""}`;
  })))];

gate("Lighthouse, performance", `≥ 95 (fails below ${FAR_OFF})`, async (context) => {
  const all = scores("performance");
  const score = median(all);
  for (const one of lost("performance")) context.diagnostic(one);
  const paint = `FCP ${seconds("first-contentful-paint")}, LCP ${seconds("largest-contentful-paint")}`;
  const rest = `TBT ${seconds("total-blocking-time")}, CLS ${median(reports.map((lhr) => lhr.audits["cumulative-layout-shift"].numericValue)).toFixed(3)}`;
  return { found: `${score} (${all.join(", ")}); ${paint}, ${rest}`, met: score >= 95, failed: score < FAR_OFF };
}, { needs });

for (const category of categories.slice(1)) {
  gate(`Lighthouse, ${category.replace("-", " ")}`, "100", async (context) => {
    const least = Math.min(...scores(category));
    for (const one of lost(category)) context.diagnostic(one);
    return { found: [least, ...lost(category)].join("; "), met: least === 100 };
  }, { needs });
}
