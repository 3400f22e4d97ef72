/** A diagram of sixty stages in VS Code: folded, opened, never too small to read, around the cursor, with a minimap. */
import assert from "node:assert/strict";
import { Session, eventually, steps } from "./session.mjs";

const COUNT = 60;
const arrows = Array.from({ length: COUNT }, (_, number) => `morphism stage_${number} : A -> A [role=linear]\n`).join("");
const chain = Array.from({ length: COUNT }, (_, number) => `stage_${number}`).join(" >> ");
const PROGRAM = `object A : Real 8\n${arrows}let deep = ${chain}\n`;
/** Each one runs into all of the next layer: slow to lay out. */
const WIDE = 13;
const layers = Array.from({ length: 14 }, (_, layer) => Array.from({ length: WIDE }, (_, number) => `f${layer}_${number}`));
const dense = `object A : Real 2\n${layers.flat().map((name) => `morphism ${name} : A${" * A".repeat(WIDE - 1)} -> A [role=linear]\n`).join("")}let dense = ${layers.map((layer) => `fan(${layer.join(", ")})`).join(" >> ")}\n`;

const session = await Session.start({ files: { "deep.qvr": PROGRAM, "dense.qvr": dense }, size: { width: 1500, height: 820 } });
const { page } = session;
const step = steps(session, "stages");

/** The height of a label on the screen, in CSS pixels. */
const letters = (frame) => frame.locator("g.node text").first().evaluate((text) => text.getBoundingClientRect().height);
const isSeen = (frame, id) =>
  frame.locator(`[id="node:${id}"]`).evaluate((group) => {
    const [place, seen] = [group.getBoundingClientRect(), group.closest(".frame").getBoundingClientRect()];
    return place.left >= seen.left && place.right <= seen.right && place.top >= seen.top && place.bottom <= seen.bottom;
  });

try {
  let frame;

  await step("a long chain stands as its two ends", async () => {
    await session.open("deep.qvr");
    await session.command("QVR: Show Diagram");
    frame = await session.webview("g.node");
    const words = await frame.locator("g.node").allTextContents();
    assert.equal(words.length, 9, words.join("; "));
    assert.ok(words.some((one) => /54 stages\s*stage_3 … stage_56/.test(one)), words.join("; "));
    assert.ok((await letters(frame)) >= 10, String(await letters(frame)));
  });

  await step("the cursor in a folded stage lights the node that stands for it", async () => {
    await session.focusEditor();
    await session.goTo(2 + 30, 12);
    await eventually("the fold is lit", async () => (await frame.locator('[id="node:fold_stage_0"].current').count()) === 1);
  });

  await step("opened, it is readable, with a minimap, around the stage of the cursor", async () => {
    await frame.locator('[id="node:fold_stage_0"]').click();
    await eventually("all stages", async () => (await frame.locator("g.node").count()) === COUNT + 2);
    await eventually("stage 30 is lit", async () => (await frame.locator('[id="node:stage_30"].current').count()) === 1);
    assert.ok((await letters(frame)) >= 10, String(await letters(frame)));
    await eventually("it is in sight", () => isSeen(frame, "stage_30"));
    assert.equal(await frame.locator(".minimap").isVisible(), true);
  });

  await step("the cursor moves, and the diagram with it", async () => {
    await session.focusEditor();
    await session.goTo(2 + 57, 12);
    await eventually("stage 57 is in sight", () => isSeen(frame, "stage_57"));
    assert.equal(await isSeen(frame, "stage_30"), false);
    await frame.getByRole("button", { name: "Fit the whole diagram" }).click();
    assert.ok((await letters(frame)) >= 10);
  });

  await step("a click into the minimap goes there", async () => {
    const { width, height } = await frame.locator(".minimap").boundingBox();
    await frame.locator(".minimap").click({ position: { x: width > height ? 6 : width / 2, y: width > height ? height / 2 : 6 } });
    await eventually("the beginning is in sight", () => isSeen(frame, "A"));
  });

  await step("a layout that takes long says how much there is, and can be cancelled", async () => {
    await session.command("View: Close All Editors");
    await session.open("dense.qvr");
    await session.command("QVR: Show Diagram");
    frame = await session.webview(".busy:not([hidden])", 60_000);
    // in one go: the layout may end between two messages to the page
    const told = await frame.locator(".busy").evaluate((busy) => {
      const text = busy.innerText;
      busy.querySelector("button").click();
      return text;
    });
    assert.match(told, /Laying out 1\d\d nodes/);
    await frame.locator(".problem:not([hidden])").waitFor();
    assert.match(await frame.locator(".problem").innerText(), /layout of 1\d\d nodes was cancelled/);
    assert.equal(await frame.locator("g.node").count(), 0);
  });

  assert.deepEqual(session.violations, []);
  console.log("ok all steps");
} finally {
  await session.stop();
}
