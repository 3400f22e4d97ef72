/** The extension in VS Code's web worker host, where it has no process: the server is a worker of the page. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
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

/** Twelve effects with standard errors, whose mean is known in closed form: that of a Normal with a Normal prior. */
const EFFECTS = [2.1, 0.4, 1.3, 2.8, 0.9, 1.7, 1.1, 2.2, 0.3, 1.9, 1.5, 0.8];
const MEAN = `object Study : FinSet _

program pooled : Study -> Study
    data effect : Study
    sample mu <- Normal(0.0, 10.0)
    observe effect[s : Study] <- Normal(mu, 2.0)
    return mu
export pooled
`;
const SETTINGS = '[run.pooled]\ndata = "csv:effects.csv"\n';
const precision = 1 / 100 + EFFECTS.length / 4;
const posterior = { mean: EFFECTS.reduce((sum, one) => sum + one / 4, 0) / precision, sd: 1 / Math.sqrt(precision) };

const session = await Session.start({
  files: {
    "spaces.qvr": SPACES, "program.qvr": PROGRAM, "mean.qvr": MEAN, "qvr.toml": SETTINGS,
    "effects.csv": `effect\n${EFFECTS.join("\n")}\n`,
  }, // prettier-ignore
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
    await page.keyboard.press("Escape");
  });

  await step("NUTS samples in the page, on the data that qvr.toml names", async () => {
    await session.open("mean.qvr");
    await session.focusEditor();
    await session.command("QVR: Sample by NUTS");
    const frame = await session.webview("table");
    const row = frame.locator("tr", { has: frame.locator("th[scope=row]", { hasText: /^mu$/ }) });
    await row.waitFor({ timeout: 120_000 });
    const [mean, sd] = (await row.locator("td").allTextContents()).map(Number);
    // of 4,000 draws, some 1,500 of them as good as independent
    assert.ok(Math.abs(mean - posterior.mean) < 0.1 * posterior.sd, `the mean is ${mean}, by hand ${posterior.mean}`);
    assert.ok(Math.abs(sd - posterior.sd) < 0.1 * posterior.sd, `the sd is ${sd}, by hand ${posterior.sd}`);
    assert.match(await frame.locator("body").innerText(), /4 × 1,000 draws in .* no divergences/);
  });

  await step("the posterior stands behind its step, until the text is another", async () => {
    const behind = page.locator(".view-line", { hasText: "sample mu" }).filter({ hasText: /≈/ });
    await behind.first().waitFor();
  });

  await step("the draws are a file", async () => {
    const frame = await session.webview("table");
    await frame.locator("a", { hasText: "Save the draws" }).click();
    const input = page.locator(".quick-input-widget:visible input").first();
    await input.waitFor();
    // a name that is written before the dialog has opened its folder is taken as one inside it
    await eventually("the dialog shows its folder", async () => (await input.inputValue()).includes("/"));
    await page.waitForTimeout(800);
    await input.fill(session.file("posterior.nc"));
    // the dialog looks into the folder before it takes a name in it, and lets Enter pass until then
    await eventually("the dialog takes the name", async () => {
      await page.waitForTimeout(800);
      if (await input.isVisible()) await input.press("Enter", { timeout: 1_000 });
      return !(await input.isVisible());
    });
    await eventually("the file", async () => readFileSync(session.file("posterior.nc")).subarray(0, 4).toString("latin1") === "\x89HDF");
  });

  await step("the posterior follows what is typed (qvr.live)", async () => {
    session.configure({ "qvr.live": "posterior" });
    await session.open("mean.qvr");
    await session.goTo(5, 1);
    await page.keyboard.press("End");
    await page.keyboard.type("  # again");
    await page.locator(".view-line", { hasText: "sample mu" }).filter({ hasText: /live/ }).first().waitFor({ timeout: 60_000 });
  });
  console.log("ok all steps");
} finally {
  if (process.env.QVR_E2E_LOG) {
    console.log(session.serverLog);
  }
  await session.stop();
}
