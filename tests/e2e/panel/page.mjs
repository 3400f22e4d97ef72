/** The run panel as VS Code shows it, without VS Code: its page, a theme's colours, and runs of an example. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "../../../vscode-extension/node_modules/esbuild/lib/main.js";
import { chromium } from "../../../vscode-extension/node_modules/playwright-core/index.mjs";

const HERE = path.dirname(fileURLToPath(import.meta.url));
export const ROOT = path.resolve(HERE, "../../..");
/** The colours of VS Code's own themes, read off a real one. */
export const THEMES = JSON.parse(readFileSync(path.join(HERE, "themes.json"), "utf8"));
const EXTENSION = path.join(ROOT, "vscode-extension");

export function browse() {
  return chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"] });
}

/** Runs of an example of examples/statistics in a folder of their own, one for each list of arguments, in this order. */
export function runsOf(program, ...each) {
  const folder = mkdtempSync(path.join(tmpdir(), "qvr-panel-"));
  cpSync(path.join(ROOT, "examples/statistics"), folder, { recursive: true });
  for (const args of each) {
    execFileSync(path.join(ROOT, ".venv/bin/python"), ["-m", "qvr_core.cli", "run", ...args, `${program}.qvr`], { cwd: folder, env: { ...process.env, PYTHONPATH: ROOT }, stdio: "ignore" });
  }
  const runs = path.join(folder, ".qvr/runs");
  return readdirSync(runs).filter((name) => name.includes(program)).sort().map((name) => path.join(runs, name));
}

/** The page's scripts, and the functions of the extension that fold a run's events. */
export async function bundle() {
  const options = { bundle: true, write: false, loader: { ".css": "text" }, target: "chrome120", logLevel: "error" };
  const [page, state] = await Promise.all([
    build({ ...options, entryPoints: [path.join(EXTENSION, "webviews/run/main.ts")], format: "iife" }),
    build({ ...options, entryPoints: [path.join(EXTENSION, "src/runs/state.ts")], format: "esm", platform: "node" }),
  ]);
  const { emptyRun, take } = await import(`data:text/javascript;base64,${Buffer.from(state.outputFiles[0].text).toString("base64")}`);
  return { script: page.outputFiles[0].text, emptyRun, take };
}

/** What the extension sends of a run that stands on the disk. */
export function told({ emptyRun, take }, directory) {
  const lines = readFileSync(path.join(directory, "events.log"), "utf8").split("\n").filter(Boolean);
  const events = lines.map((line) => JSON.parse(line.slice(line.indexOf("{"))));
  const run = events.reduce(take, emptyRun(path.basename(directory), "", directory, "", ""));
  return { run, events, summary: JSON.parse(readFileSync(path.join(directory, "summary.json"), "utf8")) };
}

/** A page that shows the panel of `mine`, with `others` to compare it with. */
export async function openPanel(browser, bundled, { theme, width, mine, others = [] }) {
  const page = await browser.newPage({ viewport: { width, height: 800 }, deviceScaleFactor: 1 });
  const colours = Object.entries({ ...THEMES[theme], "--vscode-font-size": "13px", "--vscode-font-family": "sans-serif", "--vscode-editor-font-family": "monospace" });
  const shade = { light: "vscode-light", dark: "vscode-dark", contrast: "vscode-high-contrast", "contrast-light": "vscode-high-contrast-light" }[theme];
  await page.setContent(
    `<!DOCTYPE html><html lang="en" style="${colours.map(([name, value]) => `${name}: ${value.replaceAll('"', "'")}`).join("; ")}"><head><title>Run</title></head><body class="${shade}"><div id="root"></div></body></html>`,
  );
  await page.evaluate(() => {
    window.sent = [];
    let kept;
    window.acquireVsCodeApi = () => ({ postMessage: (message) => window.sent.push(message), getState: () => kept, setState: (next) => (kept = next) });
  });
  await page.addScriptTag({ content: bundled.script });
  const send = (message) => page.evaluate((data) => window.postMessage(data, "*"), message);
  const { run, summary } = told(bundled, mine);
  await send({ type: "run", run });
  await send({ type: "summary", summary, others: others.map((one) => ({ runId: path.basename(one), label: path.basename(one) })) });
  const compare = async (other) => {
    const { run: theirs, summary } = told(bundled, other);
    await send({ type: "compared", run: theirs, summary, differences: ["samples: 1000 here, 300 there"] });
  };
  await page.waitForTimeout(150);
  return { page, send, compare };
}

/** What of the page reaches past its right edge, with its text. */
export function outside(page) {
  return page.evaluate(() => {
    const wide = document.documentElement.clientWidth;
    const all = [...document.querySelectorAll("td, th, svg, p, li, button, .tile")];
    return all.filter((one) => one.getBoundingClientRect().right > wide + 0.5).map((one) => `${one.tagName} ${one.textContent.slice(0, 40)}`);
  });
}
