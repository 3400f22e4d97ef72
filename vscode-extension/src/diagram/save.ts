/** Export of a diagram: SVG as the panel drew it, Mermaid and DOT as text, PNG by the server. */
import * as vscode from "vscode";
import type { DiagramAnswer } from "../protocol";
import { named, type Serving } from "../serving";

const FILTERS = { SVG: ["svg"], Mermaid: ["mmd"], DOT: ["dot"] };
/** Made by the server, which writes to the disk. */
const PNG = { PNG: ["png"] };

export async function saveDiagram(server: Serving, uri: string, answer: DiagramAnswer, svg: string): Promise<void> {
  const file = vscode.Uri.parse(uri);
  const placeless = file.scheme === "untitled";
  const folder = placeless ? (vscode.workspace.workspaceFolders?.[0]?.uri ?? vscode.Uri.file(".")) : vscode.Uri.joinPath(file, "..");
  const target = await vscode.window.showSaveDialog({
    defaultUri: vscode.Uri.joinPath(folder, `${answer.name}.svg`),
    filters: file.scheme === "file" || placeless ? { ...FILTERS, ...PNG } : FILTERS,
    title: `Export the diagram of ${answer.name}`,
  });
  if (!target) {
    return;
  }
  const text = { ".svg": svg, ".mmd": answer.mermaid, ".dot": answer.saved ?? answer.dot }[/\.\w+$/.exec(target.path)?.[0] ?? ""];
  if (text) {
    await vscode.workspace.fs.writeFile(target, new TextEncoder().encode(text));
  } else {
    const client = await server.running();
    try {
      const argument = { uri: client && named(client, file), name: answer.name, path: target.fsPath };
      await client?.sendRequest("workspace/executeCommand", { command: "qvr.exportDiagram", arguments: [argument] });
    } catch (error) {
      void vscode.window.showErrorMessage(`QVR: ${error instanceof Error ? error.message : String(error)}`);
      return;
    }
  }
  const opened = await vscode.window.showInformationMessage(`Wrote ${target.path.split("/").at(-1)}.`, "Open");
  if (opened) {
    await vscode.commands.executeCommand("vscode.open", target);
  }
}
