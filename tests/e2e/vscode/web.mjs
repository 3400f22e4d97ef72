/** The extension in VS Code's web worker host, where it has no process: the server is a worker of the page. */
import assert from "node:assert/strict";
import { Session, eventually, steps } from "./session.mjs";

const SPACES = "object A : Real 8\nobject B : Real 4\n";
const PROGRAM = `from "spaces.qvr" import A, B
morphism f : A -> B [role=linear]
morphism g : A -> A [role=linear]
let wrong = f >> g
let right = g >> f

program line : A -> A
    sample mu <- Normal(0.0, 1.0)
    observe y <- Normal(mu, 1.0)
    return y
export line
`;

const session = await Session.start({
  files: { "spaces.qvr": SPACES, "program.qvr": PROGRAM },
  // The workbench of code-server is a web page: this makes it run the extension there, not beside the files.
  settings: { "remote.extensionKind": { "qvr.qvr": ["web"] } },
  size: { width: 1500, height: 820 },
});
const { page } = session;
const step = steps(session, "web");

try {
  await step("a mismatch is underlined by the server in the page", async () => {
    await session.open("program.qvr");
    await page.locator(".monaco-editor .squiggly-error").first().waitFor({ state: "attached", timeout: 90_000 });
    await page.keyboard.press("Control+Shift+M");
    const problems = page.locator(".markers-panel");
    await eventually("the problem", async () => (await problems.innerText()).includes("`f` gives B (4), but `g` wants A (8)"));
    await page.keyboard.press("Control+Shift+M");
  });

  await step("a name of another file has its type", async () => {
    await session.goTo(2, 14);
    await page.keyboard.press("Control+K");
    await page.keyboard.press("Control+I");
    await eventually("the hover", async () => /A : Real 8/.test(await page.locator(".monaco-hover-content").first().innerText()));
    await page.keyboard.press("Escape");
  });

  await step("the diagram follows the cursor, and its nodes lead to their lines", async () => {
    await session.goTo(5, 6);
    await session.command("QVR: Show Diagram");
    const frame = await session.webview("g.node");
    await frame.locator("select").selectOption("right").catch(() => undefined);
    await eventually("the arrows", async () => (await frame.locator("g.node").allTextContents()).join(" ").includes("g"));
    await frame.locator('[id="node:g"]').click();
    await eventually("the line of g", async () => /Ln 3,/.test(await page.locator(".statusbar").innerText()));
  });

  await step("a fit is refused in a sentence", async () => {
    await session.closePanel();
    await session.focusEditor();
    await session.command("QVR: Fit by SVI");
    const told = page.locator(".notification-toast", { hasText: "need a Python process" });
    await told.waitFor();
    assert.match(await told.innerText(), /Open this folder in VS Code on your machine, or run `?qvr play/);
  });
  console.log("ok all steps");
} finally {
  if (process.env.QVR_E2E_LOG) {
    console.log(session.serverLog);
  }
  await session.stop();
}
