/** VS Code in a home without our package: the install button, a failure that keeps its reason on the screen, and a try that works. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { ROOT, Session, eventually, steps } from "./session.mjs";

const PROGRAM = "object A : Real 3\nobject B : Real 4\nmorphism f : A -> B [role=linear]\nlet g = f >> f\n";
const outside = mkdtempSync(path.join(tmpdir(), "qvr-install-"));
const packages = path.join(outside, "packages");
const config = path.join(outside, "pip.conf");
const dist = path.join(ROOT, "vscode-extension/dist");
const wheel = path.join(dist, readdirSync(dist).find((each) => each.endsWith(".whl")));
execFileSync(path.join(ROOT, ".venv/bin/python"), ["-m", "pip", "download", "--quiet", "--quiet", "--dest", packages, wheel], { stdio: "inherit" });
/** Once nothing can be had, then only what the server needs: no torch. */
const shut = "[global]\nno-index = true\n";
const open = `[global]\nno-index = true\nfind-links = ${packages}\n`;
writeFileSync(config, shut);
const home = path.join(outside, "home");
mkdirSync(home);

const base = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], { cwd: outside, encoding: "utf8" }).trim();
const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PIP_") && !["VIRTUAL_ENV", "PYTHONPATH"].includes(name)));
const env = { ...clean, HOME: home, PIP_CONFIG_FILE: config, PATH: `${path.dirname(base)}:${process.env.PATH}` };

const session = await Session.start({ files: { "wrong.qvr": PROGRAM }, settings: { "qvr.interpreterPath": "" }, env });
const { page } = session;
const step = steps(session, "install");
const toast = (text) => page.locator(".notification-toast", { hasText: text });

try {
  await step("a home without the package gives one message with a button", async () => {
    await session.open("wrong.qvr");
    await toast("has no QVR language server").waitFor({ timeout: 60_000 });
    assert.equal(await toast("has no QVR language server").count(), 1);
    assert.equal(await page.locator(".monaco-editor .squiggly-error").count(), 0);
  });

  await step("an install that fails keeps its reason on the screen", async () => {
    await toast("has no QVR language server").getByRole("button", { name: "Install", exact: true }).click();
    const failed = toast("could not be installed");
    await failed.waitFor({ timeout: 120_000 });
    assert.match(await failed.innerText(), /No matching distribution found for \w+/);
    await page.waitForTimeout(12_000); // longer than VS Code leaves a message that goes away by itself
    assert.equal(await failed.isVisible(), true);
  });

  await step("trying again works, with progress, and the program is checked", async () => {
    writeFileSync(config, open);
    await toast("could not be installed").getByRole("button", { name: "Try Again" }).click();
    await toast("Installing the QVR language server").waitFor({ timeout: 30_000 });
    await page.locator(".monaco-editor .squiggly-error").first().waitFor({ state: "attached", timeout: 180_000 });
    await eventually("no message is left", async () => (await toast("could not be installed").count()) === 0);
  });

  await step("it stands in an environment of its own, without torch", async () => {
    const found = execFileSync("find", [session.home, "-path", "*/server/lib/*/site-packages/*", "-maxdepth", "12", "-name", "METADATA"], { encoding: "utf8" });
    assert.match(found, /site-packages\/qvr_lsp-/);
    assert.match(found, /site-packages\/pygls-/);
    assert.doesNotMatch(found, /\/torch-/);
    assert.equal(execFileSync("find", [home, "-name", "qvr_lsp"], { encoding: "utf8" }), "");
  });

  await step("a fit says what is missing, and offers to install it", async () => {
    writeFileSync(session.file("coin.qvr"), "program coin : Real 1 -> Real 1\n    sample p <- Beta(1.0, 1.0)\n    observe heads <- Bernoulli(p)\n    return heads\n");
    writeFileSync(session.file("qvr.toml"), '[run.coin]\ndata = "synthetic"\n');
    await session.open("coin.qvr");
    await eventually("lenses", async () => (await page.locator(".codelens-decoration").count()) > 0, 60_000);
    await session.command("QVR: Fit by SVI");
    const missing = toast("runs need the package");
    await missing.waitFor({ timeout: 60_000 });
    await missing.getByRole("button", { name: "Install What Runs Need" }).click();
    await toast("What runs need could not be installed").waitFor({ timeout: 60_000 });
    assert.match(await toast("What runs need could not be installed").innerText(), /No matching distribution found for \w+/);
  });

  assert.deepEqual(session.violations, []);
  console.log("ok all steps");
} finally {
  await session.stop();
  rmSync(outside, { recursive: true, force: true });
}
