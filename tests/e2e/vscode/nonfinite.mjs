/** The first expression that is not finite, as VS Code shows it: at the operand, with what the data are there, until it is mended. */
import assert from "node:assert/strict";
import { Session, eventually, steps } from "./session.mjs";

const PROGRAM = `object Row : FinSet 60
program growth : Row -> Row
    data a : Row
    sample slope <- Normal(0.0, 1.0)
    let x = log(a - 100.0)
    observe y : Row <- Normal(slope * x, 1.0)
    return slope
`;
const DATA = `a,y\n${Array.from({ length: 60 }, (_, row) => `${-10 + 1.5 * row},${(row % 7) / 3}`).join("\n")}\n`;
const TOML = '[run.growth]\nalgorithm = "nuts"\ndata = "csv:d.csv"\nwarmup = 100\nsamples = 100\nchains = 2\nengine = "replay"\n';

const session = await Session.start({ files: { "growth.qvr": PROGRAM, "d.csv": DATA, "qvr.toml": TOML }, size: { width: 1500, height: 860 } });
const { page } = session;
const step = steps(session, "nonfinite");

try {
  await step("a run that meets no finite density says where, and what the data are there", async () => {
    await session.open("growth.qvr");
    await eventually("lenses", async () => (await page.locator(".codelens-decoration").count()) > 0, 120_000);
    await session.command("QVR: Sample by NUTS");
    const frame = await session.webview(".status.failed", 240_000);
    assert.match(await frame.locator(".notes .error").first().innerText(), /`log\(a - 100\.0\)` is NaN in 60 of 60 rows: `a - 100\.0` is between -110 and -21\.5 there/);
  });

  await step("the message stands at the operand", async () => {
    await session.focusEditor();
    await page.locator(".monaco-editor .squiggly-error").first().waitFor({ state: "attached" });
    await page.keyboard.press("Control+Shift+M");
    const told = page.locator(".markers-panel .monaco-tl-contents", { hasText: "is NaN in 60 of 60 rows" }).first();
    await told.waitFor();
    assert.match(await told.innerText(), /Ln 5, Col 17/);
    await page.keyboard.press("Control+J");
  });

  await step("an edit takes it away, and the next run ends well", async () => {
    await session.focusEditor();
    await session.goTo(5, PROGRAM.split("\n")[4].indexOf("- 100.0") + 1);
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.type("+");
    await eventually("no squiggle", async () => (await page.locator(".monaco-editor .squiggly-error").count()) === 0);
    await page.keyboard.press("Control+S");
    await session.command("QVR: Sample by NUTS");
    await session.webview(".status.finished, .status.doubtful", 240_000);
  });

  assert.deepEqual(session.violations, []);
  console.log("ok all steps");
} finally {
  await session.stop();
}
