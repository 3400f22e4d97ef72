/** The summary of a run beside the program, as a page without scripts. */
import * as vscode from "vscode";
import type { Finished } from "./request";
import { HEADS, cellsOf, endOf } from "./words";

const MOST_SHOWN = 400;
const SAVE = "qvr.saveDraws";
const STYLE = "body{padding:0 1em}table{border-collapse:collapse}th,td{padding:.1em .7em;text-align:right}th[scope=row]{text-align:left}thead th{border-bottom:1px solid}";

export class Summaries implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private shown: Finished | undefined;
  private readonly saving: vscode.Disposable;

  /** `save` writes the draws that are shown. */
  constructor(save: (finished: Finished) => Promise<void>) {
    this.saving = vscode.commands.registerCommand(SAVE, () => this.shown && save(this.shown));
  }

  show(title: string, finished: Finished): void {
    this.shown = finished;
    if (!this.panel) {
      const beside = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
      this.panel = vscode.window.createWebviewPanel("qvr.summary", title, beside, { enableCommandUris: [SAVE] });
      this.panel.onDidDispose(() => (this.panel = undefined));
    }
    this.panel.title = `${title} · NUTS`;
    this.panel.webview.html = pageOf(title, finished);
  }

  dispose(): void {
    this.panel?.dispose();
    this.saving.dispose();
  }
}

function pageOf(title: string, finished: Finished): string {
  const { rows } = finished;
  const head = HEADS.map((text) => `<th scope="col">${text}</th>`).join("");
  const body = rows.slice(0, MOST_SHOWN).map((row) => `<tr><th scope="row">${plain(row.name)}</th>${cellsOf(row).map((text) => `<td>${text}</td>`).join("")}</tr>`);
  const more = rows.length > MOST_SHOWN ? `<p>and ${(rows.length - MOST_SHOWN).toLocaleString("en")} more, in the draws</p>` : "";
  const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8">${policy}<title>${plain(title)}</title><style>${STYLE}</style></head>
<body><h1>${plain(title)}</h1><p>${endOf(finished)} · <a href="command:${SAVE}">Save the draws</a></p>
<table><thead><tr>${head}</tr></thead><tbody>${body.join("")}</tbody></table>${more}</body></html>`;
}

function plain(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
