/** The runs of the folder in the side bar. */
import * as vscode from "vscode";
import type { Server } from "../client";
import type { RunOverview } from "../protocol";
import type { Runs } from "./runs";
import { canExtend, canResume, gravePoints, summary } from "./state";
import { runName } from "./words";

const ICONS: Record<string, [string, string?]> = {
  queued: ["clock"],
  starting: ["loading~spin"],
  running: ["loading~spin", "charts.blue"],
  cancelling: ["loading~spin"],
  finished: ["pass", "charts.green"],
  cancelled: ["circle-slash"],
  failed: ["error", "charts.red"],
  crashed: ["warning", "charts.orange"],
};
/** A run that has finished, whose result is not to be trusted. */
const DOUBTFUL: [string, string] = ["warning", "charts.yellow"];

/** Events come up to ten times a second; the tree follows at this pace. */
const PACE_MS = 1000;

export class RunsTree implements vscode.TreeDataProvider<RunOverview>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly disposables: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  readonly onDidChangeTreeData = this.changed.event;

  constructor(
    private readonly runs: Runs,
    server: Server,
  ) {
    const watcher = vscode.workspace.createFileSystemWatcher("**/.qvr/runs/*/ending.json");
    this.disposables = [
      vscode.window.createTreeView("qvr.runs", { treeDataProvider: this, showCollapseAll: false }),
      vscode.commands.registerCommand("qvr.refreshRuns", () => this.changed.fire()),
      runs.onDidChange(() => this.later()),
      runs.onDidOpen(() => this.changed.fire()),
      server.onDidStart(() => this.changed.fire()),
      watcher,
      watcher.onDidCreate(() => this.later()),
    ];
  }

  private later(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.changed.fire();
    }, PACE_MS);
  }

  async getChildren(parent?: RunOverview): Promise<RunOverview[]> {
    return parent ? [] : this.runs.list();
  }

  getTreeItem(overview: RunOverview): vscode.TreeItem {
    const live = this.runs.get(overview.runId);
    const status = live?.status ?? overview.status;
    const item = new vscode.TreeItem(runName(overview));
    const grave = gravePoints(live?.ending ?? overview.ending).length > 0;
    const [icon, colour] = grave ? DOUBTFUL : (ICONS[status] ?? ["question"]);
    item.id = overview.runId;
    item.iconPath = new vscode.ThemeIcon(icon, colour ? new vscode.ThemeColor(colour) : undefined);
    const ending = overview.ending;
    const heldOut = ending?.event === "finished" ? ending.held_out : undefined;
    const loss = overview.lastLoss === null ? "" : `−ELBO ${overview.lastLoss.toFixed(3)}`;
    const figure = heldOut ? `${heldOut.bits_per_byte.toFixed(3)} bits per byte held out` : loss;
    const doubt = grave && !live ? "not to be trusted" : "";
    item.description = [live ? summary(live) : figure, doubt].filter(Boolean).join(" · ");
    item.tooltip = overview.problem ?? `${overview.runId}\n${status}`;
    item.contextValue = ["running", "starting", "queued"].includes(status)
      ? "run.active"
      : canResume(status)
        ? "run.resumable"
        : canExtend(overview.algorithm, status)
          ? "run.chains"
          : "run";
    item.command = { title: "Open Run", command: "qvr.openRun", arguments: [overview] };
    item.accessibilityInformation = { label: `${runName(overview)}, ${status}` };
    return item;
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.disposables, this.changed).dispose();
  }
}
