/** A table beside the program that is to read it: shown when data is chosen, and on demand. */
import * as vscode from "vscode";
import type { Server } from "../client";
import { DATA_PREVIEW, type DataPreview, type DataPreviewParams } from "../protocol";
import { revealStep } from "../reveal";
import { html, icons } from "../webview";
import type { FromData, ToData } from "./messages";

/** The text and the table are looked at again so long after a change. */
const PAUSE_MS = 300;

/** What the user wants with the data that is shown: to run on it, to choose other data, or nothing (the panel was closed). */
export type Choice = "use" | "other" | undefined;

export class DataPreviews {
  private shown: vscode.WebviewPanel | undefined;

  constructor(
    private readonly extension: vscode.Uri,
    private readonly server: Server,
  ) {}

  /** Show the table that is `data`, or that of qvr.toml. With `choosing` the page asks whether to use it. */
  async show(uri: vscode.Uri, program: string | undefined, data: string | undefined, choosing: boolean): Promise<Choice> {
    this.shown?.dispose();
    const panel = vscode.window.createWebviewPanel(
      "qvr.data",
      data ? `Data: ${data.replace(/^.*[:/\\]/, "")}` : "Data",
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: false },
      { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(this.extension, "dist")] },
    );
    this.shown = panel;
    panel.iconPath = icons(this.extension);
    const params: DataPreviewParams = { textDocument: { uri: uri.toString() }, program, data };
    let timer: NodeJS.Timeout | undefined;
    const refresh = async () => panel.webview.postMessage(await this.look(params, choosing));
    const later = () => {
      clearTimeout(timer);
      timer = setTimeout(() => void refresh(), PAUSE_MS);
    };
    const watcher = vscode.workspace.createFileSystemWatcher("**/{qvr.toml,*.csv,*.tsv,*.parquet,*.ndjson,*.json,*.npz}");
    const watching = vscode.Disposable.from(
      watcher,
      watcher.onDidChange(later),
      watcher.onDidCreate(later),
      vscode.workspace.onDidChangeTextDocument(({ document }) => (document.uri.toString() === uri.toString() ? later() : undefined)),
    );
    return new Promise<Choice>((resolve) => {
      panel.webview.onDidReceiveMessage((message: FromData) => {
        switch (message.type) {
          case "ready":
            void refresh();
            break;
          case "site":
            void revealStep(uri, params.program, message.site);
            break;
          default:
            resolve(message.type);
            panel.dispose();
        }
      });
      panel.onDidDispose(() => {
        clearTimeout(timer);
        watching.dispose();
        this.shown = this.shown === panel ? undefined : this.shown;
        resolve(undefined);
      });
      panel.webview.html = html(panel.webview, this.extension, { script: "data.js", title: "Data" });
    });
  }

  private async look(params: DataPreviewParams, choosing: boolean): Promise<ToData> {
    try {
      const client = await this.server.running();
      if (!client) {
        return { type: "problem", text: "The language server is not running.", choosing };
      }
      const preview = await client.sendRequest<DataPreview>(DATA_PREVIEW, params);
      params.program = preview.program;
      return { type: "preview", preview, choosing };
    } catch (error) {
      return { type: "problem", text: error instanceof Error ? error.message : String(error), choosing };
    }
  }
}
