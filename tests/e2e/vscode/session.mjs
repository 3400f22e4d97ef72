/** A real VS Code (code-server) in a real browser, and what a user does in it. */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "../../../vscode-extension/node_modules/playwright-core/index.mjs";

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");
const CODE = path.join(ROOT, ".cache/e2e/code/node_modules/.bin");
const BROWSER_FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
]; // prettier-ignore

const SETTINGS = {
  "chat.disableAIFeatures": true,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "editor.minimap.enabled": false,
  "editor.fontSize": 13,
  "files.autoSave": "off",
  "extensions.ignoreRecommendations": true,
  "git.enabled": false,
  "files.simpleDialog.enable": true,
  "window.commandCenter": false,
};

export class Session {
  /** @param {{ theme?: string, settings?: object, files?: Record<string, string>, size?: { width: number, height: number }, env?: Record<string, string> }} options */
  static async start(options = {}) {
    const session = new Session();
    session.home = mkdtempSync(path.join(tmpdir(), "qvr-e2e-"));
    session.folder = path.join(session.home, "models");
    mkdirSync(session.folder);
    for (const [name, text] of Object.entries(options.files ?? {})) {
      mkdirSync(path.dirname(session.file(name)), { recursive: true });
      writeFileSync(session.file(name), text);
    }
    const data = path.join(session.home, "data");
    const settings = {
      ...SETTINGS,
      "qvr.interpreterPath": path.join(ROOT, ".venv/bin/python"),
      ...(options.theme ? { "workbench.colorTheme": options.theme } : {}),
      ...options.settings,
    };
    session.settingsFile = path.join(data, "Machine/settings.json");
    mkdirSync(path.dirname(session.settingsFile), { recursive: true });
    mkdirSync(path.join(data, "User"), { recursive: true });
    session.configure(settings);
    await session.serve(data, options.env ?? process.env);
    await session.browse(options.size ?? { width: 1440, height: 860 });
    return session;
  }

  configure(settings) {
    this.settings = { ...this.settings, ...settings };
    writeFileSync(this.settingsFile, JSON.stringify(this.settings, null, 2));
  }

  async serve(data, outer) {
    const config = path.join(this.home, "config.yaml");
    writeFileSync(config, "");
    const extensions = path.join(this.home, "extensions");
    const common = ["--config", config, "--user-data-dir", data, "--extensions-dir", extensions];
    const env = { ...outer, PATH: `${CODE}:${outer.PATH}`, EXTENSIONS_GALLERY: "{}" };
    await run([...common, "--install-extension", path.join(ROOT, "vscode-extension/qvr.vsix")], { ...process.env, PATH: env.PATH });
    this.port = await freePort();
    this.server = spawn(
      path.join(CODE, "code-server"),
      [
        ...common, "--auth", "none", "--bind-addr", `127.0.0.1:${this.port}`, "--disable-telemetry",
        "--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override", "--disable-proxy",
      ], // prettier-ignore
      { env, detached: true, stdio: ["ignore", "pipe", "pipe"] },
    );
    this.serverLog = "";
    this.server.stdout.on("data", (chunk) => (this.serverLog += chunk));
    this.server.stderr.on("data", (chunk) => (this.serverLog += chunk));
    await eventually("code-server answers", async () => (await fetch(`http://127.0.0.1:${this.port}/healthz`)).ok);
  }

  async browse(size) {
    this.browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: BROWSER_FLAGS });
    const context = await this.browser.newContext({ viewport: size, deviceScaleFactor: 1.5 });
    this.page = await context.newPage();
    this.violations = [];
    this.page.on("console", (message) => {
      if (/content security policy/i.test(message.text())) {
        this.violations.push({ url: message.location().url, text: message.text() });
      }
    });
    await this.page.goto(`http://127.0.0.1:${this.port}/?folder=${encodeURIComponent(this.folder)}`);
    await this.page.locator(".monaco-workbench").waitFor({ timeout: 60_000 });
  }

  file(name) {
    return path.join(this.folder, name);
  }

  /** Open a file of the explorer, whose rows may be drawn anew between the two clicks: then once more. */
  async open(name) {
    const tab = this.page.locator(`.tab.active[data-resource-name="${name}"]`).first();
    await eventually(`the tab of ${name}`, async () => {
      await this.page.getByRole("treeitem", { name }).first().dblclick({ timeout: 10_000 });
      await tab.waitFor({ timeout: 10_000 });
      return true;
    });
    await this.page.locator(".editor-instance .view-line").first().waitFor();
  }

  /** Fill the quick input that is open, and take its first entry. */
  async quick(text) {
    const input = this.page.locator(".quick-input-widget:visible input").first();
    await input.waitFor();
    await input.fill(text);
    await this.page.locator(".quick-input-list .monaco-list-row").first().waitFor();
    await this.page.waitForTimeout(350);
    await this.page.keyboard.press("Enter");
  }

  /** Answer the question of an input box. */
  async quickly(text) {
    const input = this.page.locator(".quick-input-widget:visible input").first();
    await input.waitFor();
    await input.fill(text);
    await this.page.keyboard.press("Enter");
  }

  /**
   * Press a key until the quick input opens: a webview that has just gone away swallows the first press. One that has
   * the focus hands presses on late, so that a second would open the input again after it was answered: it loses it.
   */
  async summon(key) {
    const input = this.page.locator(".quick-input-widget:visible input").first();
    await this.page.evaluate(() => document.activeElement instanceof HTMLIFrameElement && document.activeElement.blur());
    await eventually(`the quick input after ${key}`, async () => {
      if (!(await input.isVisible())) {
        await this.page.keyboard.press(key);
        await this.page.waitForTimeout(400);
      }
      return input.isVisible();
    });
  }

  async command(title) {
    await this.summon("F1");
    await this.quick(`>${title}`);
  }

  /** Put the cursor at a one-based line and column of the active editor. */
  async goTo(line, column) {
    await this.summon("Control+G");
    await this.quick(`:${line}:${column}`);
    await this.page.waitForTimeout(150);
  }

  /** Close the panel beside the editor. */
  async closePanel() {
    const tab = this.page.locator(".editor-group-container").nth(1).locator(".tab.active");
    await tab.click({ button: "middle" });
  }

  async focusEditor() {
    await this.page.locator(".editor-group-container").first().locator(".tab.active").click();
    await this.page.keyboard.press("Control+1");
  }

  /** The text of the active editor as its lines show it. */
  async shown() {
    const lines = await this.page.locator(".editor-instance .view-lines").first().locator(".view-line").allInnerTexts();
    return lines.join("\n").replaceAll("\u00a0", " ");
  }

  /** The frame of a webview that holds `selector`. */
  async webview(selector, timeout = 30_000) {
    return eventually(
      `a webview with ${selector}`,
      async () => {
        for (const frame of this.page.frames()) {
          try {
            if (frame !== this.page.mainFrame() && (await frame.locator(selector).count()) > 0) {
              return frame;
            }
          } catch {
            // the frame went away meanwhile
          }
        }
        return undefined;
      },
      timeout,
    );
  }

  async screenshot(name) {
    const folder = process.env.QVR_E2E_ARTEFACTS ?? path.join(ROOT, ".cache/e2e/screenshots");
    mkdirSync(folder, { recursive: true });
    await this.page.screenshot({ path: path.join(folder, `${name}.png`) });
  }

  async stop() {
    await this.browser?.close();
    if (this.server?.pid) {
      try {
        process.kill(-this.server.pid, "SIGKILL");
      } catch {
        // it ended by itself
      }
    }
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5, retryDelay: 300 });
  }
}

export function example(name) {
  return path.join(ROOT, "examples", name);
}

export function copyExample(session, name) {
  cpSync(example(name), session.file(name));
}

/** Poll until `test` gives something true. */
export async function eventually(what, test, timeout = 30_000) {
  const end = Date.now() + timeout;
  let problem;
  while (Date.now() < end) {
    try {
      const found = await test();
      if (found) {
        return found;
      }
    } catch (error) {
      problem = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  throw new Error(`not within ${timeout / 1000} s: ${what}${problem ? ` (${problem})` : ""}`);
}

function run(args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(path.join(CODE, "code-server"), args, { env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("close", (code) => (code === 0 ? resolve(output) : reject(new Error(output))));
  });
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Steps of a walk: each tells how it went, and leaves a picture. */
export function steps(session, prefix) {
  let count = 0;
  return async function step(name, act) {
    count += 1;
    const label = `${prefix} ${String(count).padStart(2, "0")} ${name}`;
    try {
      await act();
      console.log(`ok ${label}`);
      await session.screenshot(label.replace(/\W+/g, "-"));
    } catch (error) {
      console.log(`FAILED ${label}`);
      await session.screenshot(`${label.replace(/\W+/g, "-")}-FAILED`).catch(() => undefined);
      throw error;
    }
  };
}
