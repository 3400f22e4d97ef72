/** Neal's funnel in VS Code: divergences at the step to blame, the action that mends it, and a run without any. */
import assert from "node:assert/strict";
import { Session, eventually, steps } from "./session.mjs";

const FUNNEL = `object Row : FinSet 9
program funnel : Row -> Row
    sample v <- Normal(0.0, 3.0)
    let scale = exp(v / 2.0)
    sample x : Row <- Normal(0.0, scale)
    return x
`;
const TOML = '[run.funnel]\nalgorithm = "nuts"\ndata = "synthetic"\nwarmup = 200\nsamples = 200\nchains = 4\nmax_tree_depth = 7\nengine = "replay"\n';

const session = await Session.start({ files: { "funnel.qvr": FUNNEL, "qvr.toml": TOML }, size: { width: 1500, height: 900 } });
const { page } = session;
const step = steps(session, "funnel");
const told = page.locator(".markers-panel .monaco-tl-contents", { hasText: "transitions diverged" });

try {
  await step("chains in the funnel diverge, and the step to blame says so", async () => {
    await session.open("funnel.qvr");
    await eventually("lenses", async () => (await page.locator(".codelens-decoration").count()) > 0, 120_000);
    await session.command("QVR: Sample by NUTS");
    const frame = await session.webview(".status.doubtful", 300_000);
    assert.match(await frame.locator(".status").innerText(), /not to be trusted/);
    await session.focusEditor();
    await page.locator(".monaco-editor .squiggly-warning").first().waitFor({ state: "attached" });
    await page.keyboard.press("Control+Shift+M");
    await told.first().waitFor();
    assert.match(await told.first().innerText(), /Ln 5,/);
    await page.keyboard.press("Control+J");
  });

  await step("its action writes the step non-centred", async () => {
    await session.focusEditor();
    await session.goTo(5, FUNNEL.split("\n")[4].indexOf("x :") + 1);
    await eventually("the fix is taken", async () => {
      await page.keyboard.press("Control+.");
      const fix = page.locator(".action-widget .monaco-list-row", { hasText: "non-centred" }).first();
      try {
        await fix.click({ timeout: 4000 });
        return true;
      } catch {
        await page.keyboard.press("Escape");
        return false;
      }
    }, 60_000); // prettier-ignore
    await eventually("the text", async () => (await session.shown()).includes("[noncentred]"));
    await page.keyboard.press("Control+S");
  });

  await step("the next run has no divergence", async () => {
    await session.command("QVR: Sample by NUTS");
    // other checks may ask for more draws; of divergences there is none
    const frame = await session.webview(".status.running", 120_000);
    await eventually("the end", async () => (await frame.locator(".status.finished, .status.doubtful").count()) === 1, 300_000);
    await eventually("none is counted", async () => !/divergences:/.test(await frame.locator(".notes").first().innerText()));
    await page.keyboard.press("Control+Shift+M");
    await eventually("none is told", async () => (await told.count()) === 0);
  });

  assert.deepEqual(session.violations, []);
  console.log("ok all steps");
} finally {
  await session.stop();
}
