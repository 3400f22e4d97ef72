/** Start to first diagnostics in Chromium, and bytes over the wire, as JSON: the first visit, the second, one offline. */
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { serve } from "./serve.mjs";

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
]; // prettier-ignore
const rounds = Number(process.argv[2] ?? 3);
const server = await serve(fileURLToPath(new URL("dist", import.meta.url)), { quality: 9 });
server.warm("br");
server.warm("gzip");

const found = { first: [], second: [], parts: { first: [], second: [] }, bytes: 0, afterwards: 0, again: 0 };
for (let round = 0; round < rounds; round += 1) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: FLAGS });
  const context = await browser.newContext();
  const visit = async () => {
    const page = await context.newPage();
    await page.goto(server.address);
    await page.waitForSelector("html[data-checked]", { state: "attached", timeout: 120_000 });
    const seconds = (await page.evaluate(() => performance.getEntriesByName("qvr-diagnostics")[0].startTime)) / 1000;
    const bytes = server.taken();
    const [worker] = page.workers().filter((one) => one.url().endsWith("/server/worker.js"));
    const parts = await worker.evaluate(() => performance.getEntriesByType("mark").map(({ name, startTime }) => [name, startTime / 1000]));
    // what the next visit starts from
    await page.waitForSelector('html[data-memory="kept"]', { state: "attached", timeout: 120_000 });
    await page.close();
    return { seconds, bytes, parts: Object.fromEntries(parts) };
  };
  const first = await visit();
  found.afterwards = server.taken();
  const second = await visit();
  found.first.push(first.seconds);
  found.second.push(second.seconds);
  found.parts.first.push(first.parts);
  found.parts.second.push(second.parts);
  found.bytes = first.bytes;
  found.again = second.bytes;
  await browser.close();
}
await server.stop();
console.log(JSON.stringify(found));
