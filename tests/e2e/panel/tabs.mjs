/** All tabs of the run panel: pictures of them light and dark, narrow and wide, into FOLDER; every number inside the panel; nothing that
 * axe-core finds serious, in high contrast neither; letters of pictures are 10 pixels high at least, and none on others. */
import assert from "node:assert/strict";
import { mkdirSync, rmSync } from "node:fs";
import * as path from "node:path";
import { serious } from "../axe.mjs";
import { letters } from "../pages/letters.mjs";
import { browse, bundle, openPanel, outside, ROOT, runsOf, THEMES } from "./page.mjs";

const folder = path.resolve(process.argv[2] ?? path.join(ROOT, ".cache/e2e/screenshots"));
mkdirSync(folder, { recursive: true });
const runs = runsOf("radon", ["nuts", "--seed", "1"], ["svi", "--seed", "1"]);
const [chains, fit] = runs;
const browser = await browse();
const bundled = await bundle();
try {
  for (const theme of Object.keys(THEMES)) {
    for (const width of theme.startsWith("contrast") ? [1200] : [650, 1200]) {
      for (const [name, mine, other] of [["nuts", chains, fit], ["svi", fit, chains]]) {
        const { page, compare } = await openPanel(browser, bundled, { theme, width, mine, others: [other] });
        const tabs = await page.getByRole("tab").allTextContents();
        assert.deepEqual(tabs, [...(name === "svi" ? ["Loss"] : []), "Posterior", "Forest", "Pairs", "Predictive", "Compare"]);
        for (const tab of tabs) {
          await page.getByRole("tab", { name: tab }).click();
          if (tab === "Compare") {
            await compare(other);
          }
          await page.waitForTimeout(200);
          await page.screenshot({ path: path.join(folder, `panel-${name}-${tab.toLowerCase()}-${theme}-${width}.png`), fullPage: true });
          assert.deepEqual(await outside(page), [], `${name} ${tab} at ${width}`);
          assert.deepEqual(await page.evaluate(letters), [], `${name} ${tab} at ${width}`);
          assert.deepEqual(await serious(page), [], `${name} ${tab}, ${theme}`);
        }
        await page.close();
      }
    }
    console.log(`ok all tabs ${theme}`);
  }
  console.log("ok all steps");
} finally {
  await browser.close();
  rmSync(path.resolve(chains, "../../.."), { recursive: true, force: true });
}
