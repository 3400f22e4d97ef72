/** The page of the data preview: the table, above each column the name of the program that reads it, and what does not fit. */
import type { FromData, ToData } from "../../src/data/messages";
import type { DataColumn, DataPreview, DataTable } from "../../src/protocol";
import { el, style } from "../dom";
import css from "./data.css";

const vscode = acquireVsCodeApi();
const send = (message: FromData): void => vscode.postMessage(message);
const count = (number: number): string => number.toLocaleString("en-US");

style(css);
const root = document.getElementById("root") as HTMLElement;

window.addEventListener("message", ({ data }: MessageEvent<ToData>) => {
  if (data.type === "problem") {
    root.replaceChildren(el("p", { class: "wrong", role: "alert" }, data.text), ...(data.choosing ? [el("p", {}, other())] : []));
  } else {
    root.replaceChildren(...page(data.preview, data.choosing));
  }
});
send({ type: "ready" });

function other(): HTMLElement {
  return el("button", { class: "secondary", click: () => send({ type: "other" }) }, "Choose Other Data…");
}

function page(preview: DataPreview, choosing: boolean): HTMLElement[] {
  const verdict = preview.fits
    ? el("span", { class: "verdict fits" }, "fits the program")
    : el("span", { class: "verdict wrong" }, preview.looked ? "does not fit" : "not looked into");
  const use = el("button", { class: "primary", disabled: preview.looked && !preview.fits, click: () => send({ type: "use" }) }, "Run on This Data");
  const head = el("header", {}, el("h1", {}, `${preview.program} · ${preview.data}`), verdict, el("span", { class: "space" }), ...(choosing ? [use, other()] : []));
  const problems = [...(preview.problem ? [preview.problem] : []), ...preview.missing.map((one) => one.problem), ...preview.tables.flatMap((table) => table.columns.flatMap((column) => column.problem ?? []))];
  const told = [...new Set(problems)].map((text) => el("li", { class: "wrong" }, text));
  const unread = preview.looked ? [] : [el("p", { class: "facts" }, "The editor cannot look into such a file; the run will say what does not fit.")];
  return [head, ...(told.length > 0 ? [el("ul", { class: "problems", role: "alert" }, ...told)] : []), ...unread, ...missing(preview), ...preview.tables.map(table)];
}

function missing(preview: DataPreview): HTMLElement[] {
  return preview.missing.map((one) => el("p", { class: "facts" }, name(one.site), ` wants ${one.wanted}, and no column is for it.`));
}

function name(site: string): HTMLElement {
  return el("button", { class: "link", title: `Go to ${site} in the program`, click: () => send({ type: "site", site }) }, site);
}

function table(shown: DataTable): HTMLElement {
  const rows = shown.rows ? `${shown.whole ? "" : "the first "}${count(shown.rows)} rows` : "arrays";
  const left = shown.left_out ? `; ${shown.left_out} further columns are not shown` : "";
  const numbered = (text: string) => el("th", { scope: "row", class: "number" }, text);
  const wrong = (column: DataColumn) => (column.problem ? "wrong" : column.site ? "" : "unread");
  const line = (label: string, each: (column: DataColumn) => (HTMLElement | string)[], title?: (column: DataColumn) => string) =>
    el("tr", {}, numbered(label), ...shown.columns.map((column) => el("th", { scope: "col", class: wrong(column), title: title?.(column) ?? "" }, ...each(column))));
  const body = shown.numbers.map((number, row) =>
    el("tr", {}, numbered(count(number)), ...shown.columns.map((column, at) => el("td", { class: column.row === number ? "wrong cell" : wrong(column) }, shown.cells[at]?.[row] ?? ""))),
  );
  return el(
    "section",
    {},
    el("p", { class: "facts" }, `${shown.path}: ${rows}${left}`),
    el(
      "table",
      {},
      el(
        "thead",
        {},
        line("column", (column) => [el("b", {}, column.name)], (column) => column.problem ?? ""),
        line("holds", (column) => [column.kind]),
        line("read by", (column) => (column.site ? [name(column.site)] : ["nothing"])),
        line("which takes", (column) => [column.wanted]),
      ),
      el("tbody", {}, ...body),
    ),
  );
}
