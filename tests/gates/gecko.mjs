// Firefox through geckodriver, as far as the walk needs it: WebDriver over plain HTTP.
import { spawn } from "node:child_process";
import { createServer } from "node:net";

const freePort = () => new Promise((done) => {
  const probe = createServer().listen(0, "127.0.0.1", () => { const { port } = probe.address(); probe.close(() => done(port)); });
});

/** WebDriver's names of the keys that the walk presses; what else is pressed is a character. */
const KEYS = {
  Tab: "\uE004", Enter: "\uE007", Space: " ", ArrowLeft: "\uE012", ArrowUp: "\uE013", ArrowRight: "\uE014", ArrowDown: "\uE015",
  End: "\uE010", Home: "\uE011", Backspace: "\uE003", Shift: "\uE008",
};

/** A headless Firefox: `go(url)`, `run(expression)`, `press(key)`, `close()`. */
export async function firefox({ prefs = {}, width = 1280, height = 800 } = {}) {
  const port = await freePort();
  const gecko = spawn(process.env.GECKODRIVER_BIN, ["--host", "127.0.0.1", "--port", String(port)], { stdio: "ignore" });
  const ask = async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method, headers: { "content-type": "application/json" }, body: body && JSON.stringify(body),
    });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`${value.error}: ${value.message}`);
    return value;
  };
  for (let tries = 0; ; tries += 1) {
    try { await ask("GET", "/status"); break; } catch (error) {
      if (tries > 50) { gecko.kill(); throw error; }
      await new Promise((done) => setTimeout(done, 100));
    }
  }
  let session;
  try {
    session = await ask("POST", "/session", { capabilities: { alwaysMatch: {
      browserName: "firefox",
      "moz:firefoxOptions": { binary: process.env.FIREFOX, args: ["-headless", `--width=${width}`, `--height=${height}`], prefs },
    } } });
  } catch (error) {
    gecko.kill();
    throw error;
  }
  const at = (path) => `/session/${session.sessionId}${path}`;
  await ask("POST", at("/timeouts"), { script: 120_000, pageLoad: 60_000 });
  return {
    version: session.capabilities.browserVersion,
    go: (url) => ask("POST", at("/url"), { url }),
    /** The value of an expression in the page; a promise is waited for. */
    run: (expression) => ask("POST", at("/execute/sync"), { script: `return (${expression});`, args: [] }),
    press: (key) => ask("POST", at("/actions"), { actions: [{ type: "key", id: "keys", actions: [
      { type: "keyDown", value: KEYS[key] ?? key }, { type: "keyUp", value: KEYS[key] ?? key },
    ] }] }),
    close: async () => { await ask("DELETE", at("")).catch(() => {}); gecko.kill(); },
  };
}

/** Waits until an expression in the page is true. */
export async function until(browser, expression, seconds = 120) {
  const end = Date.now() + 1000 * seconds;
  while (!(await browser.run(expression))) {
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${expression}`);
    await new Promise((done) => setTimeout(done, 200));
  }
}
