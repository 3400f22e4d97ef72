/** A fit that is not to be trusted, as VS Code shows it: figures, squiggles, tabs, and the way to a good one. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import * as path from "node:path";
import { Session, eventually, steps } from "./session.mjs";

const SCHOOLS = `object School : FinSet 8
program schools : School -> School
    data sigma : School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample theta : School <- Normal(mu, tau)
    observe y : School <- Normal(theta, sigma)
    return theta
`;
const DATA = "y,sigma\n28,15\n8,10\n-3,16\n7,11\n-1,9\n1,11\n18,10\n12,18\n";
const TOML = '[run.schools]\nalgorithm = "nuts"\ndata = "csv:d.csv"\nwarmup = 400\nsamples = 400\nchains = 4\ntarget_accept = 0.95\nengine = "replay"\n';

const session = await Session.start({
  files: { "schools.qvr": SCHOOLS, "d.csv": DATA, "qvr.toml": TOML.replace("0.95", "0.6") },
  size: { width: 1600, height: 1000 },
});
const { page } = session;
const step = steps(session, "fit");

const TRACE = "svg[aria-label^='trace of']";
const tab = (frame, name) => frame.getByRole("tab", { name }).click();

try {
  let frame;

  await step("traces while the chains run", async () => {
    await session.open("schools.qvr");
    await eventually("lenses", async () => (await page.locator(".codelens-decoration").count()) > 0, 120_000);
    await session.command("QVR: Sample by NUTS");
    frame = await session.webview(".status.running", 240_000);
    const drawn = async () => ({
      status: await frame.locator(".status").innerText(),
      points: (await frame.locator(TRACE).locator("polyline").first().getAttribute("points", { timeout: 1000 })) ?? "",
      chains: await frame.locator(TRACE).first().locator("polyline").count(),
    });
    const early = await eventually("traces", async () => {
      const now = await drawn();
      return now.points.length > 0 ? now : undefined;
    }, 240_000); // prettier-ignore
    assert.equal(early.status, "running");
    assert.equal(early.chains, 4);
    await session.screenshot("fit-live-traces");
    const later = await eventually("longer traces", async () => {
      const now = await drawn();
      return now.points.length > early.points.length ? now : undefined;
    });
    assert.equal(later.status, "running");
  });

  await step("chains that diverge have no green end", async () => {
    frame = await session.webview(".status.doubtful", 240_000);
    assert.equal(await frame.locator(".status").innerText(), "finished, not to be trusted");
    assert.match(await frame.locator(".notes .error").first().innerText(), /divergences: .* diverged/);
    assert.ok((await page.locator(".notification-toast", { hasText: "not to be trusted" }).count()) > 0);
  });

  await step("figures beside the steps, a squiggle at the step to blame", async () => {
    await session.focusEditor();
    await eventually("figures", async () => /± .*R̂/.test(await session.shown()), 60_000);
    await page.locator(".monaco-editor .squiggly-warning").first().waitFor({ state: "attached" });
    await page.keyboard.press("Control+Shift+M");
    const told = page.locator(".markers-panel .monaco-tl-contents", { hasText: "transitions diverged" });
    await told.first().waitFor();
    await page.keyboard.press("Control+J");
  });

  await step("traces, and ranks where one asks for them", async () => {
    await tab(frame, "Posterior");
    await eventually("traces", async () => (await frame.locator(TRACE).locator("polyline").count()) >= 8);
    await frame.getByLabel("Picture of the chains").selectOption("ranks");
    await frame.locator("svg[aria-label^='ranks of'] path").first().waitFor();
    await frame.getByLabel("Picture of the chains").selectOption("trace");
  });

  await step("densities; a click leads to the line", async () => {
    await eventually("all numbers", async () => (await frame.locator(".parameters tbody").count()) === 10);
    assert.ok((await frame.locator("path.prior").count()) >= 10);
    await frame.getByRole("button", { name: "tau", exact: true }).click();
    await eventually("the cursor", async () => (await page.locator(".statusbar-item", { hasText: "Ln 5," }).count()) > 0);
  });

  await step("pairs with divergences in red", async () => {
    await tab(frame, "Pairs");
    await frame.locator(".dot.diverging").first().waitFor();
  });

  await step("predictions beside the data", async () => {
    await tab(frame, "Predictive");
    await eventually("posterior and prior", async () => (await frame.locator("polygon.band").count()) === 2);
  });

  await step("the action writes it non-centred, and the next run has no divergences", async () => {
    await session.focusEditor();
    const line = SCHOOLS.split("\n").findIndex((one) => one.includes("theta :"));
    await session.goTo(line + 1, SCHOOLS.split("\n")[line].indexOf("theta") + 2);
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
    writeFileSync(session.file("qvr.toml"), TOML);
    await session.command("QVR: Sample by NUTS");
    frame = await session.webview('.status.finished', 240_000);
    assert.match(await frame.locator(".line").innerText(), /0 divergences/);
    await page.keyboard.press("Control+Shift+M");
    await eventually("no divergence is told", async () => !(await page.locator(".markers-panel .monaco-tl-contents").allInnerTexts()).some((one) => one.includes("diverged")));
    await page.keyboard.press("Control+J");
  });

  await step("more draws of the same chains", async () => {
    const newest = path.join(session.file(".qvr/runs"), readdirSync(session.file(".qvr/runs")).sort().at(-1));
    const draws = () => JSON.parse(readFileSync(path.join(newest, "summary.json"), "utf8")).draws;
    assert.equal(draws(), 400);
    await frame.getByRole("button", { name: "More Draws…" }).click();
    await session.quickly("200");
    await frame.locator(".status.running").waitFor({ timeout: 60_000 });
    assert.equal(await frame.getByRole("button", { name: "More Draws…" }).isVisible(), false);
    await frame.locator(".status.finished").waitFor({ timeout: 240_000 });
    assert.equal(draws(), 600);
    await eventually("the traces of all draws", async () => (await frame.locator(TRACE).locator("polyline").count()) >= 8);
    assert.match(await frame.locator(".folded .notes").textContent(), /the chains go on from draw 800/);
  });

  await step("two runs compared", async () => {
    await tab(frame, "Compare");
    await frame.getByLabel("Compare with").selectOption({ index: 1 });
    await frame.locator(".forest tbody tr").first().waitFor();
    const words = await frame.locator(".page").innerText();
    assert.match(words, /only here: sample theta : School <- Normal\(mu, tau\) \[noncentred\]/);
    assert.match(words, /target_accept: 0\.95 here, 0\.6 there/);
  });

  assert.deepEqual(session.violations, []);
  assert.match(readFileSync(session.file("schools.qvr"), "utf8"), /\[noncentred\]/);
  console.log("ok all steps");
} finally {
  await session.stop();
}
