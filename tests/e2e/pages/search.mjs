/** What a reader finds who types words into the site's search: `node search.mjs SITE WORDS=PAGE…`; PAGE is among the first three. */
import * as path from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "../../../playground/node_modules/playwright-core/index.mjs";

const [site, ...asked] = process.argv.slice(2);
const HANG = Number(process.env.HANG ?? 120_000);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage();
page.setDefaultTimeout(HANG);
await page.goto(pathToFileURL(path.join(path.resolve(site), "index.html")).href);
const wrong = [];
for (const one of asked) {
  const [words, wanted] = one.split("=");
  // typed anew until the index is there: what is typed before is not asked for
  const first = await (async () => {
    for (const end = Date.now() + HANG; Date.now() < end; ) {
      await page.locator(".md-search__input").fill("");
      await page.locator(".md-search__input").pressSequentially(words);
      const found = page.locator(".md-search-result__item > a");
      try {
        await found.first().waitFor({ state: "attached", timeout: 5000 });
        return await found.evaluateAll((links) => links.slice(0, 3).map((link) => link.href));
      } catch {
        continue;
      }
    }
    return [];
  })();
  if (!first.some((link) => link.includes(`/${wanted}`))) {
    wrong.push(`${words}: ${first.join(" ")}, not ${wanted}`);
  }
}
await browser.close();
if (wrong.length > 0) {
  console.error(wrong.join("\n"));
  process.exit(1);
}
