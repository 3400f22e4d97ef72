/** The prior of the program under the cursor, as VS Code shows it while one types: behind the steps, in the diagram, in its panel. */
import assert from "node:assert/strict";
import { Session, eventually, steps } from "./session.mjs";

const SCHOOLS = `object School : FinSet 8
program schools : School -> School
    data sigma : School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfNormal(5.0)
    sample theta : School <- Normal(mu, tau)
    observe y : School <- Normal(theta, sigma)
    return theta
`;
const DATA = "y,sigma\n28,15\n8,10\n-3,16\n7,11\n-1,9\n1,11\n18,10\n12,18\n";
const TOML = '[run.schools]\ndata = "csv:d.csv"\n';
/** The first draws wait until a process has loaded torch. */
const SLOW = 240_000;

const session = await Session.start({
  files: { "schools.qvr": SCHOOLS, "d.csv": DATA, "qvr.toml": TOML },
  settings: { "qvr.live": "prior" },
  size: { width: 1600, height: 900 },
});
const { page } = session;
const step = steps(session, "prior");

/** Standard deviation of `mu` as the figures behind its step have it; undefined where none are shown. */
async function spread() {
  const line = (await session.shown()).split("\n").find((one) => one.includes("sample mu"));
  const found = /prior [▁-█]+ .*± (\S+)/.exec(line ?? "");
  return found ? Number(found[1]) : undefined;
}

/** How wide the density at a node says that its numbers lie. */
async function width(frame, id) {
  const words = await frame.locator(`[id="node:${id}"] .density`).getAttribute("aria-label", { timeout: 1000 });
  const [low, high] = /from (\S+) to ([^ ,]+)/.exec(words).slice(1).map((end) => Number(end.replace("−", "-")));
  return high - low;
}

try {
  let diagram;

  await step("the cursor in a program brings figures of its prior", async () => {
    await session.open("schools.qvr");
    await session.goTo(4, 12);
    const sd = await eventually("figures of the prior", spread, SLOW);
    assert.ok(sd > 3.5 && sd < 6.5, String(sd));
  });

  await step("each node that draws has a small density", async () => {
    await session.command("QVR: Show Diagram");
    diagram = await session.webview("g.node .density");
    const nodes = await diagram.locator("g.node:has(.density)").evaluateAll((all) => all.map((one) => one.id));
    assert.deepEqual(nodes.sort(), ["node:mu", "node:tau", "node:theta", "node:y"]);
    const small = await diagram.locator(".density").evaluateAll((all) => all.every((one) => one.getBBox().width <= 60 && one.getBBox().height <= 20));
    assert.ok(small);
    const mu = await width(diagram, "mu");
    assert.ok(mu > 15 && mu < 60, String(mu));
    await diagram.locator('[id="node:theta"]').hover();
    assert.match(await diagram.locator(".tip").innerText(), /prior from −.* to .*, over its 8 numbers/);
  });

  await step("no density lies on the letters of a node", async () => {
    const covered = await diagram.locator("g.node:has(.density)").evaluateAll((all) =>
      all.filter((one) => {
        const top = one.querySelector(".density path").getBoundingClientRect().top;
        return [...one.querySelectorAll("text")].some((text) => text.getBoundingClientRect().bottom > top + 3);
      }).map((one) => one.id),
    ); // prettier-ignore
    assert.deepEqual(covered, []);
  });

  await step("an edit takes the figures away, and the new prior has its own", async () => {
    await session.focusEditor();
    await session.goTo(4, SCHOOLS.split("\n")[3].indexOf("5.0") + 1);
    await page.keyboard.type("2");
    await eventually("no density of the old text", async () => (await diagram.locator(".density").count()) === 0);
    const sd = await eventually("the new figures", async () => {
      const now = await spread();
      return now > 10 ? now : undefined;
    }, 60_000); // prettier-ignore
    assert.ok(sd > 18 && sd < 33, String(sd));
    await eventually("the new density", async () => (await width(diagram, "mu")) > 75);
  });

  await step("Show Prior opens the page of the prior", async () => {
    await session.focusEditor();
    await session.command("QVR: Show Prior or Live Posterior");
    const panel = await session.webview("table.parameters tbody", 60_000);
    assert.equal(await panel.locator("h1").innerText(), "Prior of schools");
    assert.match(await panel.locator("header .facts").innerText(), /csv:d\.csv · 200 draws/);
    assert.equal(await panel.locator("table.parameters tbody").count(), 1 + 1 + 8 + 8); // mu, tau, theta, y
    assert.equal(await panel.locator("svg[aria-label='prior predictive of y']").count(), 1);
    await session.closePanel();
  });

  await step("with the setting off the diagram shows nothing of it, and an edit takes the figures away", async () => {
    diagram = await session.webview("g.node .density");
    session.configure({ "qvr.live": "off" });
    await eventually("no density", async () => (await diagram.locator(".density").count()) === 0);
    assert.ok((await diagram.locator("g.node").count()) > 0);
    await session.focusEditor();
    await page.keyboard.type("1");
    await eventually("no figures", async () => (await spread()) === undefined);
  });

  await step("with the setting on again, in a dark theme, they come back", async () => {
    session.configure({ "qvr.live": "prior", "workbench.colorTheme": "Default Dark Modern" });
    diagram = await session.webview("g.node .density", 60_000);
    await diagram.locator("body.vscode-dark").waitFor();
    const seen = await diagram.locator('[id="node:mu"] .density').evaluate((one) => {
      const fill = (selector) => getComputedStyle(one.querySelector(selector)).fill;
      return [fill("rect"), fill("path")];
    });
    assert.notEqual(seen[0], seen[1]);
  });

  assert.deepEqual(session.violations, []);
  console.log("ok all steps");
} finally {
  await session.stop();
}
