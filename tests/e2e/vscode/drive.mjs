/** What a user does with QVR in VS Code, step by step; each step asserts what is seen. Run by tests/e2e/test_vscode.py. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { Session, eventually, example, steps } from "./session.mjs";

const PROGRAM = "bidirectional_rnn_lm.qvr";
const text = readFileSync(example(PROGRAM), "utf8");
const lines = text.split("\n");
const book = "It was the best of times, it was the worst of times, it was the age of wisdom. ".repeat(3000);

const session = await Session.start({ files: { [PROGRAM]: text, "book.txt": book } });
const { page } = session;
const step = steps(session, "drive");

/** One-based place of `word` in the first line that holds `wanted`. */
function place(wanted, word = wanted, source = lines) {
  const line = source.findIndex((one) => one.includes(wanted));
  assert.ok(line >= 0, `no line with ${wanted}`);
  return [line + 1, source[line].indexOf(word) + 1];
}

async function squiggles() {
  return page.locator(".monaco-editor .squiggly-error").count();
}

async function problems() {
  return page.locator(".markers-panel .monaco-tl-contents").allInnerTexts();
}

function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return ""; // it ended meanwhile
  }
}

/** Processes below `root`, so that nothing is touched that this test did not start. */
function descendants(root) {
  const parents = execFileSync("ps", ["-eo", "pid=,ppid="], { encoding: "utf8" })
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  const found = new Set([root]);
  for (let before = 0; before !== found.size; ) {
    before = found.size;
    parents.forEach(([pid, parent]) => found.has(parent) && found.add(pid));
  }
  return [...found];
}

async function runPanel() {
  return session.webview(".status");
}

async function runStatus(wanted, timeout = 60_000) {
  return session.webview(`.status:text-is("${wanted}")`, timeout);
}

try {
  await step("open the bidirectional example", async () => {
    await session.open(PROGRAM);
    await eventually("the server's types", async () => (await page.locator(".codelens-decoration").count()) > 0, 60_000);
    assert.equal(await squiggles(), 0);
  });

  await step("break a width: squiggle and Problems", async () => {
    const [line, column] = place("object BwdHidden", "64");
    await session.goTo(line, column);
    await page.keyboard.press("Shift+End");
    await page.keyboard.type("32");
    await page.locator(".monaco-editor .squiggly-error").first().waitFor({ state: "attached" });
    await page.keyboard.press("Control+Shift+M");
    const found = await eventually("a problem", async () => {
      const all = (await problems()).filter((one) => /96/.test(one));
      return all.length > 0 ? all : undefined;
    });
    assert.match(found.join("\n"), /64 \+ 32 = 96/);
    assert.match(found.join("\n"), /128/);
    await page.locator(".markers-panel .monaco-tl-contents", { hasText: "96" }).first().click();
  });

  await step("apply the quick fix from the light bulb", async () => {
    await page.locator(".markers-panel .monaco-tl-contents", { hasText: "96" }).first().dblclick();
    await eventually("the fix is taken", async () => {
      await session.focusEditor();
      await page.keyboard.press("Control+.");
      const fix = page.locator(".action-widget .monaco-list-row", { hasText: "BwdHidden" }).first();
      try {
        await fix.click({ timeout: 3000 }); // the menu closes by itself where an answer of the server comes in between
        return true;
      } catch {
        await page.keyboard.press("Escape");
        return false;
      }
    });
    await eventually("the text is fixed", async () => (await session.shown()).includes("BwdHidden : Real 64"));
    await eventually("no squiggle", async () => (await squiggles()) === 0);
    await page.keyboard.press("Control+J");
  });

  await step("hover backbone", async () => {
    await session.focusEditor();
    await session.goTo(...place("let backbone", "backbone"));
    await page.keyboard.press("Control+K");
    await page.keyboard.press("Control+I");
    const hover = page.locator(".monaco-hover-content").first();
    await hover.waitFor();
    const words = await eventually("the type", async () => {
      const shown = await page.locator(".monaco-hover-content").allInnerTexts();
      return shown.join("\n").includes("Combined") ? shown.join("\n") : undefined;
    });
    assert.match(words, /backbone/);
    await page.keyboard.press("Escape");
  });

  await step("complete after >>", async () => {
    const [line] = place("let backbone");
    await session.goTo(line, lines[line - 1].length + 1);
    await page.keyboard.type(" >> ");
    await page.keyboard.press("Control+Space");
    const rows = page.locator(".suggest-widget.visible .monaco-list-row");
    await rows.first().waitFor();
    const labels = await eventually("arrows that fit", async () => {
      const all = await rows.allInnerTexts();
      return all.some((one) => one.includes("lm_head")) ? all : undefined;
    });
    assert.ok(!labels.slice(0, 3).some((one) => one.includes("tok_embed")), `tok_embed does not fit: ${labels}`);
    await page.keyboard.press("Escape");
    for (let back = 0; back < 4; back += 1) {
      await page.keyboard.press("Backspace");
    }
  });

  await step("rename an object", async () => {
    await session.goTo(...place("object FwdHidden", "FwdHidden"));
    await page.keyboard.press("F2");
    const input = page.locator(".rename-box input");
    await input.waitFor();
    await input.fill("ForwardState");
    await page.keyboard.press("Enter");
    await eventually("every use is renamed", async () =>
      (await session.shown()).includes("Embedded * ForwardState -> ForwardState"),
    );
    await page.keyboard.press("Control+S");
  });

  const renamed = lines.map((line) => line.replaceAll("FwdHidden", "ForwardState"));
  let diagram;

  await step("open the diagram panel", async () => {
    await session.command("QVR: Show Diagram");
    diagram = await session.webview("g.node");
    const nodes = await diagram.locator("g.node").count();
    assert.ok(nodes >= 7, `${nodes} nodes`);
    const words = await diagram.locator(".frame > svg").textContent();
    for (const wanted of ["tok_embed", "fwd_cell", "bwd_cell", "combine", "lm_head", "masked_token"]) {
      assert.ok(words.includes(wanted), `no ${wanted}`);
    }
  });

  await step("click a node and land on its source", async () => {
    await diagram.locator('[id="node:lm_head"]').click();
    const [line] = place("morphism lm_head", "lm_head", renamed);
    await eventually("the cursor", async () => (await page.locator(".statusbar-item", { hasText: `Ln ${line},` }).count()) > 0);
  });

  await step("move the cursor and see the node highlighted", async () => {
    await session.focusEditor();
    await session.goTo(...place("morphism combine", "combine", renamed));
    await eventually("combine is lit", async () => (await diagram.locator('[id="node:combine"].current').count()) === 1);
    assert.equal(await diagram.locator(".node.current").count(), 1);
  });

  await step("run SVI from the code lens on a text file", async () => {
    await session.focusEditor();
    await session.goTo(...place("program bidirectional", "program", renamed));
    await page.locator(".codelens-decoration a", { hasText: "SVI" }).first().click();
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "Text file" }).click();
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "book.txt" }).click();
    const frame = await runPanel();
    await frame.locator(".uplot canvas").waitFor({ timeout: 90_000 });
    assert.match(readFileSync(session.file("qvr.toml"), "utf8"), /\[run\.bidirectional_rnn_lm\]\ndata = "text:book\.txt"/);
  });

  await step("watch the loss panel update", async () => {
    const frame = await runPanel();
    const first = await frame.locator(".line").innerText();
    await eventually("the panel moves on", async () => (await frame.locator(".line").innerText()) !== first);
    assert.match(await frame.locator(".figures").innerText(), /ELBO/);
  });

  await step("cancel", async () => {
    const frame = await runPanel();
    await frame.getByRole("button", { name: "Cancel" }).click();
    await runStatus("cancelled", 20_000);
    assert.equal(await frame.getByRole("button", { name: "Resume" }).isVisible(), true);
    await session.closePanel();
  });

  await step("run again to the end and see the summary", async () => {
    writeFileSync(session.file("qvr.toml"), '[run.bidirectional_rnn_lm]\ndata = "text:book.txt"\nsteps = 60\nheld_out_rows = 128\n');
    await session.focusEditor();
    await session.command("QVR: Fit by SVI");
    const frame = await runStatus("finished", 120_000);
    const figures = await frame.locator(".figures").innerText();
    assert.match(figures, /bits per byte/);
    assert.match(figures, /unigram entropy/);
    assert.ok((await page.locator(".notifications-toasts", { hasText: "bits per byte" }).count()) > 0);
  });

  await step("see both runs in the side bar", async () => {
    await page.locator(".activitybar .action-label[aria-label='QVR']").first().click();
    const rows = page.getByRole("treeitem", { name: /bidirectional_rnn_lm · SVI/ });
    await eventually("two runs", async () => (await rows.count()) === 2);
    assert.match(await rows.first().getAttribute("aria-label"), /finished/);
    assert.match(await rows.last().getAttribute("aria-label"), /cancelled/);
  });

  await step("generate text from the finished run", async () => {
    const frame = await runPanel();
    await frame.getByRole("button", { name: "Generate text" }).click();
    const words = await eventually("text", async () => {
      const shown = await frame.locator(".written").innerText();
      return shown.length > 20 ? shown : undefined;
    }, 60_000); // prettier-ignore
    assert.equal(await frame.locator(".written.error").count(), 0, words);
    await session.closePanel();
  });

  await step("reload the window mid-run and re-attach", async () => {
    writeFileSync(session.file("qvr.toml"), '[run.bidirectional_rnn_lm]\ndata = "text:book.txt"\nsteps = 200000\n');
    await session.focusEditor();
    await session.command("QVR: Fit by SVI");
    const before = await runPanel();
    await before.locator(".uplot canvas").waitFor({ timeout: 90_000 });
    await page.reload();
    await page.locator(".monaco-workbench").waitFor({ timeout: 60_000 });
    const frame = await runStatus("running", 90_000);
    const first = await frame.locator(".line").innerText();
    await eventually("it goes on", async () => {
      const now = await frame.locator(".line").innerText();
      return now !== first && /of 200,000/.test(now);
    }, 60_000); // prettier-ignore
    await frame.getByRole("button", { name: "Cancel" }).click();
    await runStatus("cancelled", 20_000);
    // VS Code may bring back a panel that had been closed just before the reload.
    await eventually("the run panels are closed", async () => {
      const panels = page.locator(".editor-group-container").nth(1).locator(".tab:not(:has-text('◫'))");
      if ((await panels.count()) > 0) {
        await panels.first().click({ button: "middle" });
      }
      return (await panels.count()) === 0;
    });
  });

  await step("kill the server and see it come back", async () => {
    await session.focusEditor();
    const pids = () => descendants(session.server.pid).filter((pid) => commandOf(pid).includes("qvr_lsp.server"));
    const [old] = pids();
    process.kill(old, "SIGKILL");
    await eventually("another server", () => pids().some((pid) => pid !== old), 30_000);
    await session.goTo(...place("object BwdHidden", "64", renamed));
    await page.keyboard.press("Shift+End");
    await page.keyboard.type("32");
    await page.locator(".monaco-editor .squiggly-error").first().waitFor({ state: "attached", timeout: 30_000 });
    await page.keyboard.press("Control+Z");
    await page.keyboard.press("Control+Z");
  });

  await step("a broken interpreter path gives the one helpful message", async () => {
    session.configure({ "qvr.interpreterPath": "/nowhere/python" });
    const toast = page.locator(".notification-toast", { hasText: "/nowhere/python" });
    await toast.first().waitFor({ timeout: 30_000 });
    assert.equal(await toast.count(), 1);
    assert.match(await toast.innerText(), /qvr\.interpreterPath.*does not start/s);
    assert.ok((await toast.locator(".monaco-button, .monaco-text-button").count()) >= 1);
  });

  assert.deepEqual(session.violations, []);
  // The same page does report what its policy forbids, so the silence above means something.
  const panel = await session.webview("g.node");
  await panel.evaluate(() => { document.createElement("img").src = "data:image/gif;base64,R0lGODlhAQABAAAAACw="; });
  await eventually("a report", () => session.violations.length === 1);
  console.log("ok all steps");
} finally {
  await session.stop();
}
