/** The run panel: one webview per run, fed with the run's events. */
import * as vscode from "vscode";
import type { RunEvent } from "../protocol";
import { revealStep } from "../reveal";
import { html, icons } from "../webview";
import type { FromRun, ToRun } from "./messages";
import type { Runs } from "./runs";
import { isOver, type RunState } from "./state";
import { differences, readSummary } from "./summary";
import { runName, runNames } from "./words";

/** Events wait this long for one another before they go to the page. */
const PACE_MS = 100;

class RunPanel {
  private waiting: RunEvent[] = [];
  private timer: NodeJS.Timeout | undefined;
  private ready = false;

  constructor(
    readonly panel: vscode.WebviewPanel,
    readonly runId: string,
    private readonly runs: Runs,
    extension: vscode.Uri,
  ) {
    panel.webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(extension, "dist")] };
    panel.iconPath = icons(extension);
    panel.webview.onDidReceiveMessage((message: FromRun) => void this.receive(message));
    panel.webview.html = html(panel.webview, extension, { script: "run.js", title: "Run" });
  }

  take(run: RunState, event: RunEvent | undefined): void {
    this.panel.title = `${run.status === "running" ? "▶ " : ""}${runName(run)}`;
    if (!this.ready) {
      return;
    }
    if (event === undefined) {
      this.send({ type: "status", status: run.status });
      return;
    }
    if (isOver(run)) {
      void this.sendSummary(run);
    }
    this.waiting.push(event);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.send({ type: "events", events: this.waiting.splice(0) });
    }, PACE_MS);
  }

  private async receive(message: FromRun): Promise<void> {
    switch (message.type) {
      case "ready": {
        const run = await this.runs.load(this.runId);
        this.waiting = [];
        this.ready = true;
        if (run) {
          this.panel.title = runName(run);
          this.send({ type: "run", run });
          await this.sendSummary(run);
        }
        break;
      }
      case "cancel":
        await this.runs.cancel(this.runId);
        break;
      case "resume":
        await this.runs.resume(this.runId);
        break;
      case "more":
        await vscode.commands.executeCommand("qvr.moreDraws", { runId: this.runId });
        break;
      case "rerun":
        await vscode.commands.executeCommand("qvr.rerun", { runId: this.runId });
        break;
      case "folder":
        await vscode.commands.executeCommand("qvr.openRunFolder", { runId: this.runId });
        break;
      case "sample":
        try {
          this.send({ type: "sample", text: await this.runs.sample(this.runId), failed: false });
        } catch (error) {
          this.send({ type: "sample", text: error instanceof Error ? error.message : String(error), failed: true });
        }
        break;
      case "site":
        await this.reveal(message.site);
        break;
      case "compare": {
        const [mine, other] = [this.runs.get(this.runId), await this.runs.load(message.runId)];
        if (mine && other) {
          const differing = await differences(mine.directory, other.directory);
          this.send({ type: "compared", run: other, summary: await readSummary(other.directory), differences: differing });
        }
        break;
      }
      case "source": {
        const uri = this.runs.get(this.runId)?.uri;
        if (uri) {
          await vscode.window.showTextDocument(vscode.Uri.parse(uri), { viewColumn: vscode.ViewColumn.One });
        }
        break;
      }
    }
  }

  /** What the fit says of every number, where it has ended, and the runs that it can be compared with. */
  private async sendSummary(run: RunState): Promise<void> {
    const summary = isOver(run) ? await readSummary(run.directory) : undefined;
    const known = await this.runs.list().catch(() => []);
    const others = known.filter((one) => one.program === run.program && one.runId !== run.runId);
    const names = runNames(others);
    this.send({ type: "summary", summary, others: others.map(({ runId, status }, at) => ({ runId, label: `${names[at]}, ${status}` })) });
  }

  private async reveal(site: string): Promise<void> {
    const run = this.runs.get(this.runId);
    if (run?.uri) {
      await revealStep(vscode.Uri.parse(run.uri), run.program, site);
    }
  }

  private send(message: ToRun): void {
    void this.panel.webview.postMessage(message);
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}

export class RunPanels implements vscode.Disposable, vscode.WebviewPanelSerializer<{ runId: string }> {
  private readonly panels = new Map<string, RunPanel>();
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly runs: Runs,
  ) {
    this.disposables = [
      vscode.window.registerWebviewPanelSerializer("qvr.run", this),
      runs.onDidOpen((run) => this.show(run)),
      runs.onDidChange(({ run, event }) => this.panels.get(run.runId)?.take(run, event)),
    ];
  }

  show(run: RunState): void {
    const known = this.panels.get(run.runId);
    if (known) {
      known.panel.reveal(undefined, true);
      return;
    }
    // A run joins the runs that are shown already.
    const shown = [...this.panels.values()].find(({ panel }) => panel.viewColumn !== undefined);
    const panel = vscode.window.createWebviewPanel(
      "qvr.run",
      runName(run),
      { viewColumn: shown?.panel.viewColumn ?? vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: true },
    );
    this.add(panel, run.runId);
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel, state: { runId: string } | undefined): Promise<void> {
    if (state?.runId) {
      this.add(panel, state.runId);
    } else {
      panel.dispose();
    }
    return Promise.resolve();
  }

  private add(panel: vscode.WebviewPanel, runId: string): void {
    const added = new RunPanel(panel, runId, this.runs, this.context.extensionUri);
    this.panels.set(runId, added);
    panel.onDidDispose(() => {
      added.dispose();
      this.panels.delete(runId);
    });
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
    this.panels.forEach((panel) => panel.panel.dispose());
  }
}
