/** The list of what is wrong, below the text. */
import * as monaco from "monaco-editor/editor/editor.api.js";
import { el } from "../../../vscode-extension/webviews/dom";
import { part } from "./elements";

const MOST_SHOWN = 200;
const WORDS = new Map([
  [monaco.MarkerSeverity.Error, "error"],
  [monaco.MarkerSeverity.Warning, "warning"],
  [monaco.MarkerSeverity.Info, "note"],
  [monaco.MarkerSeverity.Hint, "hint"],
]);

/** Follow what is known of the text that is shown; gives what to call where nothing wrong was found. */
export function showProblems(editor: monaco.editor.IStandaloneCodeEditor): () => void {
  const list = part<HTMLUListElement>("problems");
  const count = part("count");
  const show = (): void => {
    const model = editor.getModel();
    const markers = model ? monaco.editor.getModelMarkers({ resource: model.uri, owner: "lsp" }) : [];
    markers.sort((one, other) => other.severity - one.severity || one.startLineNumber - other.startLineNumber || one.startColumn - other.startColumn);
    const rows = markers.slice(0, MOST_SHOWN).map((marker) => el("li", {}, row(editor, marker), ...page(marker)));
    if (markers.length > MOST_SHOWN) {
      rows.push(el("li", {}, `and ${markers.length - MOST_SHOWN} more`));
    }
    list.replaceChildren(...rows);
    const errors = markers.filter(({ severity }) => severity === monaco.MarkerSeverity.Error).length;
    count.textContent = markers.length === 0 ? "No problems" : `${counted(errors, "error")}, ${counted(markers.length - errors, "other finding")}`;
  };
  monaco.editor.onDidChangeMarkers((changed) => {
    const shown = editor.getModel()?.uri.toString();
    if (changed.some((uri) => uri.toString() === shown)) {
      show();
    }
  });
  editor.onDidChangeModel(show);
  return show;
}

function row(editor: monaco.editor.IStandaloneCodeEditor, marker: monaco.editor.IMarker): HTMLButtonElement {
  const kind = WORDS.get(marker.severity) ?? "note";
  const go = (): void => {
    editor.setSelection(marker);
    editor.revealRangeInCenterIfOutsideViewport(marker);
    editor.focus();
  };
  const place = `line ${marker.startLineNumber}`;
  return el("button", { click: go }, el("span", { class: `kind ${kind}` }, kind), " ", marker.message, " ", el("span", { class: "place" }, place));
}

/** A link to the page about a diagnostic. */
function page({ code }: monaco.editor.IMarker): HTMLElement[] {
  const href = new URL(`pages/${String(code)}.html`, document.baseURI).href;
  return typeof code === "string" ? [el("a", { href, target: "_blank", rel: "noopener" }, code)] : [];
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
