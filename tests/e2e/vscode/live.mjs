/**
 * The posterior of the program that is being written, as VS Code shows it: behind the steps, in the diagram, in its panel.
 *
 * QVR_LIVE_TIMES=20 measures how long figures take after a keystroke, of radon; run alone it wants `PATH` as `tests/e2e/fetch.py`
 * sets it: `PATH="$PWD/.cache/e2e/code/node_modules/.bin:$PATH" QVR_LIVE_TIMES=20 node tests/e2e/vscode/live.mjs`.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { loadavg } from "node:os";
import * as path from "node:path";
import { ROOT, Session, eventually, steps } from "./session.mjs";

const example = (name) => readFileSync(path.join(ROOT, "examples/statistics", name), "utf8");
const RADON = example("radon.qvr");
const TOML = '[run.radon]\ndata = "csv:radon.csv"\ntables = { County = "csv:radon_counties.csv" }\n';
const TIMES = Number(process.env.QVR_LIVE_TIMES ?? 3);

const session = await Session.start({
  files: { "radon.qvr": RADON, "radon.csv": example("radon.csv"), "radon_counties.csv": example("radon_counties.csv"), "qvr.toml": TOML },
  settings: { "qvr.live": "posterior" },
  size: { width: 1600, height: 900 },
});
const { page } = session;
const step = steps(session, "live");
const MU = RADON.split("\n").findIndex((line) => line.includes("sample mu"));
const LAST = RADON.split("\n")[MU].indexOf("2.0") + 4; // behind the number, counted from 1

const line = async () => (await session.shown()).split("\n").find((one) => one.includes("sample mu")) ?? "";

/** Processes that draw for the editor of this session: they stand in its folder. */
function drawing() {
  const all = execFileSync("ps", ["-eo", "pid,args"], { encoding: "utf8" }).split("\n");
  const mine = all.filter((one) => one.includes("qvr_core.runs.worker.live")).map((one) => Number(one.trim().split(" ")[0]));
  return mine.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").includes(session.home);
    } catch {
      return false; // it has ended meanwhile
    }
  });
}

/** Press a key; milliseconds until figures of the new text stand behind `mu`, looked at in each frame of the page. */
async function pressed(key) {
  await page.evaluate(() => {
    const began = { at: 0 };
    window.addEventListener("keydown", () => (began.at = performance.now()), { capture: true, once: true });
    globalThis.figures = new Promise((done) => {
      let old = false;
      const look = () => {
        const mu = [...document.querySelectorAll(".editor-instance .view-line")].find((one) => one.textContent.includes("sample\u00a0mu"))?.textContent ?? "";
        old ||= began.at > 0 && /before\s/.test(mu);
        if (old && /live\s.*±/.test(mu)) {
          done(performance.now() - began.at);
        } else {
          requestAnimationFrame(look);
        }
      };
      look();
    });
  });
  await page.keyboard.press(key);
  const late = new Promise((_, fail) => setTimeout(() => fail(new Error("no figures within 60 s")), 60_000).unref());
  return Promise.race([page.evaluate(() => globalThis.figures), late]);
}

try {
  let diagram;

  await step("the figures of the posterior stand behind the steps, marked live", async () => {
    await session.open("radon.qvr");
    await eventually("live figures", async () => /live [▁-█]+ .*± /.test(await line()), 60_000);
  });

  await step("each node that draws has a small density of it", async () => {
    await session.command("QVR: Show Diagram");
    await session.focusEditor();
    await session.goTo(MU + 1, LAST);
    await page.keyboard.press("5");
    diagram = await session.webview("g.node .density", 60_000);
    const told = await diagram.locator('[id="node:mu"] .density').getAttribute("aria-label");
    assert.match(told, /live posterior from/);
  });

  await step("a keystroke brings new figures", async () => {
    const times = [];
    for (let at = 0; at < TIMES; at += 1) {
      times.push(await pressed(at % 2 ? "5" : "Backspace"));
      await page.waitForTimeout(700);
    }
    times.sort((one, other) => one - other);
    const median = times[Math.floor(times.length / 2)];
    console.log(`radon's figures after the last keystroke: median ${median.toFixed(0)} ms of ${times.length} (${times.map((one) => one.toFixed(0)).join(" ")}), load ${loadavg()[0].toFixed(2)}`);
  });

  await step("keystrokes one behind the other leave one process, and nothing is stored", async () => {
    for (let at = 0; at < 12; at += 1) {
      await page.keyboard.press(at % 2 ? "Backspace" : "1", { delay: 20 });
      await page.waitForTimeout(320);
    }
    await eventually("figures of the text", async () => /live /.test(await line()) && !(await line()).includes("before "), 60_000);
    await eventually("one process", async () => drawing().length === 1);
    assert.ok(!existsSync(session.file(".qvr")));
  });

  await step("the panel shows it, and says what it is", async () => {
    await session.command("QVR: Show Prior or Live Posterior");
    const panel = await session.webview("table.parameters tbody", 60_000);
    assert.equal(await panel.locator("h1").innerText(), "Live posterior of radon");
    assert.match(await panel.locator("header .facts").innerText(), /chains of [\d,]+ draws/);
    await session.closePanel();
  });

  await step("what cannot be drawn is no message: figures of the text before say that they are", async () => {
    await session.focusEditor();
    const lines = RADON.split("\n");
    const sigma = lines.findIndex((one) => one.includes("sample sigma"));
    await session.goTo(sigma + 1, lines[sigma].indexOf("1.0") + 4);
    await page.keyboard.type(" + nothing(1.0");
    await eventually("old figures", async () => /before .*±/.test(await line()));
    await page.waitForTimeout(800);
    assert.equal(await page.locator(".notification-toast").count(), 0);
  });

  await step("with the setting off nothing is shown, and the process ends", async () => {
    session.configure({ "qvr.live": "off" });
    await eventually("no figures", async () => !(await line()).includes("live "));
    await eventually("no process", async () => drawing().length === 0);
  });

  assert.deepEqual(session.violations, []);
  console.log("ok all steps");
} finally {
  await session.stop();
}
