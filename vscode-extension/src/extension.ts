/** Entry point: wiring only, one file per feature. */
import * as vscode from "vscode";
import { Server } from "./client";
import { registerCommands } from "./commands";
import { DiagramPanels } from "./diagram/panel";
import { DataPreviews } from "./data/panel";
import { watchInterpreter } from "./environment";
import { PrivateEnvironment } from "./install";
import { commandMiddleware } from "./middleware";
import { Live } from "./live/panel";
import { RunPanels } from "./runs/panel";
import { Runs } from "./runs/runs";
import { RunsTree } from "./runs/tree";
import { Status } from "./status";

let server: Server | undefined;
let runs: Runs | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("QVR", { log: true });
  const status = new Status();
  const own = new PrivateEnvironment(__dirname, context.globalStorageUri.fsPath);
  server = new Server(log, status, commandMiddleware(() => ({ runs, diagrams })), own);
  const previews = new DataPreviews(context.extensionUri, server);
  runs = new Runs(server, context.workspaceState, log, previews);
  const panels = new RunPanels(context, runs);
  const live = new Live(context.extensionUri, server);
  const diagrams = new DiagramPanels(context, server, live);
  const tree = new RunsTree(runs, server);
  context.subscriptions.push(
    log,
    status,
    server,
    runs,
    panels,
    diagrams,
    live,
    tree,
    ...registerCommands({ server, runs, panels, diagrams, previews, live, log, context }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void server?.restart()),
  );
  void watchInterpreter(() => void server?.restart()).then((watcher) => context.subscriptions.push(watcher));
  void server.start();
}

export async function deactivate(): Promise<void> {
  await runs?.pauseAll();
  await server?.stop();
}
