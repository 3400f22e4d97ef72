/** Pictures taken from the real VS Code, light and dark: `node screenshots.mjs FOLDER [SCENE…]`; without names all scenes. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { ROOT, Session, eventually, example } from "./session.mjs";

const folder = path.resolve(process.argv[2] ?? path.join(ROOT, "docs/images"));
mkdirSync(folder, { recursive: true });
const THEMES = [["dark", "Default Dark Modern"], ["light", "Default Light Modern"]]; // prettier-ignore

const SCHOOLS = `object School : FinSet 8
program schools : School -> School
    data sigma : School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample theta : School <- Normal(mu, tau)
    observe y : School <- Normal(theta, sigma)
    return theta
`;
const SCHOOLS_DATA = "y,sigma\n28,15\n8,10\n-3,16\n7,11\n-1,9\n1,11\n18,10\n12,18\n";

async function lenses(page) {
  await eventually("lenses", async () => (await page.locator(".codelens-decoration").count()) > 0, 120_000);
}

/** A language model: an error with its hover, the diagram with and without it, a running fit. */
const model = {
  files() {
    const whole = readFileSync(example("bidirectional_rnn_lm.qvr"), "utf8");
    const topics = "import pydoc_data.topics as t; print(open(t.__file__, encoding='utf-8').read())";
    const book = execFileSync(path.join(ROOT, ".venv/bin/python"), ["-c", topics], { encoding: "utf8", maxBuffer: 1e8 });
    const toml = '[run.bidirectional_rnn_lm]\ndata = "text:book.txt"\nsteps = 2000\n';
    return { "bidirectional_rnn_lm.qvr": whole.slice(whole.indexOf("object Token")), "book.txt": book, "qvr.toml": toml };
  },
  async act(session, shot, files) {
    const { page } = session;
    const lines = files["bidirectional_rnn_lm.qvr"].split("\n");
    const at = (wanted, word) => {
      const line = lines.findIndex((one) => one.includes(wanted));
      return [line + 1, lines[line].indexOf(word) + 1];
    };
    await session.open("bidirectional_rnn_lm.qvr");
    await lenses(page);
    await page.keyboard.press("Control+B");

    // a live error with its hover
    await session.goTo(...at("object BwdHidden", "64"));
    await page.keyboard.press("Shift+End");
    await page.keyboard.type("32");
    await page.locator(".monaco-editor .squiggly-error").first().waitFor({ state: "attached" });
    await session.goTo(...at("let backbone", ">>"));
    await page.keyboard.press("Control+K");
    await page.keyboard.press("Control+I");
    await eventually("the hover", async () => (await page.locator(".monaco-hover-content").allInnerTexts()).join().includes("96"));
    await page.waitForTimeout(800);
    await shot("error");
    await page.keyboard.press("Escape");

    // the diagram beside the code: the mismatch in red, then fixed
    await session.command("QVR: Show Diagram");
    const diagram = await session.webview("g.node");
    await page.waitForTimeout(1200);
    await shot("mismatch");
    await session.focusEditor();
    await session.goTo(...at("object BwdHidden", "64"));
    await page.keyboard.press("Shift+End");
    await page.keyboard.type("64");
    await eventually("fixed", async () => (await diagram.locator(".mismatch").count()) === 0);
    await session.goTo(...at("morphism combine", "combine"));
    await eventually("the node is lit", async () => (await diagram.locator(".node.current").count()) === 1);
    await page.waitForTimeout(1200);
    await shot("diagram");
    await page.keyboard.press("Control+S");

    // a running fit
    await session.command("QVR: Fit by SVI");
    const run = await session.webview(".status");
    await run.locator(".uplot canvas").waitFor({ timeout: 90_000 });
    await eventually("half of the steps", async () => Number((await run.locator("progress").getAttribute("value")) ?? 0) > 900, 180_000);
    await page.waitForTimeout(300);
    await shot("run");
  },
};

/** Chains while they run. */
const chains = {
  size: { width: 1360, height: 900 },
  files: () => ({
    "schools.qvr": SCHOOLS,
    "d.csv": SCHOOLS_DATA,
    "qvr.toml": '[run.schools]\nalgorithm = "nuts"\ndata = "csv:d.csv"\nwarmup = 300\nsamples = 600\nchains = 4\nengine = "replay"\ntarget_accept = 0.6\n',
  }),
  async act(session, shot) {
    const { page } = session;
    await session.open("schools.qvr");
    await lenses(page);
    await page.keyboard.press("Control+B");
    await session.command("QVR: Sample by NUTS");
    const run = await session.webview(".status.running", 120_000);
    await eventually("half of the draws", async () => Number((await run.locator("progress").getAttribute("value")) ?? 0) > 600, 240_000);
    await page.waitForTimeout(300);
    await shot("chains");
  },
};

/** A table with one wrong column beside the program that is to read it. */
const data = {
  files: () => ({ "schools.qvr": SCHOOLS, "schools.csv": SCHOOLS_DATA.replace("1,11", "1,eleven").replaceAll(/$(?=\n)/gm, ",2003").replace("sigma,2003", "sigma,year") }),
  async act(session, shot) {
    const { page } = session;
    await session.open("schools.qvr");
    await lenses(page);
    await page.keyboard.press("Control+B");
    await session.command("QVR: Sample by NUTS");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "CSV file" }).click();
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "schools.csv" }).click();
    await session.webview(".verdict");
    await page.waitForTimeout(800);
    await shot("data");
  },
};

/** A home without the package, and an install that cannot reach anything. */
const install = {
  settings: { "qvr.interpreterPath": "" },
  env() {
    const home = mkdtempSync(path.join(tmpdir(), "qvr-home-"));
    const config = path.join(home, "pip.conf");
    writeFileSync(config, "[global]\nno-index = true\n");
    const python = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], { cwd: home, encoding: "utf8" }).trim();
    const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PIP_") && !["VIRTUAL_ENV", "PYTHONPATH"].includes(name)));
    return { ...clean, HOME: home, PIP_CONFIG_FILE: config, PATH: `${path.dirname(python)}:${process.env.PATH}` };
  },
  files: () => ({ "schools.qvr": SCHOOLS }),
  async act(session, shot) {
    const { page } = session;
    const toast = (text) => page.locator(".notification-toast", { hasText: text });
    await session.open("schools.qvr");
    await page.keyboard.press("Control+B");
    await toast("has no QVR language server").waitFor({ timeout: 60_000 });
    await toast("has no QVR language server").getByRole("button", { name: "Install", exact: true }).click();
    await toast("could not be installed").waitFor({ timeout: 120_000 });
    await page.waitForTimeout(500);
    await shot("install");
  },
};

/** Sixty stages, opened: readable, around the stage of the cursor, with the whole in a corner. */
const stages = {
  files() {
    const names = Array.from({ length: 60 }, (_, number) => `stage_${number}`);
    return { "deep.qvr": `object A : Real 8\n${names.map((name) => `morphism ${name} : A -> A [role=linear]\n`).join("")}let deep = ${names.join(" >> ")}\n` };
  },
  async act(session, shot) {
    const { page } = session;
    await session.open("deep.qvr");
    await page.keyboard.press("Control+B");
    await session.command("QVR: Show Diagram");
    const diagram = await session.webview("g.node");
    await page.waitForTimeout(800);
    await shot("folded");
    await diagram.locator('[id="node:fold_stage_0"]').click();
    await session.focusEditor();
    await session.goTo(32, 12);
    await eventually("stage 30 is lit", async () => (await diagram.locator('[id="node:stage_30"].current').count()) === 1);
    await page.waitForTimeout(800);
    await shot("stages");
  },
};

const SCENES = { model, chains, data, install, stages };
const asked = process.argv.slice(3);
for (const name of asked.length > 0 ? asked : Object.keys(SCENES)) {
  const scene = SCENES[name];
  for (const [light, theme] of THEMES) {
    const files = scene.files();
    const more = { ...(scene.env ? { env: scene.env() } : {}), ...(scene.settings ? { settings: scene.settings } : {}) };
    const session = await Session.start({ theme, files, ...more, size: scene.size ?? { width: 1360, height: 780 } });
    const shot = (label) => session.page.screenshot({ path: path.join(folder, `${label}-${light}.png`) });
    try {
      await scene.act(session, shot, files);
    } finally {
      await session.stop();
    }
  }
}
console.log(`pictures in ${folder}`);
