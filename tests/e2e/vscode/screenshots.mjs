/** The README's pictures, taken from the real VS Code: `node screenshots.mjs FOLDER`. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import * as path from "node:path";
import { ROOT, Session, eventually, example } from "./session.mjs";

const folder = path.resolve(process.argv[2] ?? path.join(ROOT, "docs/images"));
mkdirSync(folder, { recursive: true });
const PROGRAM = "bidirectional_rnn_lm.qvr";
const whole = readFileSync(example(PROGRAM), "utf8");
const text = whole.slice(whole.indexOf("object Token"));
const lines = text.split("\n");
const topics = "import pydoc_data.topics as t; print(open(t.__file__, encoding='utf-8').read())";
const book = execFileSync(path.join(ROOT, ".venv/bin/python"), ["-c", topics], { encoding: "utf8", maxBuffer: 1e8 });

for (const [name, theme] of [["dark", "Default Dark Modern"], ["light", "Default Light Modern"]]) {
  const session = await Session.start({
    theme,
    files: { [PROGRAM]: text, "book.txt": book, "qvr.toml": '[run.bidirectional_rnn_lm]\ndata = "text:book.txt"\nsteps = 2000\n' },
    size: { width: 1360, height: 780 },
  });
  const { page } = session;
  const shot = (label) => page.screenshot({ path: path.join(folder, `${label}-${name}.png`) });
  const at = (wanted, word) => {
    const line = lines.findIndex((one) => one.includes(wanted));
    return [line + 1, lines[line].indexOf(word) + 1];
  };
  try {
    await session.open(PROGRAM);
    await eventually("lenses", async () => (await page.locator(".codelens-decoration").count()) > 0, 60_000);
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
  } finally {
    await session.stop();
  }
}
console.log(`pictures in ${folder}`);
