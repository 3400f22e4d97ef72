/** The program that a command is about. */
import * as vscode from "vscode";

export function openProgram(): vscode.TextDocument | undefined {
  const active = vscode.window.activeTextEditor?.document;
  const visible = vscode.window.visibleTextEditors.map((editor) => editor.document);
  const found = [active, ...visible].find((document) => document?.languageId === "qvr");
  if (!found) {
    void vscode.window.showInformationMessage("QVR: open a .qvr file first.");
  }
  return found;
}
