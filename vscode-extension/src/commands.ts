/** Commands of the palette, the menus and the tree. */
import * as vscode from "vscode";
import type { Server } from "./client";
import type { DataPreviews } from "./data/panel";
import type { DiagramPanels } from "./diagram/panel";
import { selectInterpreter } from "./environment";
import { EXAMPLE } from "./example";
import { openProgram } from "./program";
import type { Live } from "./live/panel";
import type { Algorithm, RunOverview } from "./protocol";
import { askDraws, askOptions } from "./runs/ask";
import type { RunPanels } from "./runs/panel";
import type { Runs } from "./runs/runs";
import { canExtend } from "./runs/state";
import { runNames } from "./runs/words";

interface Features {
  server: Server;
  runs: Runs;
  panels: RunPanels;
  diagrams: DiagramPanels;
  previews: DataPreviews;
  live: Live;
  log: vscode.LogOutputChannel;
  context: vscode.ExtensionContext;
}

interface RunHandle {
  runId: string;
}

export function registerCommands({ server, runs, panels, diagrams, previews, live, log, context }: Features): vscode.Disposable[] {
  const register = vscode.commands.registerCommand;
  return [
    register("qvr.showDiagram", async () => {
      const document = openProgram();
      if (document) {
        await diagrams.show(document.uri.toString());
      }
    }),
    register("qvr.saveDiagram", () => diagrams.save()),
    register("qvr.fitSvi", () => run(runs, "svi")),
    register("qvr.sampleNuts", () => run(runs, "nuts")),
    register("qvr.showData", async () => {
      const document = openProgram();
      if (document) {
        await previews.show(document.uri, undefined, undefined, false);
      }
    }),
    register("qvr.showPrior", () => {
      if (openProgram()) {
        live.show();
      }
    }),
    register("qvr.stopRun", async (handle?: RunHandle) => {
      const chosen = handle?.runId ?? runs.going().at(-1)?.runId;
      if (chosen) {
        await runs.cancel(chosen);
      } else {
        void vscode.window.showInformationMessage("QVR: nothing is running.");
      }
    }),
    register("qvr.openRun", async (handle?: RunHandle) => {
      const known = await runs.load(handle?.runId ?? (await pickRun(runs)) ?? "");
      if (known) {
        panels.show(known);
      }
    }),
    register("qvr.resumeRun", async (handle?: RunHandle) => {
      const chosen = handle?.runId ?? (await pickRun(runs));
      if (chosen) {
        await runs.resume(chosen);
      }
    }),
    register("qvr.moreDraws", async (handle?: RunHandle) => {
      const known = await runs.load(handle?.runId ?? (await pickRun(runs, ({ algorithm, status }) => canExtend(algorithm, status))) ?? "");
      const more = known && (await askDraws(known.drawn?.total));
      if (known && more !== undefined) {
        await runs.resume(known.runId, more);
      }
    }),
    register("qvr.rerun", async (handle?: RunHandle) => {
      const known = await runs.load(handle?.runId ?? (await pickRun(runs)) ?? "");
      const options = known && (await askOptions(known.algorithm));
      const uri = known?.uri || openProgram()?.uri.toString();
      if (known && options && uri) {
        await runs.ask({ uri, program: known.program, algorithm: known.algorithm as Algorithm, options });
      }
    }),
    register("qvr.openRunFolder", async (handle?: RunHandle) => {
      const known = await runs.load(handle?.runId ?? (await pickRun(runs)) ?? "");
      if (known) {
        await vscode.commands.executeCommand("revealFileInOS", vscode.Uri.file(known.directory));
      }
    }),
    register("qvr.restartServer", () => server.restart()),
    register("qvr.showLog", () => log.show()),
    register("qvr.selectInterpreter", () => selectInterpreter()),
    register("qvr.openWalkthrough", () =>
      vscode.commands.executeCommand("workbench.action.openWalkthrough", `${context.extension.id}#qvr.start`),
    ),
    register("qvr.newExample", async () => {
      const document = await vscode.workspace.openTextDocument({ language: "qvr", content: EXAMPLE });
      await vscode.window.showTextDocument(document);
    }),
  ];
}

async function run(runs: Runs, algorithm: Algorithm): Promise<void> {
  const document = openProgram();
  if (document) {
    await runs.ask({ uri: document.uri.toString(), algorithm });
  }
}

async function pickRun(runs: Runs, wanted: (run: RunOverview) => boolean = () => true): Promise<string | undefined> {
  const known = (await runs.list()).filter(wanted);
  const names = runNames(known);
  const picked = await vscode.window.showQuickPick(
    known.map(({ runId, status }, at) => ({ label: names[at] ?? runId, description: status, runId })),
    { title: "QVR runs", placeHolder: "Which run?" },
  );
  return picked?.runId;
}
