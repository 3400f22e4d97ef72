/** The runs of this window: started, followed, cancelled, resumed; brought back after a reload or a server's death. */
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { Server } from "../client";
import type { DataPreviews } from "../data/panel";
import { RUN_EVENT, RUNS, type RunEvent, type RunEventParams, type RunOverview, type RunRequest, type RunStarted } from "../protocol";
import { withData } from "./ask";
import { readEvents } from "./history";
import { sample } from "./sample";
import { emptyRun, gravePoints, isOver, summary, take, type RunState } from "./state";
import { runName } from "./words";

interface Active {
  runId: string;
  uri: string;
  directory: string;
  program: string;
  algorithm: string;
}

const ACTIVE = "qvr.activeRuns";
/** What is left of VS Code's time to deactivate for workers that write a checkpoint. */
const PAUSE_MS = 3500;

export class Runs implements vscode.Disposable {
  private readonly runs = new Map<string, RunState>();
  private readonly changed = new vscode.EventEmitter<{ run: RunState; event: RunEvent | undefined }>();
  private readonly opened = new vscode.EventEmitter<RunState>();
  private readonly disposables: vscode.Disposable[] = [];
  private pausing = false;
  private overviews: RunOverview[] = [];
  /** Fires on every event of every run; without an event when the run was loaded or its status changed here. */
  readonly onDidChange = this.changed.event;
  /** Fires when a run wants to be seen. */
  readonly onDidOpen = this.opened.event;

  constructor(
    private readonly server: Server,
    private readonly memory: vscode.Memento,
    private readonly log: vscode.LogOutputChannel,
    private readonly previews: DataPreviews,
  ) {
    this.disposables.push(server.onDidStart((client) => void this.attach(client)));
  }

  /** Start a run, after the question for its data where nothing is known of it yet. */
  async ask(request: RunRequest): Promise<RunStarted | undefined> {
    const complete = await withData(request, this.server, this.previews);
    return complete && this.start(complete);
  }

  async start(request: RunRequest): Promise<RunStarted | undefined> {
    const started = await this.command<RunStarted>("qvr.run", request);
    if (started) {
      const algorithm = request.algorithm ?? "svi";
      const run = this.known(started.runId, request.uri, started.directory, request.program ?? "", algorithm);
      await this.remember(run);
      this.opened.fire(run);
    }
    return started;
  }

  async cancel(runId: string): Promise<void> {
    const run = this.runs.get(runId);
    if (run && !isOver(run)) {
      run.status = "cancelling";
      this.changed.fire({ run, event: undefined });
    }
    await this.command("qvr.cancelRun", { runId });
    await this.refresh();
  }

  /** Go on with a run from its last checkpoint; chains with so many more draws of each than they were asked for. */
  async resume(runId: string, more = 0): Promise<void> {
    const known = await this.load(runId);
    const started = await this.command<RunStarted>("qvr.restartWorker", { runId, more, ...(known ? { uri: known.uri } : {}) });
    if (started && known) {
      known.status = "running";
      known.ending = null;
      await this.remember(known);
      this.changed.fire({ run: known, event: undefined });
      this.opened.fire(known);
    }
  }

  /** Text that a fitted language model writes. */
  async sample(runId: string): Promise<string> {
    const run = await this.load(runId);
    const python = vscode.workspace.getConfiguration("qvr").get("run.python", "") || this.server.interpreter;
    if (!run || !python) {
      throw new Error("the language server is not running");
    }
    return sample(python, runId, run.directory, Math.floor(Math.random() * 2 ** 31));
  }

  /** A run by its id, read from its directory where this window has not followed it. */
  async load(runId: string): Promise<RunState | undefined> {
    const known = this.runs.get(runId);
    if (known) {
      return known;
    }
    const overview = this.overviews.find((one) => one.runId === runId) ?? (await this.list()).find((one) => one.runId === runId);
    const active = this.active().find((one) => one.runId === runId);
    if (!overview && !active) {
      return undefined;
    }
    const directory = overview?.directory ?? active?.directory ?? "";
    const run = this.known(runId, active?.uri ?? "", directory, overview?.program ?? "", overview?.algorithm ?? "svi");
    for (const event of await readEvents(directory)) {
      take(run, event);
    }
    if (overview && !run.ending && overview.status === "crashed") {
      run.status = "crashed";
    }
    return run;
  }

  get(runId: string): RunState | undefined {
    return this.runs.get(runId);
  }

  /** Runs that go on right now, newest last. */
  going(): RunState[] {
    return [...this.runs.values()].filter((run) => !isOver(run));
  }

  /** All runs of the folder, newest first. */
  async list(): Promise<RunOverview[]> {
    const editor = vscode.window.activeTextEditor?.document.uri;
    const uri = editor?.scheme === "file" ? editor : vscode.workspace.workspaceFolders?.[0]?.uri;
    this.overviews = (await this.runsOf(uri?.toString())) ?? this.overviews;
    return this.overviews;
  }

  /** All runs of the folder of a file; undefined while there is no server to ask. */
  private async runsOf(uri: string | undefined): Promise<RunOverview[] | undefined> {
    const client = await this.server.running();
    return client?.sendRequest<RunOverview[]>(RUNS, uri ? { uri } : {});
  }

  async refresh(): Promise<void> {
    await this.list().catch((error: unknown) => this.log.warn(String(error)));
    const first = this.runs.values().next().value;
    if (first) {
      this.changed.fire({ run: first, event: undefined });
    }
  }

  /** Let every worker write its checkpoint: the window is going away, and the runs go on when it comes back. */
  async pauseAll(): Promise<void> {
    this.pausing = true;
    const client = await this.server.running();
    const stops = this.going().map((run) =>
      client?.sendRequest("workspace/executeCommand", { command: "qvr.cancelRun", arguments: [{ runId: run.runId }] }),
    );
    await Promise.race([Promise.allSettled(stops), new Promise((resolve) => setTimeout(resolve, PAUSE_MS))]);
  }

  private async attach(client: LanguageClient): Promise<void> {
    this.disposables.push(
      client.onNotification(RUN_EVENT, (params: RunEventParams) => this.receive(params)),
    );
    try {
      await this.goOn();
    } catch (error) {
      this.log.warn(`runs could not be taken up again: ${String(error)}`);
    }
  }

  /** Take up the runs that were going when the window or the server went away. */
  private async goOn(): Promise<void> {
    const interrupted = this.active();
    if (interrupted.length === 0 || !vscode.workspace.getConfiguration("qvr").get("runs.resumeAfterReload", true)) {
      return;
    }
    for (const { runId, uri } of interrupted) {
      const found = (await this.runsOf(uri))?.find((one) => one.runId === runId);
      if (found && ["running", "crashed", "cancelled"].includes(found.status)) {
        this.log.info(`going on with ${runId}`);
        await this.resume(runId);
      } else {
        await this.forget(runId);
      }
    }
  }

  private receive({ runId, uri, program, event }: RunEventParams): void {
    const run = this.known(runId, uri, "", program ?? "", "");
    take(run, event);
    if (event.event === "started") {
      run.directory = event.directory;
    }
    if (isOver(run) && event.event !== "progress") {
      if (!this.pausing) {
        void this.forget(runId);
      }
      void this.tell(run);
    }
    this.changed.fire({ run, event });
  }

  private async tell(run: RunState): Promise<void> {
    if (this.pausing || run.status === "cancelled") {
      return;
    }
    if (run.ending?.event === "failed" && run.ending.code === "missing-package" && this.server.offerRuns(run.ending.message)) {
      return;
    }
    const text = `QVR: ${runName(run)} ${run.status}: ${summary(run)}`;
    const good = run.status === "finished" && gravePoints(run.ending).length === 0;
    const show = good ? vscode.window.showInformationMessage : vscode.window.showWarningMessage;
    if (await show(text, "Open Run")) {
      this.opened.fire(run);
    }
  }

  private known(runId: string, uri: string, directory: string, program: string, algorithm: string): RunState {
    const known = this.runs.get(runId);
    if (known) {
      known.uri ||= uri;
      known.directory ||= directory;
      known.program ||= program;
      known.algorithm ||= algorithm;
      return known;
    }
    const run = emptyRun(runId, uri, directory, program, algorithm);
    this.runs.set(runId, run);
    return run;
  }

  private active(): Active[] {
    return this.memory.get<Active[]>(ACTIVE, []);
  }

  private async remember({ runId, uri, directory, program, algorithm }: RunState): Promise<void> {
    const others = this.active().filter((one) => one.runId !== runId);
    await this.memory.update(ACTIVE, [...others, { runId, uri, directory, program, algorithm }]);
  }

  private async forget(runId: string): Promise<void> {
    await this.memory.update(ACTIVE, this.active().filter((one) => one.runId !== runId));
  }

  private async command<T>(command: string, argument: unknown): Promise<T | undefined> {
    const client = await this.server.running();
    if (!client) {
      void vscode.window.showErrorMessage("QVR: the language server is not running.", "Restart").then((chosen) => {
        if (chosen) {
          void this.server.restart();
        }
      });
      return undefined;
    }
    try {
      return await client.sendRequest<T>("workspace/executeCommand", { command, arguments: [argument] });
    } catch (error) {
      void vscode.window.showErrorMessage(`QVR: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables, this.changed, this.opened).dispose();
  }
}
