/** The built playground in a real Chromium, and what a user does in it. */
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "../../../playground/node_modules/playwright-core/index.mjs";
import { serve } from "../../../playground/serve.mjs";

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
]; // prettier-ignore
export const HANG = Number(process.env.HANG ?? 120_000);

export class Session {
  static async start({ shade = "light", quality = 0, size = { width: 1440, height: 860 } } = {}) {
    const session = new Session();
    session.server = await serve(path.join(ROOT, "playground/dist"), { quality });
    session.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: FLAGS });
    session.context = await session.browser.newContext({ viewport: size, colorScheme: shade });
    session.errors = [];
    await session.open();
    return session;
  }

  /** A page of this browser, in place of the one before. */
  async open(hash = "", context = this.context) {
    await this.page?.close();
    this.page = await context.newPage();
    this.page.setDefaultTimeout(HANG);
    this.page.on("pageerror", (error) => this.errors.push(String(error)));
    await this.page.goto(this.server.address + hash);
    return this.page;
  }

  /** Until the text as it is now was checked. */
  async checked() {
    await this.page.waitForFunction(() => document.documentElement.dataset.checked === String(window.qvrEditor?.getModel().getVersionId()));
  }

  /** Replace the whole text, in one step as a paste does. */
  async write(text) {
    await this.page.evaluate((text) => {
      const editor = window.qvrEditor;
      editor.executeEdits("test", [{ range: editor.getModel().getFullModelRange(), text }]);
      editor.focus();
    }, text);
    await this.checked();
  }

  text() {
    return this.page.evaluate(() => window.qvrEditor.getModel().getValue());
  }

  /** Put the cursor before the first (or `nth`) time that `words` stand in the text. */
  async cursorAt(words, { after = false, nth = 0 } = {}) {
    await this.page.evaluate(
      ([words, after, nth]) => {
        const editor = window.qvrEditor;
        const range = editor.getModel().findMatches(words, false, false, true, null, false)[nth].range;
        editor.setPosition(after ? range.getEndPosition() : range.getStartPosition());
        editor.revealPositionInCenter(editor.getPosition());
        editor.focus();
      },
      [words, after, nth],
    );
  }

  line() {
    return this.page.evaluate(() => window.qvrEditor.getPosition().lineNumber);
  }

  /** Where words stand on the screen. */
  async placeOf(words) {
    return this.page.evaluate((words) => {
      const editor = window.qvrEditor;
      const { startLineNumber, startColumn, endColumn } = editor.getModel().findMatches(words, false, false, true, null, false)[0].range;
      const frame = editor.getDomNode().getBoundingClientRect();
      const from = editor.getScrolledVisiblePosition({ lineNumber: startLineNumber, column: startColumn });
      const to = editor.getScrolledVisiblePosition({ lineNumber: startLineNumber, column: endColumn });
      return { left: frame.left + from.left, right: frame.left + to.left, top: frame.top + from.top, height: from.height };
    }, words);
  }

  get diagram() {
    return this.page.frameLocator("#diagram");
  }

  async stop() {
    await this.browser.close();
    await this.server.stop();
  }
}

export function same(found, wanted, what) {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) {
    throw new Error(`${what}: found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
  }
}

export function holds(condition, what) {
  if (!condition) {
    throw new Error(what);
  }
}
