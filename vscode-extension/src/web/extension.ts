/** Entry point in VS Code for the web: checker and diagrams.  What needs a process is refused in a sentence. */
import * as vscode from "vscode";
import { DiagramPanels } from "../diagram/panel";
import { EXAMPLE } from "../example";
import { commandMiddleware } from "../middleware";
import { Status } from "../status";
import { openProgram } from "../program";
import { fromProtocol, WebServer } from "./client";

/** Commands that start a process, or show what one has left. */
const NEED_A_PROCESS = [
  "qvr.fitSvi", "qvr.sampleNuts", "qvr.stopRun", "qvr.openRun", "qvr.resumeRun", "qvr.moreDraws", "qvr.rerun",
  "qvr.openRunFolder", "qvr.refreshRuns", "qvr.showData", "qvr.showPrior", "qvr.selectInterpreter",
]; // prettier-ignore

export const REFUSAL =
  "QVR: fits, priors and data need a Python process, which VS Code for the web does not have. Open this folder in VS Code on your machine, or run `qvr play` in it.";

export function activate(context: vscode.ExtensionContext): void {
  void vscode.commands.executeCommand("setContext", "qvr.web", true);
  const log = vscode.window.createOutputChannel("QVR", { log: true });
  const status = new Status();
  const shown = { show: (uri: string, name?: string) => diagrams.show(fromProtocol(uri).toString(), name) };
  const middleware = commandMiddleware(() => ({ runs: undefined, diagrams: shown, refuse }));
  const server = new WebServer(vscode.Uri.joinPath(context.extensionUri, "dist", "web", "server"), log, status, middleware);
  const diagrams = new DiagramPanels(context, server);
  const register = vscode.commands.registerCommand;
  context.subscriptions.push(
    log,
    status,
    server,
    diagrams,
    ...NEED_A_PROCESS.map((command) => register(command, refuse)),
    register("qvr.showDiagram", () => {
      const document = openProgram();
      return document && diagrams.show(document.uri.toString());
    }),
    register("qvr.saveDiagram", () => diagrams.save()),
    register("qvr.restartServer", () => server.restart()),
    register("qvr.showLog", () => log.show()),
    register("qvr.openWalkthrough", () =>
      vscode.commands.executeCommand("workbench.action.openWalkthrough", `${context.extension.id}#qvr.start`),
    ),
    register("qvr.newExample", async () => {
      await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: "qvr", content: EXAMPLE }));
    }),
  );
  void server.restart();
}

function refuse(): void {
  void vscode.window.showInformationMessage(REFUSAL);
}
