/** Interpreter discovery in the editor: where the sources come from, and the one message when none will do. */
import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import { discover, explain, installCommand, isFound, probeInterpreter, wheelAmong, type Found, type Problem } from "./interpreter";

/** The slice of the Python extension's API that is used; the extension is optional. */
interface PythonApi {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(path: { path: string }): Promise<{ executable?: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

export async function findInterpreter(): Promise<Found | Problem> {
  const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const setting = vscode.workspace.getConfiguration("qvr").get("interpreterPath", "");
  const pythonExtension = setting ? undefined : await activeEnvironment();
  return discover({ setting, pythonExtension, folders, platform: process.platform }, probeInterpreter);
}

async function pythonApi(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  if (!extension) {
    return undefined;
  }
  try {
    return extension.isActive ? extension.exports : await extension.activate();
  } catch {
    return undefined;
  }
}

async function activeEnvironment(): Promise<string | undefined> {
  const environments = (await pythonApi())?.environments;
  if (!environments) {
    return undefined;
  }
  const active = environments.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
  const resolved = await environments.resolveEnvironment(active);
  return resolved?.executable?.uri?.fsPath;
}

/** Calls `changed` when another interpreter may be the right one. */
export async function watchInterpreter(changed: () => void): Promise<vscode.Disposable> {
  const disposables = [
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("qvr.interpreterPath") || event.affectsConfiguration("qvr.server.arguments")) {
        changed();
      }
    }),
  ];
  const api = await pythonApi();
  if (api?.environments?.onDidChangeActiveEnvironmentPath) {
    disposables.push(api.environments.onDidChangeActiveEnvironmentPath(changed));
  }
  return vscode.Disposable.from(...disposables);
}

const TITLES = { install: "Install", settings: "Open Settings", select: "Choose Interpreter…" } as const;

/** One message with its buttons; `retry` is called once the user may have fixed it. */
export async function tellProblem(problem: Problem, retry: () => void): Promise<void> {
  const { message, actions } = explain(problem);
  const chosen = await vscode.window.showErrorMessage(message, ...actions.map((action) => TITLES[action]));
  switch (chosen) {
    case TITLES.install:
      if (problem.kind === "no-package") {
        install(problem.candidate.command, retry);
      }
      break;
    case TITLES.settings:
      await vscode.commands.executeCommand("workbench.action.openSettings", "qvr.interpreterPath");
      break;
    case TITLES.select:
      await selectInterpreter();
      break;
  }
}

function install(command: string, retry: () => void): void {
  const wheel = wheelAmong(fs.readdirSync(__dirname));
  if (wheel === undefined) {
    void vscode.window.showErrorMessage("QVR: this build of the extension brings no language server; `make vsix` makes one that does.");
    return;
  }
  const terminal = vscode.window.createTerminal({ name: "Install the QVR language server" });
  terminal.show();
  terminal.sendText(installCommand(command, path.join(__dirname, wheel), process.platform));
  const watcher = vscode.window.onDidCloseTerminal((closed) => {
    if (closed === terminal) {
      watcher.dispose();
      retry();
    }
  });
}

export async function selectInterpreter(): Promise<void> {
  if (vscode.extensions.getExtension("ms-python.python")) {
    await vscode.commands.executeCommand("python.setInterpreter");
    return;
  }
  const picked = await vscode.window.showOpenDialog({ title: "Python interpreter for QVR", openLabel: "Use" });
  const file = picked?.[0];
  if (file) {
    const target = vscode.workspace.workspaceFolders
      ? vscode.ConfigurationTarget.Workspace
      : vscode.ConfigurationTarget.Global;
    await vscode.workspace.getConfiguration("qvr").update("interpreterPath", file.fsPath, target);
  }
}

export { isFound };
