/** What axe-core finds wrong with a page for those who cannot see it, or see it badly. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import * as path from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const AXE = readFileSync(createRequire(path.join(ROOT, "vscode-extension/package.json")).resolve("axe-core/axe.min.js"), "utf8");

/** Serious and critical violations in a page or a frame, one line an element; what stands in `leave` is not looked at. */
export async function serious(frame, leave = []) {
  await frame.evaluate(AXE);
  return frame.evaluate(async (exclude) => {
    const { violations } = await window.axe.run({ exclude: exclude.map((one) => [one]) }, { resultTypes: ["violations"], iframes: false });
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, nodes }) => nodes.map(({ html, any }) => `${id}: ${html.slice(0, 120)} ${any[0]?.message ?? ""}`));
  }, leave);
}
