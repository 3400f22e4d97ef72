/** The page of a prior, or of a posterior as one types: the density of each number, what is predicted beside the data, and what does not go together. */
import type { FromPrior, ToPrior } from "../../src/live/messages";
import type { PriorAnswer } from "../../src/protocol";
import { el, style } from "../dom";
import { AS_WRITTEN, ParameterTable } from "../run/parameters";
import { predictiveView } from "../run/predictive";
import css from "../run/run.css";

const vscode = acquireVsCodeApi();
const choose = (site: string): void => vscode.postMessage({ type: "site", site } satisfies FromPrior);

style(css);
const table = new ParameterTable(AS_WRITTEN, choose, () => undefined, "are not shown");
const root = document.getElementById("root") as HTMLElement;
root.replaceChildren(el("p", { class: "facts" }, "The program under the cursor is drawn from; the first time takes a second."));

window.addEventListener("message", ({ data }: MessageEvent<ToPrior>) => {
  root.replaceChildren(...(data.type === "problem" ? [problem(data.text)] : page(data.answer, data.live)));
});
vscode.postMessage({ type: "ready" } satisfies FromPrior);

function problem(text: string): HTMLElement {
  return el("p", { class: "written error", role: "alert" }, text);
}

function page({ program, data, problem: why, summary, notes, outside }: PriorAnswer, live?: string): HTMLElement[] {
  const facts = live ?? `${data}${summary ? ` · ${summary.draws} draws` : ""}`;
  const head = el("header", {}, el("h1", {}, `${live === undefined ? "Prior" : "Live posterior"} of ${program}`), el("span", { class: "facts" }, facts));
  if (why !== null || !summary) {
    return [head, problem(why ?? "There are no draws.")];
  }
  const told = [...Object.values(outside), ...notes].map((note) => el("li", { class: "warning" }, note));
  table.show(summary);
  return [head, ...(told.length > 0 ? [el("ul", { class: "notes", role: "alert" }, ...told)] : []), table.element, ...predictiveView(summary, choose)];
}
