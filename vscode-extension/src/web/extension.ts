/** Entry point in VS Code for the web: checker, diagrams and NUTS.  What needs a process is refused in a sentence. */
import * as vscode from "vscode";
import { DiagramPanels } from "../diagram/panel";
import { EXAMPLE } from "../example";
import { commandMiddleware } from "../middleware";
import { Status } from "../status";
import { openProgram } from "../program";
import { fromProtocol, WebServer } from "./client";
import { Sampler } from "./sampling/sampler";
import { Sampling } from "./sampling/sampling";
import { SAMPLING, startWorker } from "./worker";

/** Commands that start a process, or show what one has left. */
const NEED_A_PROCESS = [
  "qvr.fitSvi", "qvr.stopRun", "qvr.openRun", "qvr.resumeRun", "qvr.moreDraws", "qvr.rerun",
  "qvr.openRunFolder", "qvr.refreshRuns", "qvr.showData", "qvr.showPrior", "qvr.selectInterpreter",
]; // prettier-ignore

export const REFUSAL =
  "QVR: fits by SVI, priors and the view of data need a Python process, which VS Code for the web does not have. Open this folder in VS Code on your machine, or run `qvr play` in it; ▶ NUTS works here, too.";

export function activate(context: vscode.ExtensionContext): void {
  void vscode.commands.executeCommand("setContext", "qvr.web", true);
  const log = vscode.window.createOutputChannel("QVR", { log: true });
  const status = new Status();
  const shown = { show: (uri: string, name?: string) => diagrams.show(fromProtocol(uri).toString(), name) };
  const middleware = commandMiddleware(() => ({ runs: { ask: (wanted) => (wanted.algorithm === "nuts" ? sampling.sample() : refuse()) }, diagrams: shown }));
  const folder = vscode.Uri.joinPath(context.extensionUri, "dist", "web", "server");
  const server = new WebServer(folder, log, status, middleware);
  const sampling = new Sampling(new Sampler(() => startWorker(folder, SAMPLING)));
  const diagrams = new DiagramPanels(context, server);
  const register = vscode.commands.registerCommand;
  context.subscriptions.push(
    log,
    status,
    server,
    diagrams,
    sampling,
    ...NEED_A_PROCESS.map((command) => register(command, refuse)),
    register("qvr.sampleNuts", () => sampling.sample()),
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
