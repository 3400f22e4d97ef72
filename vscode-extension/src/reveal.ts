/** From a name of a program to its line. */
import * as vscode from "vscode";

/** Put the cursor on the step of a program that binds a name; the diagram follows it. */
export async function revealStep(uri: vscode.Uri, program: string | undefined, site: string): Promise<void> {
  const document = await vscode.workspace.openTextDocument(uri);
  const symbols = await vscode.commands.executeCommand<vscode.DocumentSymbol[] | undefined>("vscode.executeDocumentSymbolProvider", document.uri);
  const step = (symbols ?? []).find((symbol) => symbol.name === program)?.children.find((child) => child.name === site);
  const declared = step ?? (symbols ?? []).find((symbol) => symbol.name === site);
  const selection = declared && new vscode.Range(declared.selectionRange.start, declared.selectionRange.start);
  await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.One, ...(selection ? { selection } : {}) });
}
