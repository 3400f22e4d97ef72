/** How what is drawn while one types stands, in an entry of the language status: never a message. */
import * as vscode from "vscode";
import type { LiveEvent } from "../protocol";

const TITLES = { waiting: "waiting", drawing: "drawing", drawn: "drawn", problem: "nothing to draw" };

export class LiveStatus implements vscode.Disposable {
  private item: vscode.LanguageStatusItem | undefined;

  /** The newest event; without one there is no entry. */
  show(event: LiveEvent | undefined): void {
    if (!event) {
      this.dispose();
      return;
    }
    this.item ??= vscode.languages.createLanguageStatusItem("qvr.live", [{ language: "qvr" }]);
    this.item.name = "QVR live";
    this.item.text = `Live ${event.kind}: ${TITLES[event.state]}`;
    this.item.detail = event.text;
    this.item.busy = event.state === "drawing" || event.last === false;
    this.item.severity = vscode.LanguageStatusSeverity.Information;
  }

  dispose(): void {
    this.item?.dispose();
    this.item = undefined;
  }
}
