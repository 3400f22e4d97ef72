/** The language status item: which interpreter serves QVR files, and whether it is well. */
import * as vscode from "vscode";

export type Health =
  | { state: "starting" }
  | { state: "ready"; interpreter: string; why: string; version: string }
  | { state: "problem"; message: string }
  | { state: "untrusted" };

export class Status implements vscode.Disposable {
  private readonly item = vscode.languages.createLanguageStatusItem("qvr.server", [{ language: "qvr" }]);

  constructor() {
    this.item.name = "QVR language server";
    this.show({ state: "starting" });
  }

  show(health: Health): void {
    this.item.busy = health.state === "starting";
    this.item.severity = vscode.LanguageStatusSeverity.Information;
    this.item.command = { title: "Show Log", command: "qvr.showLog" };
    switch (health.state) {
      case "starting":
        this.item.text = "QVR: starting";
        this.item.detail = "looking for an interpreter";
        break;
      case "ready":
        this.item.text = `QVR ${health.version}`;
        this.item.detail = `${health.interpreter}, from ${health.why}`;
        this.item.command = { title: "Restart", command: "qvr.restartServer" };
        break;
      case "problem":
        this.item.text = "QVR: not running";
        this.item.detail = health.message;
        this.item.severity = vscode.LanguageStatusSeverity.Error;
        this.item.command = { title: "Choose Interpreter…", command: "qvr.selectInterpreter" };
        break;
      case "untrusted":
        this.item.text = "QVR: colours only";
        this.item.detail = "this workspace is not trusted";
        this.item.severity = vscode.LanguageStatusSeverity.Warning;
        this.item.command = { title: "Manage Trust", command: "workbench.trust.manage" };
        break;
    }
  }

  dispose(): void {
    this.item.dispose();
  }
}
