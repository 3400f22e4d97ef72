/** `qvr play` in a real browser: a program is opened, mended, saved and fitted; a fit is cancelled and gone on with. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "../../../playground/node_modules/playwright-core/index.mjs";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");
const PICTURES = process.env.QVR_PICTURES ?? path.join(ROOT, ".cache/e2e/screenshots");
const PROGRAM = `program line : Real 1 -> Real 1
    sample mu <- Normal(0.0, 5.0)
    sample sigma <- HalfNormal(2.0)
    observe y <- Normal(mu, sigma)
    return mu
export line
`;
const BROKEN = PROGRAM.replace("HalfNormal", "HalfNorml");
const VALUES = [3.1, 2.4, 4.0, 3.3, 2.2, 3.9, 2.8, 3.6, 3.0, 2.7];
const MEAN = VALUES.reduce((sum, each) => sum + each, 0) / VALUES.length;

const home = mkdtempSync(path.join(tmpdir(), "qvr-play-"));
const folder = path.join(home, "models");
mkdirSync(folder);
mkdirSync(PICTURES, { recursive: true });
writeFileSync(path.join(folder, "line.qvr"), BROKEN);
writeFileSync(path.join(folder, "other.qvr"), "object A : Real 2\nlet h = identity(A)\nexport h\n");
writeFileSync(path.join(folder, "values.csv"), `y\n${VALUES.join("\n")}\n`);

const process_ = spawn(path.join(ROOT, ".venv/bin/python"), ["-m", "qvr_core.cli", "play", folder, "--no-open"], {
  env: { ...process.env, PYTHONPATH: ROOT },
  cwd: home,
  stdio: ["ignore", "pipe", "inherit"],
});
const address = await new Promise((resolve, reject) => {
  let said = "";
  process_.stdout.on("data", (chunk) => {
    said += chunk;
    const found = /http:\/\/\S+/.exec(said);
    if (found) {
      resolve(found[0]);
    }
  });
  process_.on("exit", () => reject(new Error(`qvr play ended: ${said}`)));
});

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"] });
const context = await browser.newContext({ viewport: { width: 1440, height: 860 }, colorScheme: "light", deviceScaleFactor: 1.5 });
const page = await context.newPage();
const wrong = [];
page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
page.on("pageerror", (error) => wrong.push(String(error)));
page.setDefaultTimeout(60_000);
const panel = page.frameLocator("#run");
const is = (name, value) => page.waitForFunction(([key, wanted]) => document.documentElement.dataset[key] === wanted, [name, value], { timeout: 120_000 });

let count = 0;
async function step(name, act) {
  count += 1;
  try {
    await act();
  } catch (error) {
    await page.screenshot({ path: path.join(PICTURES, `play-${count}-FAILED.png`) }).catch(() => undefined);
    console.log(`FAILED ${name}\n${wrong.join("\n")}`);
    throw error;
  }
  console.log(`ok ${name}`);
}

try {
  await step("a stranger's page without the token is refused", async () => {
    const answer = await page.request.get(new URL("/", address).href);
    assert.equal(answer.status(), 403);
  });

  await step("the folder's program is there, with its mistake", async () => {
    await page.goto(address);
    await page.locator(".squiggly-error").first().waitFor({ state: "attached" });
    assert.equal(await page.evaluate(() => window.qvrEditor.getValue()), BROKEN);
    assert.match(await page.locator("#problems").innerText(), /HalfNorml/);
    assert.equal(await page.locator("#share").isVisible(), false, "a link would hold the token");
    assert.deepEqual(await page.locator("#files option").allTextContents(), ["line.qvr", "other.qvr", "New program …"]);
  });

  await step("mended and saved", async () => {
    await page.evaluate((text) => window.qvrEditor.executeEdits("test", [{ range: window.qvrEditor.getModel().getFullModelRange(), text }]), PROGRAM);
    await page.getByText("No problems").waitFor();
    await page.locator("#save", { hasText: "•" }).waitFor();
    await page.evaluate(() => window.qvrEditor.focus());
    await page.keyboard.press("Control+S");
    await is("saved", "true");
    assert.equal(readFileSync(path.join(folder, "line.qvr"), "utf8"), PROGRAM);
  });

  const replaced = (text) =>
    page.evaluate((now) => window.qvrEditor.executeEdits("test", [{ range: window.qvrEditor.getModel().getFullModelRange(), text: now }]), text);
  const behindMu = async () => {
    const lines = await page.locator("#editor .view-line").allInnerTexts();
    return (lines.find((one) => one.includes("sample")) ?? "").replaceAll("\u00a0", " ");
  };

  await step("the posterior as one types: without data a line says so", async () => {
    await page.locator("#live").selectOption("posterior");
    await page.locator("#live-line", { hasText: "qvr.toml names no data for `line`" }).waitFor();
    assert.doesNotMatch(await behindMu(), /live/);
  });

  await step("with data its figures stand behind the steps, and at the nodes of the diagram", async () => {
    writeFileSync(path.join(folder, "qvr.toml"), '[run.line]\ndata = "csv:values.csv"\n');
    await replaced(PROGRAM.replace("5.0", "6.0"));
    await page.locator("#live-line", { hasText: "live posterior of `line`: 4 chains of 1,000 draws" }).waitFor();
    const [, mean] = /live .* (\S+) ± /.exec(await behindMu()) ?? [];
    assert.ok(Math.abs(Number(mean) - MEAN) < 0.15, `${await behindMu()} is not near ${MEAN}`);
    const density = page.frameLocator("#diagram").locator(".density").first();
    assert.match(await density.getAttribute("aria-label"), /live posterior from/);
    await page.screenshot({ path: path.join(PICTURES, "play-live.png") });
  });

  await step("off again, nothing of it is shown or stored", async () => {
    await page.locator("#live").selectOption("off");
    await page.waitForFunction(() => !document.querySelector("#editor .view-lines").textContent.includes("live"));
    assert.ok(!existsSync(path.join(folder, ".qvr")));
    rmSync(path.join(folder, "qvr.toml"));
    await replaced(PROGRAM);
    await page.evaluate(() => window.qvrEditor.focus());
    await page.keyboard.press("Control+S");
    await is("saved", "true");
  });

  await step("a posterior by one click, on data of the folder", async () => {
    await page.locator("#data").selectOption({ label: "values.csv" });
    await page.locator("#settings").fill("warmup=300 samples=500 chains=2 seed=1");
    await page.locator("#nuts").click();
    await is("run", "finished");
    await panel.getByRole("tab", { name: "Posterior" }).click();
    await panel.locator("section.page svg").first().waitFor();
    const row = panel.locator(".parameters tr", { has: page.locator("th", { hasText: /^mu$/ }) }).first();
    const mean = Number((await row.locator("td").first().innerText()).replace("−", "-"));
    // the prior is wide: ten values decide, and 1,000 draws leave a standard error of some 0.01
    assert.ok(Math.abs(mean - MEAN) < 0.1, `${mean} is not near ${MEAN}`);
    await page.screenshot({ path: path.join(PICTURES, "play-light.png") });
  });

  await step("a click on a name of the panel leads to its line", async () => {
    await panel.getByRole("tab", { name: "Posterior" }).click();
    await panel.locator("button.link", { hasText: "sigma" }).first().click();
    await page.waitForFunction(() => window.qvrEditor.getPosition().lineNumber === 3);
  });

  await step("a long fit falls, is cancelled, and goes on", async () => {
    await page.locator("#settings").fill("steps=1000000");
    await page.locator("#svi").click();
    await is("run", "running");
    await panel.locator(".chart canvas").waitFor();
    await page.locator("#shade").click();
    await page.screenshot({ path: path.join(PICTURES, "play-dark.png") });
    await panel.getByRole("button", { name: "Cancel" }).click();
    await is("run", "cancelled");
    await panel.getByRole("button", { name: "Resume" }).click();
    await is("run", "running");
    await panel.getByText("resumed at step").waitFor();
    await panel.getByRole("button", { name: "Cancel" }).click();
    await is("run", "cancelled");
  });

  await step("the first run is opened again, and compared with the other", async () => {
    await page.locator("#runs option", { hasText: "NUTS" }).first().waitFor({ state: "attached" });
    const first = await page.locator("#runs option", { hasText: "NUTS" }).first().getAttribute("value");
    await page.locator("#runs").selectOption(first);
    await is("run", "finished");
    await panel.getByRole("tab", { name: "Compare" }).click();
    await panel.getByLabel("Compare with").selectOption({ index: 1 });
    await panel.getByText("algorithm").first().waitFor();
  });

  await step("another program of the folder", async () => {
    await page.locator("#files").selectOption("other.qvr");
    await page.waitForURL(/file=other\.qvr/);
    await page.waitForFunction(() => window.qvrEditor?.getValue().includes("identity(A)"));
    await page.getByText("No problems").waitFor();
  });

  await step("when it ends, the page says so", async () => {
    process_.kill("SIGINT");
    await page.locator("#failure", { hasText: "`qvr play` has ended" }).waitFor();
    wrong.splice(0);
  });
  console.log("ok all steps");
} finally {
  await browser.close();
  process_.kill("SIGINT");
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 300 });
}
