// Takes the built page (dist/) to a PNG: node scripts/screenshot.mjs OUT.png [--width 1280] [--height 800]
//   [--theme light|dark] [--dpr 2] [--query '?key=value'] [--hash '#part'] [--wait MILLISECONDS] [--full]
import { parseArgs } from "node:util";
import { launch, open, serve } from "../tests/browser/harness.mjs";

const { values, positionals: [out] } = parseArgs({
  allowPositionals: true,
  options: {
    width: { type: "string", default: "1280" }, height: { type: "string", default: "800" },
    theme: { type: "string", default: "light" }, dpr: { type: "string", default: "2" },
    query: { type: "string", default: "" }, hash: { type: "string", default: "" },
    wait: { type: "string", default: "1000" }, full: { type: "boolean", default: false },
  },
});
if (!out) throw new Error("say where the PNG goes: node scripts/screenshot.mjs OUT.png");

const server = await serve();
const browser = await launch();
try {
  const { page, troubles } = await open(browser, server.url + values.query + values.hash, {
    viewport: { width: Number(values.width), height: Number(values.height) },
    colorScheme: values.theme, deviceScaleFactor: Number(values.dpr), reducedMotion: "reduce",
  });
  await page.waitForTimeout(Number(values.wait));
  await page.screenshot({ path: out, fullPage: values.full });
  for (const trouble of troubles) console.error(trouble);
  process.exitCode = troubles.length ? 1 : 0;
} finally {
  await browser.close();
  await server.close();
}
