/**
 * Pages that open from the disk, as readers see them: `node walk.mjs PICTURES PAGE…`, light and dark, at 650 and 1,200
 * pixels: nothing is fetched, nothing stands outside the window, letters of pictures are 10 pixels high at least, none on
 * others, told from what they stand on, and axe-core, which looks at no letters of pictures, finds nothing serious.
 * Pictures go into the folder PICTURES, unless it is `-`.
 */
import * as path from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "../../../playground/node_modules/playwright-core/index.mjs";
import { serious } from "../axe.mjs";
import { letters } from "./letters.mjs";

const [folder, ...pages] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});
const wrong = [];
for (const shade of ["light", "dark"]) {
  for (const width of [650, 1200]) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: shade });
    for (const file of pages) {
      const page = await context.newPage();
      const name = `${path.basename(file, ".html")}-${shade}-${width}`;
      page.on("request", (request) => {
        if (!request.url().startsWith("file:") && !request.url().startsWith("data:")) {
          wrong.push(`${name}: fetches ${request.url()}`);
        }
      });
      page.on("pageerror", (error) => wrong.push(`${name}: ${error}`));
      await page.goto(pathToFileURL(path.resolve(file)).href);
      const outside = await page.evaluate(() => {
        // the site keeps its drawer beside the window, and its widest tables in frames of their own
        const elsewhere = "nav, .md-sidebar, .md-typeset__scrollwrap";
        const hidden = (element) => element.getClientRects().length === 0 || element.closest(elsewhere) !== null;
        // what has a number or a word that is read, and ends beyond the window or beyond a frame that hides it
        const cut = [...document.querySelectorAll("td, th, p, li, figcaption, svg text, h1, h2, h3")].filter((element) => {
          const at = element.getBoundingClientRect();
          return !hidden(element) && at.width > 0 && (at.right > innerWidth + 1 || at.left < -1);
        });
        return cut.map((element) => element.textContent.trim().slice(0, 60));
      });
      if (outside.length > 0) {
        wrong.push(`${name}: outside of the window: ${outside.slice(0, 5).join(" | ")} (${outside.length})`);
      }
      if (await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)) {
        wrong.push(`${name}: scrolls sideways`);
      }
      const seen = await page.evaluate(letters);
      if (seen.length > 0) {
        wrong.push(`${name}: ${seen.slice(0, 5).join(" | ")} (${seen.length})`);
      }
      wrong.push(...(await serious(page)).map((one) => `${name}: ${one}`));
      if (folder !== "-") {
        await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
      }
      await page.close();
    }
    await context.close();
  }
}
await browser.close();
if (wrong.length > 0) {
  console.error(wrong.join("\n"));
  process.exit(1);
}
console.log(`${pages.length} pages, light and dark, at 650 and 1,200 pixels: nothing outside, nothing serious`);
