/** The settings of the extension as the server takes them. */
import * as vscode from "vscode";

export function settings(): Record<string, unknown> {
  return JSON.parse(JSON.stringify(vscode.workspace.getConfiguration("qvr"))) as Record<string, unknown>;
}
