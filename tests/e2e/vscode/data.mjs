/** Choosing data in VS Code: the table beside the program, with one wrong column marked before anything runs. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import * as path from "node:path";
import { Session, eventually, steps } from "./session.mjs";

const RADON = `object County : FinSet _
object House : FinSet _
program radon : House -> House
    data county : House -> County
    data floor : House
    sample mu : County <- Normal(0.0, 1.0)
    sample slope <- Normal(0.0, 1.0)
    let eta = mu[county] + slope * floor
    observe log_radon : House <- Normal(eta, 1.0)
    return mu
`;
const rows = (wrong) => Array.from({ length: 30 }, (_, row) => `${["anoka", "becker", "carver"][row % 3]},${row === 21 ? wrong : row % 2},${(0.3 * (row % 7) - 0.5).toFixed(1)},x${row}`);
const table = (wrong) => `county,floor,log_radon,note\n${rows(wrong).join("\n")}\n`;

// in a folder below the workspace's, with settings and data of its own
const LAKES = {
  "north/lakes.qvr": `object Lake : FinSet _
program lakes : Lake -> Lake
    data depth : Lake
    sample mean <- Normal(0.0, 10.0)
    sample sd <- HalfNormal(5.0)
    observe depth : Lake <- Normal(mean, sd)
    return depth
`,
  "north/lakes.csv": "depth\n4.0\n7.5\n3.5\n6.0\n",
  "north/qvr.toml": '[run.lakes]\ndata = "csv:lakes.csv"\nwarmup = 200\nsamples = 200\n',
};

const session = await Session.start({ files: { "radon.qvr": RADON, "houses.csv": table("basement"), ...LAKES }, size: { width: 1500, height: 860 } });
const { page } = session;
const step = steps(session, "data");

async function choose() {
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "CSV file" }).click();
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "houses.csv" }).click();
  return session.webview(".verdict");
}

try {
  let frame;

  await step("a file is chosen, and shown with its wrong column before anything runs", async () => {
    await session.open("radon.qvr");
    await eventually("lenses", async () => (await page.locator(".codelens-decoration").count()) > 0, 120_000);
    await session.command("QVR: Sample by NUTS");
    const offered = page.locator(".quick-input-list .monaco-list-row");
    await offered.filter({ hasText: "CSV file" }).waitFor(); // what is there before is the list of commands
    const names = await offered.allInnerTexts();
    assert.match(names[0], /CSV file/, "Enter never takes made-up data where the program declares its own");
    assert.match(names.at(-1), /Synthetic/);
    frame = await choose();
    assert.equal(await frame.locator(".verdict").innerText(), "does not fit");
    const wrong = frame.locator("thead th.wrong b");
    assert.deepEqual(await wrong.allInnerTexts(), ["floor"]);
    assert.match(await frame.locator(".problems").innerText(), /column `floor`, row 22: .*basement/);
    assert.equal(await frame.locator("td.cell").innerText(), "basement");
    assert.equal(await frame.getByRole("button", { name: "Run on This Data" }).isDisabled(), true);
    assert.equal(existsSync(session.file(".qvr")), false);
    assert.equal(existsSync(session.file("qvr.toml")), false);
  });

  await step("each column stands beside the name that reads it, with both types", async () => {
    const heads = await frame.locator("thead tr").evaluateAll((lines) => lines.map((line) => [...line.children].map((cell) => cell.textContent)));
    assert.deepEqual(heads[0], ["column", "county", "floor", "log_radon", "note"]);
    assert.match(heads[1].join("|"), /text: anoka, becker, carver\|text: .*\|numbers, −0.5 to 1.3\|text/);
    assert.deepEqual(heads[2], ["read by", "county", "floor", "log_radon", "nothing"]);
    assert.match(heads[3].join("|"), /an element of County for each House\|a .*number for each House\|a real number for each House\|$/);
    await frame.getByRole("button", { name: "log_radon" }).click();
    await eventually("the line", async () => (await page.locator(".statusbar-item", { hasText: "Ln 9," }).count()) > 0);
  });

  await step("the file is mended, and the mark goes away", async () => {
    writeFileSync(session.file("houses.csv"), table("1"));
    await eventually("it fits", async () => (await frame.locator(".verdict").innerText()) === "fits the program");
    assert.equal(await frame.locator(".wrong").count(), 0);
  });

  await step("the program is changed, and no column is for a name", async () => {
    await session.focusEditor();
    await session.goTo(9, RADON.split("\n")[8].indexOf("log_radon") + 1);
    await page.keyboard.press("F2");
    await page.locator(".rename-box input").fill("radons");
    await page.keyboard.press("Enter");
    await eventually("it is told", async () => /radons wants a real number for each House, and no column is for it/.test(await frame.locator("body").innerText()));
    await page.keyboard.press("Control+Z");
    await eventually("it fits", async () => (await frame.locator(".verdict").innerText()) === "fits the program");
  });

  await step("the run begins once it is wanted", async () => {
    await frame.getByRole("button", { name: "Run on This Data" }).click();
    await session.webview(".status", 60_000);
    await session.webview(".status:not(.starting)", 120_000);
    assert.match(readFileSync(session.file("qvr.toml"), "utf8"), /\[run\.radon\]\ndata = "csv:houses\.csv"/);
  });

  await step("data that a qvr.toml beside the program names are taken without a question", async () => {
    await page.getByRole("treeitem", { name: "north" }).first().click();
    await session.open("lakes.qvr");
    await session.command("QVR: Sample by NUTS");
    const folders = () => [session.file(".qvr/runs"), session.file("north/.qvr/runs")].filter(existsSync);
    const jobs = () => folders().flatMap((folder) => readdirSync(folder).filter((name) => name.endsWith("-lakes")).map((name) => path.join(folder, name, "job.json"))); // prettier-ignore
    const [job] = await eventually("its run", async () => (jobs().some(existsSync) ? jobs() : undefined), 120_000);
    assert.match(JSON.parse(readFileSync(job, "utf8")).config.data, /^csv:.*lakes\.csv$/);
    await eventually("no question is open", async () => (await page.locator(".quick-input-widget:visible").count()) === 0);
  });

  assert.deepEqual(session.violations, []);
  console.log("ok all steps");
} finally {
  await session.stop();
}
