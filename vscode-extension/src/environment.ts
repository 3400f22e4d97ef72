/** Interpreter discovery in the editor: where the sources come from, and the one message when none will do. */
import * as vscode from "vscode";
import { InstallProblem, progressOf, type PrivateEnvironment } from "./install";
import { discover, explain, isFound, probeInterpreter, type Found, type Problem } from "./interpreter";

/** The slice of the Python extension's API that is used; the extension is optional. */
interface PythonApi {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(path: { path: string }): Promise<{ executable?: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

export async function findInterpreter(own: PrivateEnvironment): Promise<Found | Problem> {
  const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const setting = vscode.workspace.getConfiguration("qvr").get("interpreterPath", "");
  const pythonExtension = setting ? undefined : await activeEnvironment();
  return discover({ setting, pythonExtension, folders, own: own.interpreter(), platform: process.platform }, probeInterpreter);
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
export async function tellProblem(problem: Problem, own: PrivateEnvironment, log: vscode.LogOutputChannel, retry: () => void): Promise<void> {
  const { message, actions } = explain(problem);
  const chosen = await vscode.window.showErrorMessage(message, ...actions.map((action) => TITLES[action]));
  switch (chosen) {
    case TITLES.install:
      if (problem.kind === "no-package") {
        const { command } = problem.candidate;
        await installing("Installing the QVR language server", log, (tell, signal) => own.install(command, tell, signal), retry);
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

/** Offer what a run lacked, where the server stands in the environment that the extension has made. */
export async function offerRuns(message: string, own: PrivateEnvironment, log: vscode.LogOutputChannel, done: () => void): Promise<void> {
  const install = "Install What Runs Need";
  if ((await vscode.window.showErrorMessage(`QVR: ${message}. PyTorch and the rest take ${own.weight}.`, install)) === install) {
    await installing("Installing what QVR runs need", log, (tell, signal) => own.installRuns(tell, signal), done);
  }
}

type Work = (tell: (line: string) => void, signal: AbortSignal) => Promise<void>;

/** Do it with progress; where it fails the reason stays on the screen, and everything printed is in the log. */
async function installing(title: string, log: vscode.LogOutputChannel, work: Work, done: () => void): Promise<void> {
  const location = vscode.ProgressLocation.Notification;
  const problem = await vscode.window.withProgress({ location, title, cancellable: true }, async (progress, token) => {
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    const tell = (line: string) => {
      log.info(line);
      const message = progressOf(line);
      if (message !== undefined) {
        progress.report({ message });
      }
    };
    try {
      await work(tell, abort.signal);
      return undefined;
    } catch (error) {
      return error instanceof InstallProblem ? error : new InstallProblem(String(error));
    }
  });
  if (problem === undefined) {
    done();
  } else if (problem.message !== "cancelled") {
    log.error(problem.message);
    const [again, show] = ["Try Again", "Show Log"];
    const chosen = await vscode.window.showErrorMessage(`QVR: ${problem.message}`, again, show);
    if (chosen === again) {
      await installing(title, log, work, done);
    } else if (chosen === show) {
      log.show();
    }
  }
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
