/** A user's way through the playground, from the first visit to one without a network. */
import { mkdirSync, readFileSync } from "node:fs";
import * as path from "node:path";
import { ROOT, Session, holds, same } from "./session.mjs";

const TEXT = `object A : FinSet 2
object B : Real 3
object C : Real 4
morphism f : A -> B [role=embed]
morphism g : C -> A ~ Categorical
let h = f >> g
`;

mkdirSync(path.join(ROOT, ".cache/e2e"), { recursive: true });
const s = await Session.start();
const step = async (name, work) => {
  const before = Date.now();
  try {
    await work();
  } catch (error) {
    await s.page.screenshot({ path: path.join(ROOT, ".cache/e2e/playground-failed.png") }).catch(() => undefined);
    console.log(`failed: ${name}`);
    throw error;
  }
  console.log(`ok ${name} (${Date.now() - before} ms)`);
};
/** Open an example by the name of its file, which stands behind its title. */
const choose = async (page, name) => page.selectOption("#examples", await page.locator(`#examples option[title="${name}"]`).first().getAttribute("value"));
const squiggles = () => s.page.locator(".squiggly-error");

try {
  await step("the first program is checked and drawn", async () => {
    await s.checked();
    same(await s.page.textContent("#count"), "No problems", "problems of the first program");
    await s.diagram.locator("g.node").first().waitFor();
  });

  /** The table of the run: R-hat and effective draws by the name of the number. */
  const sampled = async () => {
    await s.page.click("#sample");
    await s.page.waitForFunction(() => document.documentElement.dataset.sampling === "idle" && document.querySelector("#told").textContent);
    same(await s.page.getAttribute("#told", "class"), "", "the run failed");
    const rows = await s.page.locator("#summary tbody tr").evaluateAll((found) => found.map((row) => [...row.cells].map((cell) => cell.textContent)));
    return new Map(rows.map(([name, , , , , , rHat, bulk]) => [name, { rHat: Number(rHat), bulk: Number(bulk) }]));
  };

  await step("the first program is sampled with its data, while the server answers", async () => {
    const rows = await sampled();
    holds(rows.has("overall") && rows.has("effect[7]"), "a summary is shown");
    await s.page.click("#view");
  });

  await step("a mistake is marked at its operator, and listed", async () => {
    await s.write(TEXT);
    await squiggles().first().waitFor({ state: "attached" });
    same(await squiggles().count(), 1, "squiggles");
    const box = await squiggles().first().boundingBox();
    const wanted = await s.placeOf(">>");
    holds(Math.abs(box.x - wanted.left) < 2 && Math.abs(box.x + box.width - wanted.right) < 2, `${JSON.stringify(box)} is not at ${JSON.stringify(wanted)}`);
    const row = s.page.locator("#problems button").first();
    holds((await row.textContent()).includes("line 6"), "the row names its line");
    await row.click();
    same(await s.line(), 6, "line of the problem");
    const link = s.page.locator("#problems a").first();
    same(await link.textContent(), "compose-mismatch", "code");
    const answer = await s.page.request.get(await link.getAttribute("href"));
    holds(answer.ok() && (await answer.text()).includes("<h1"), "the page of the code is there");
  });

  await step("the mistake is mended and the mark is gone", async () => {
    await s.cursorAt("Real 4", { after: true });
    await s.page.keyboard.press("Backspace");
    await s.page.keyboard.type("3");
    await squiggles().first().waitFor({ state: "detached" });
    await s.page.getByText("No problems").waitFor();
  });

  await step("hover says the type", async () => {
    const { left, top, height } = await s.placeOf("f >> g");
    await s.page.mouse.move(left + 3, top + height / 2);
    await s.page.locator(".monaco-hover-content").getByText("f : A => B").waitFor();
    await s.page.mouse.move(10, 400);
  });

  const suggestion = (name) => s.page.locator(".suggest-widget .monaco-list-row", { hasText: name });
  await step("completion offers what fits, and keys inside brackets", async () => {
    const fits = TEXT.replace("Real 4", "Real 3");
    for (const [line, place, wanted] of [["let k = f >> ", "let k = f >> ", "g"], ["morphism m : B -> C []", "B -> C [", "role"]]) {
      await s.write(`${fits}${line}\n`);
      await s.cursorAt(place, { after: true });
      await s.page.keyboard.press("Control+Space");
      await suggestion(wanted).first().waitFor();
      await s.page.keyboard.press("Escape");
      await s.page.locator(".suggest-widget.visible").waitFor({ state: "detached" });
    }
  });

  await step("signature help inside brackets", async () => {
    await s.write("object A : FinSet 2\nprogram p : A -> A\n    sample x : A <- Normal()\n    return x\n");
    await s.cursorAt("Normal(", { after: true });
    await s.page.keyboard.press("Control+Shift+Space");
    await s.page.locator(".parameter-hints-widget").getByText("loc").first().waitFor();
    await s.page.keyboard.press("Escape");
    await s.write(TEXT.replace("Real 4", "Real 3"));
  });

  await step("rename", async () => {
    await s.cursorAt("f >> g");
    await s.page.keyboard.press("F2");
    const input = s.page.locator(".rename-input, .rename-box input").first();
    await input.waitFor();
    await input.fill("first");
    await s.page.keyboard.press("Enter");
    await s.page.waitForFunction(() => window.qvrEditor.getModel().getValue().includes("first >> g"));
    holds((await s.text()).includes("morphism first : A"), "the declaration is renamed too");
  });

  await step("one keystroke mends what the checker knows how to", async () => {
    await s.write("object Token : FinSet 2\nobject Hidden : Real 3\nmorphism f : Token -> Hiden [role=embed]\n");
    await squiggles().first().waitFor({ state: "attached" });
    await s.cursorAt("Hiden");
    await s.page.keyboard.press("Alt+Enter");
    await s.page.waitForFunction(() => window.qvrEditor.getModel().getValue().includes("Token -> Hidden"));
    await squiggles().first().waitFor({ state: "detached" });
  });

  await step("go to definition, in the text and in the library", async () => {
    const library = readFileSync(path.join(ROOT, "examples/lstm_lm.qvr"), "utf8");
    await s.write(library);
    await s.page.getByText("No problems").waitFor();
    await s.cursorAt("lstm(Embedded");
    await s.page.keyboard.press("F12");
    await s.page.locator("#back").waitFor();
    holds((await s.page.textContent("#back-name")).startsWith("std/"), "the bar names the file");
    await s.page.click("#back-button");
    same(await s.text(), library, "the program is shown again");
  });

  await step("format, inlay hints, symbols", async () => {
    await s.write("object   A : FinSet 2\nobject B : Real 3\nmorphism f : A -> B [role=embed]\nlet h = f\n");
    await s.page.keyboard.press("Control+Shift+KeyI");
    await s.page.waitForFunction(() => window.qvrEditor.getModel().getValue().startsWith("object A : FinSet 2"));
    await s.page.waitForFunction(() => document.querySelector('#editor [class*="dyn-rule"], #editor span[class*="ced-"]') !== null);
    await s.page.keyboard.press("Control+Shift+O");
    await s.page.locator(".quick-input-list").getByText("f", { exact: true }).first().waitFor();
    await s.page.keyboard.press("Escape");
  });

  await step("the diagram and the cursor follow each other", async () => {
    await choose(s.page, "radon");
    await s.checked();
    holds((await s.text()).includes("program radon"), "the example is open");
    await s.cursorAt("by_floor <-");
    const current = s.diagram.locator("g.node.current");
    await current.filter({ hasText: "by_floor" }).waitFor();
    await s.diagram.locator("g.node", { hasText: "HalfNormal(0.5)" }).first().click();
    await s.page.waitForFunction(() => {
      const editor = window.qvrEditor;
      return editor.getModel().getLineContent(editor.getPosition().lineNumber).includes("sample between");
    });
    await current.filter({ hasText: "between" }).waitFor();
  });

  await step("the posterior as one types stands behind the steps, until it is switched off", async () => {
    const said = (wanted) => s.page.waitForFunction((text) => document.querySelector("#live-line").textContent.includes(text), wanted);
    const behind = () => s.page.waitForFunction(() => /live\s−?[\d.]+ ± /.test(document.querySelector("#editor .view-lines").textContent.replaceAll("\u00a0", " ")));
    await choose(s.page, "eight_schools");
    await s.checked();
    await s.page.waitForFunction(() => document.querySelector("#cells").value.length > 0);
    await s.page.selectOption("#live", "posterior");
    const text = await s.page.evaluate(() => window.qvrEditor.getValue());
    await s.write(`${text}\n# a comment\n`);
    await said("live posterior: 4 chains of 500 draws");
    await s.cursorAt("sample ");
    await behind();
    await s.write(text.replace("<- Normal(", "<- Normal(nothing(1.0) + "));
    await s.page.waitForFunction(() => !/live posterior:|loading/.test(document.querySelector("#live-line").textContent));
    await s.page.selectOption("#live", "off");
    await said("");
    await s.write(text);
    await s.checked();
  });

  await step("posteriors of the page are those of the command line", async () => {
    for (const [label, numbers] of Object.entries(JSON.parse(process.env.POSTERIORS))) {
      await choose(s.page, label);
      await s.checked();
      await s.page.waitForFunction(() => document.querySelector("#cells").value.length > 0);
      const rows = await sampled();
      holds(/draws in [0-9.]+ s, no divergences/.test(await s.page.textContent("#told")), "the run is told");
      const [download] = await Promise.all([s.page.waitForEvent("download"), s.page.click("#save-draws")]);
      const [head, ...lines] = readFileSync(await download.path(), "utf8").trim().split("\n");
      const names = head.split(",").slice(2);
      const draws = lines.map((line) => line.split(",").slice(2).map(Number));
      same(draws.length, 4_000, "draws in the file");
      same([...names].sort(), Object.keys(numbers).sort(), "numbers in the file");
      names.forEach((name, at) => {
        const values = draws.map((line) => line[at]);
        const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
        const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
        const { rHat, bulk } = rows.get(name);
        holds(rHat < 1.05, `R-hat of ${name} is ${rHat}`);
        const error = Math.hypot(Math.sqrt(variance / bulk), numbers[name].error);
        holds(Math.abs(mean - numbers[name].mean) < 4 * error, `${label}: ${name} is ${mean}, and ${numbers[name].mean} ± ${error} by the command line`);
      });
    }
  });

  await step("draws are saved as NetCDF, which ArviZ reads", async () => {
    const [download] = await Promise.all([s.page.waitForEvent("download"), s.page.click("#save-posterior")]);
    same(download.suggestedFilename(), "posterior.nc", "the name of the file");
    await download.saveAs(path.join(process.env.SAVED, "posterior.nc"));
  });

  await step("the posterior stands behind its steps until the text changes", async () => {
    await s.page.waitForFunction(() => document.querySelector(".view-lines").innerText.includes("≈"));
    await s.cursorAt("program radon");
    await s.page.keyboard.type("# new\n");
    await s.page.waitForFunction(() => !document.querySelector(".view-lines").innerText.includes("≈"));
    holds((await s.text()).includes("# new"), "the text is changed");
    await s.checked();
  });

  await step("a run is cancelled, and the next one begins", async () => {
    await s.page.fill("#draws", "20000");
    await s.page.click("#sample");
    await s.page.click("#cancel");
    await s.page.locator("#told").getByText("Cancelled").waitFor();
    await s.page.fill("#draws", "1000");
    await sampled();
  });

  await step("data that do not fit are told by file, row and column", async () => {
    await s.page.fill("#cells", `county,ground,log_radon\n0,1,high\n${"0,1,0.5\n".repeat(118)}`);
    await s.page.click("#sample");
    await s.page.locator("#told.error").getByText("`high` is not a number").waitFor();
    holds(/pasted\.csv|radon\.csv/.test(await s.page.textContent("#told")), "the file is named");
    await s.page.click("#view");
    await s.diagram.locator("g.node").first().waitFor();
  });

  await step("an example that imports the library, and what stood before", async () => {
    await choose(s.page, "lstm_lm");
    await s.checked();
    holds((await s.text()).includes("std/"), "it imports the library");
    await s.page.getByText("No problems").waitFor();
    holds((await s.page.locator('#examples optgroup[label^="Earlier"] option').count()) > 0, "the text before is kept");
  });

  await step("a link holds the program and is opened elsewhere", async () => {
    const shared = `${TEXT}# λ → 𝔸 shared\n`;
    await s.write(shared);
    s.server.taken();
    await s.page.click("#share");
    await s.page.locator("#link").waitFor();
    const link = await s.page.inputValue("#link");
    same(s.server.taken(), 0, "bytes sent for a link");
    const other = await s.browser.newContext();
    const page = await other.newPage();
    await page.goto(link);
    await page.waitForSelector("html[data-checked]", { state: "attached", timeout: 120_000 });
    same(await page.evaluate(() => window.qvrEditor.getModel().getValue()), shared, "the text of the link");
    same(new URL(page.url()).hash, "", "the address afterwards");
    await page.goto(`${s.server.address}?again#code=AAAA-broken`);
    await page.getByText("The link is broken").waitFor();
    same(await page.evaluate(() => window.qvrEditor.getModel().getValue()), shared, "the own text after a broken link");
    await other.close();
  });

  await step("light and dark", async () => {
    const background = () => s.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await s.page.click("#shade");
    holds((await background()) !== light, "the switch changes the colours");
    same(await s.diagram.locator("html").getAttribute("data-shade"), "dark", "shade of the diagram");
    await s.page.click("#shade");
    await s.page.emulateMedia({ colorScheme: "dark" });
    await s.page.waitForFunction(() => document.documentElement.dataset.shade === "dark");
    await s.page.emulateMedia({ colorScheme: "light" });
    await s.page.waitForFunction(() => document.documentElement.dataset.shade === "light");
  });

  await step("a megabyte: the page answers while it is checked", async () => {
    const one = readFileSync(path.join(ROOT, "examples/radon.qvr"), "utf8");
    let large = "";
    for (let count = 0; large.length < 1_000_000; count += 1) {
      large += one.replaceAll(/\b(radon|House|County)\b/g, `$1_${count}`);
    }
    await s.page.evaluate((text) => window.qvrEditor.getModel().setValue(text), large);
    await s.page.click("#shade");
    await s.page.click("#shade");
    await s.checked();
    await s.write(TEXT);
    await squiggles().first().waitFor({ state: "attached" });
  });

  await step("what is nested too deeply is an error, and no end of the checker", async () => {
    await s.write(`let h = ${"(".repeat(20_000)}f${")".repeat(20_000)}\n`);
    await s.page.locator("#problems").getByText("nested too deeply").waitFor();
    await s.write(TEXT);
    await squiggles().first().waitFor({ state: "attached" });
    same(await s.page.locator("#failure").isVisible(), false, "a failure is shown");
  });

  await step("a load that fails is told with a remedy, and tried again", async () => {
    const other = await s.browser.newContext({ serviceWorkers: "block" });
    await other.route("**/server/python.zip", (route) => route.abort());
    const page = await other.newPage();
    await page.goto(s.server.address);
    await page.locator("#failure").getByText("Look whether this machine is online").waitFor({ timeout: 120_000 });
    await other.unroute("**/server/python.zip");
    await page.locator("#failure button").click();
    await page.waitForSelector("html[data-checked]", { state: "attached", timeout: 120_000 });
    same(await page.locator("#failure").isVisible(), false, "a failure is shown");
    await other.close();
  });

  const hoverSays = async (page, words) => {
    const shown = page.locator(".monaco-hover-content").getByText(words);
    for (let tries = 0; !(await shown.isVisible()); tries++) {
      holds(tries < 40, `a hover says ${words}`);
      // a page that was just loaded asks again only when the mouse moves
      const { left, top, height } = await s.placeOf("f >> g");
      await page.mouse.move(10, 400);
      await page.mouse.move(left + 3, top + height / 2);
      await shown.waitFor({ timeout: 3_000 }).catch(() => {});
    }
    await page.mouse.move(10, 400);
  };
  const visit = async (from) => {
    await s.write(TEXT);
    await s.page.waitForTimeout(400); // the text is kept
    await s.open();
    await s.checked();
    same(await s.page.getAttribute("html", "data-from"), from, "what the server came from");
    await squiggles().first().waitFor({ state: "attached" });
    same(await squiggles().count(), 1, "squiggles");
    await hoverSays(s.page, "f : A => B");
    same(await s.page.locator("#failure").isVisible(), false, "a failure is shown");
  };
  const kept = () => s.page.waitForSelector('html[data-memory="kept"]', { state: "attached" });

  await step("a second visit goes on from the memory that was kept", async () => {
    await kept();
    await visit("memory");
    same(await s.page.evaluate(async () => (await (await caches.open("qvr-server-memory")).keys()).length), 1, "memories kept");
  });

  await step("a memory that is damaged is dropped, and made anew", async () => {
    for (const damage of ["a byte", "the end"]) {
      await kept();
      await s.page.evaluate(async (damage) => {
        const store = await caches.open("qvr-server-memory");
        const [key] = await store.keys();
        const found = await store.match(key);
        const bytes = new Uint8Array(await found.arrayBuffer());
        bytes[bytes.length >> 1] ^= 1;
        await store.put(key, new Response(damage === "a byte" ? bytes : bytes.slice(0, 100_000), { headers: found.headers }));
      }, damage);
      await visit("files");
    }
    await kept();
    await visit("memory");
  });

  await step("without a network, a second visit has everything and the text", async () => {
    await s.page.waitForSelector('html[data-offline="ready"]', { state: "attached" });
    await s.write(`${TEXT}# kept\n`);
    await s.server.stop();
    await s.context.setOffline(true);
    await s.open();
    await s.checked();
    holds((await s.text()).endsWith("# kept\n"), "the text is kept");
    await squiggles().first().waitFor({ state: "attached" });
    await s.diagram.locator("g.node").first().waitFor();
    await choose(s.page, "eight_schools");
    await s.checked();
    await s.page.waitForFunction(() => document.querySelector("#cells").value.length > 0);
    holds((await sampled()).has("mu"), "a run without a network");
  });

  await step("nothing failed on the way", async () => {
    same(s.errors, [], "errors of the page");
  });
  console.log("ok all steps");
} finally {
  await s.browser.close();
}
process.exit(0);
