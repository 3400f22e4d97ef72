/** Export of a diagram: SVG as the panel drew it, Mermaid and DOT as text, PNG by the server. */
import * as path from "node:path";
import * as vscode from "vscode";
import type { Server } from "../client";
import type { DiagramAnswer } from "../protocol";

const FILTERS = { SVG: ["svg"], PNG: ["png"], Mermaid: ["mmd"], DOT: ["dot"] };

export async function saveDiagram(server: Server, uri: string, answer: DiagramAnswer, svg: string): Promise<void> {
  const file = vscode.Uri.parse(uri);
  const folder = file.scheme === "file" ? path.dirname(file.fsPath) : (vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? ".");
  const target = await vscode.window.showSaveDialog({
    defaultUri: vscode.Uri.file(path.join(folder, `${answer.name}.svg`)),
    filters: FILTERS,
    title: `Export the diagram of ${answer.name}`,
  });
  if (!target) {
    return;
  }
  const text = { ".svg": svg, ".mmd": answer.mermaid, ".dot": answer.dot }[path.extname(target.path)];
  if (text) {
    await vscode.workspace.fs.writeFile(target, new TextEncoder().encode(text));
  } else {
    const client = await server.running();
    const argument = { uri, name: answer.name, path: target.fsPath };
    try {
      await client?.sendRequest("workspace/executeCommand", { command: "qvr.exportDiagram", arguments: [argument] });
    } catch (error) {
      void vscode.window.showErrorMessage(`QVR: ${error instanceof Error ? error.message : String(error)}`);
      return;
    }
  }
  const opened = await vscode.window.showInformationMessage(`Wrote ${path.basename(target.path)}.`, "Open");
  if (opened) {
    await vscode.commands.executeCommand("vscode.open", target);
  }
}
