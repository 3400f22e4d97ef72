/** The pages that a browser shows, looked at by axe-core: the playground with its diagram and a run of its own, and `qvr play` with
 * the run panel; at 650 and 1,200 pixels nothing stands outside of a page or of a frame.  Pictures go into the folder that is named. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { serious } from "./axe.mjs";
import { letters } from "./pages/letters.mjs";
import { outside } from "./panel/page.mjs";
import { HANG, ROOT, Session } from "./playground/session.mjs";

const SHADES = [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["high contrast", { colorScheme: "dark", forcedColors: "active" }]]; // prettier-ignore
const WIDTHS = [650, 1200];
const pictures = process.argv[2];
const found = {};

/** Look at a page and at the frames in it. */
async function look(what, page) {
  for (const frame of page.frames()) {
    const name = frame === page.mainFrame() ? what : `${what}, frame ${path.basename(new URL(frame.url()).pathname)}`;
    const wrong = await serious(frame);
    console.log(`${wrong.length === 0 ? "ok" : "FAILED"} ${name}: ${wrong.length} serious`);
    if (wrong.length > 0) {
      found[name] = wrong;
    }
  }
}

/** See a page as narrow and as wide as windows are, and what of its frames is not seen. */
async function fits(what, page) {
  const before = page.viewportSize();
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: before.height });
    await page.waitForTimeout(300);
    for (const frame of page.frames()) {
      const wrong = [...(await outside(frame)), ...(await frame.evaluate(letters, frame.url().includes("diagram") ? 8 : 10))];
      const name = `${what} at ${width}, ${path.basename(new URL(frame.url()).pathname)}`;
      console.log(`${wrong.length === 0 ? "ok" : "FAILED"} ${name}: ${wrong.length} outside, or not to be read`);
      if (wrong.length > 0) {
        found[name] = wrong.slice(0, 10);
      }
    }
    if (pictures) {
      await page.screenshot({ path: path.join(pictures, `${what.replaceAll(/[^a-z0-9]+/gi, "-").toLowerCase()}-${width}.png`) });
    }
  }
  await page.setViewportSize(before);
}

const s = await Session.start();
for (const [name, colours] of SHADES) {
  const context = await s.browser.newContext({ viewport: { width: 1440, height: 860 }, ...colours });
  const page = await s.open("", context);
  await page.selectOption("#examples", await page.locator('#examples option[title="radon"]').first().getAttribute("value"));
  await s.checked();
  await s.diagram.locator("g.node").first().waitFor();
  await look(`playground, ${name}`, page);
  await page.click("#sample");
  await page.locator("#summary table").waitFor();
  await look(`playground with a run, ${name}`, page);
  await fits(`playground with a run, ${name}`, page);
  await context.close(); // its server goes on working else
}

const home = mkdtempSync(path.join(tmpdir(), "qvr-axe-"));
const folder = path.join(home, "models");
mkdirSync(folder);
for (const file of ["radon.qvr", "radon.csv", "radon_counties.csv"]) {
  cpSync(path.join(ROOT, "examples/statistics", file), path.join(folder, file));
}
writeFileSync(path.join(folder, "qvr.toml"), '[run.radon]\ndata = "csv:radon.csv"\ntables = { County = "csv:radon_counties.csv" }\n');
const play = spawn(path.join(ROOT, ".venv/bin/python"), ["-m", "qvr_core.cli", "play", folder, "--no-open"], { env: { ...process.env, PYTHONPATH: ROOT }, cwd: home, stdio: ["ignore", "pipe", "inherit"] });
try {
  const address = await new Promise((resolve, reject) => {
    let said = "";
    play.stdout.on("data", (chunk) => {
      said += chunk;
      const match = /http:\/\/\S+/.exec(said);
      if (match) {
        resolve(match[0]);
      }
    });
    play.on("exit", () => reject(new Error(`qvr play ended: ${said}`)));
  });
  for (const [name, colours] of SHADES) {
    const context = await s.browser.newContext({ viewport: { width: 1440, height: 860 }, ...colours });
    const page = await context.newPage();
    page.setDefaultTimeout(HANG);
    await page.goto(address);
    await page.frameLocator("#diagram").locator("g.node").first().waitFor();
    await look(`qvr play, ${name}`, page);
    await fits(`qvr play, ${name}`, page);
    await page.locator("#settings").fill("warmup=200 samples=200 chains=2 seed=1");
    await page.locator("#nuts").click();
    await page.waitForFunction(() => document.documentElement.dataset.run === "finished", undefined, { timeout: HANG });
    const panel = page.frameLocator("#run");
    await panel.getByRole("tab", { name: "Pairs" }).waitFor();
    for (const tab of await panel.getByRole("tab").allTextContents()) {
      await panel.getByRole("tab", { name: tab }).click();
      await page.waitForTimeout(200);
      await look(`qvr play, ${tab}, ${name}`, page);
      await fits(`qvr play, ${tab}, ${name}`, page);
    }
    await context.close();
  }
} finally {
  play.kill("SIGINT");
  await s.browser.close();
  s.server.close?.();
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 300 });
}
assert.deepEqual(found, {});
console.log("ok all steps");
process.exit(0);
