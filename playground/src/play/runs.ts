/** Runs of the program: started, followed, cancelled, resumed; shown in the run panel of the VS Code extension. */
import { differ, type Asked } from "../../../vscode-extension/src/runs/differences";
import type { Summary } from "../../../vscode-extension/src/runs/figures";
import type { FromRun, ToRun } from "../../../vscode-extension/src/runs/messages";
import { parseOptions } from "../../../vscode-extension/src/runs/options";
import { emptyRun, isOver, type RunState, take } from "../../../vscode-extension/src/runs/state";
import { drawsOf, runNames } from "../../../vscode-extension/src/runs/words";
import {
  type Algorithm,
  RUN_EVENT,
  type RunEvent,
  type RunEventParams,
  type RunOverview,
  type RunRequest,
  RUNS,
  type RunStarted,
} from "../../../vscode-extension/src/protocol";
import type { Transport } from "../language/transport";
import { say } from "../page/elements";
import type { Shade } from "../page/theme";

/** Answer of `play/run`. */
interface Recorded extends Asked {
  events: RunEvent[];
  summary: Summary | null;
}

export interface Around {
  /** Bring the run panel to the front. */
  front(): void;
  /** Put the cursor on the step that binds a name, or only into the text. */
  reveal(site: string | undefined): void;
  /** The runs of the folder have changed. */
  listed(runs: RunOverview[]): void;
}

export class PlayRuns {
  private readonly known = new Map<string, RunState>();
  private shown: RunState | undefined;
  private ready = false;
  private shade: Shade = "light";

  constructor(
    private readonly frame: HTMLIFrameElement,
    private readonly uri: string,
    private readonly transport: Transport,
    private readonly around: Around,
  ) {
    addEventListener("message", ({ source, data }: MessageEvent<FromRun>) => {
      if (source === frame.contentWindow) {
        void this.receive(data).catch(tell);
      }
    });
    transport.on<RunEventParams>(RUN_EVENT, (params) => this.follow(params));
    frame.src = new URL("run.html", document.baseURI).href;
  }

  get going(): boolean {
    return [...this.known.values()].some((run) => !isOver(run));
  }

  paint(shade: Shade): void {
    this.shade = shade;
    this.send({ type: "shade", shade });
  }

  async start(algorithm: Algorithm, options: Record<string, unknown>, program?: string): Promise<void> {
    const request: RunRequest = { uri: this.uri, algorithm, options, program };
    const started = await this.command<RunStarted>("qvr.run", request);
    await this.open(this.state(started.runId, started.directory, program ?? "", algorithm));
  }

  async show(runId: string): Promise<void> {
    const known = this.known.get(runId);
    if (known) {
      await this.open(known);
      return;
    }
    const { events, config } = await this.record(runId);
    const run = this.state(runId, "", "", String(config["algorithm"] ?? ""));
    events.forEach((event) => take(run, event));
    await this.open(run);
  }

  async list(): Promise<RunOverview[]> {
    const runs = await this.transport.request<RunOverview[]>(RUNS, { uri: this.uri });
    for (const { runId, status } of runs) {
      const run = this.known.get(runId);
      if (run && !run.ending && status === "crashed") {
        run.status = "crashed";
      }
    }
    this.around.listed(runs);
    return runs;
  }

  // ------------------------------------------------------------ events

  private follow({ runId, program, event }: RunEventParams): void {
    const run = this.state(runId, "", program ?? "", "");
    take(run, event);
    if (event.event === "started") {
      run.directory = event.directory;
    }
    if (run === this.shown) {
      this.send({ type: "events", events: [event] });
      document.documentElement.dataset["run"] = run.status;
    }
    if (isOver(run) && event.event !== "progress") {
      void this.summarise(run).catch(tell);
    }
  }

  private state(runId: string, directory: string, program: string, algorithm: string): RunState {
    const run = this.known.get(runId) ?? emptyRun(runId, this.uri, directory, program, algorithm);
    run.directory ||= directory;
    run.program ||= program;
    run.algorithm ||= algorithm;
    this.known.set(runId, run);
    return run;
  }

  // ------------------------------------------------------------ the panel

  private async open(run: RunState): Promise<void> {
    this.shown = run;
    document.documentElement.dataset["run"] = run.status;
    this.around.front();
    this.send({ type: "run", run });
    await this.summarise(run);
  }

  /** What the fit says of every number, where it has ended, and the runs that it can be compared with. */
  private async summarise(run: RunState): Promise<void> {
    const found = isOver(run) ? await this.record(run.runId).catch(() => undefined) : undefined;
    const others = (await this.list()).filter((one) => one.program === run.program && one.runId !== run.runId);
    if (run === this.shown) {
      const names = runNames(others);
      const listed = others.map(({ runId, status }, at) => ({ runId, label: `${names[at]}, ${status}` }));
      this.send({ type: "summary", summary: found?.summary ?? undefined, others: listed });
    }
  }

  private async receive(message: FromRun): Promise<void> {
    const run = this.shown;
    if (message.type === "ready") {
      this.ready = true;
      this.paint(this.shade);
    }
    if (!run) {
      return;
    }
    switch (message.type) {
      case "ready":
        await this.open(run);
        break;
      case "cancel":
        if (!isOver(run)) {
          run.status = "cancelling";
          this.send({ type: "status", status: run.status });
        }
        await this.command("qvr.cancelRun", { runId: run.runId });
        break;
      case "resume":
        await this.resume(run, 0);
        break;
      case "more": {
        const text = prompt("How many more draws shall each chain make?", String(run.drawn?.total ?? 1000));
        const more = text === null ? undefined : drawsOf(text);
        if (more !== undefined) {
          await this.resume(run, more);
        }
        break;
      }
      case "rerun": {
        const text = prompt("Other settings, as key=value pairs, such as steps=5000", "");
        const options = text === null ? null : parseOptions(text);
        if (typeof options === "string") {
          say(options, "error");
        } else if (options) {
          await this.start(run.algorithm as Algorithm, options, run.program || undefined);
        }
        break;
      }
      case "folder":
        say(`The run is kept in ${run.directory || run.runId}.`);
        break;
      case "source":
        this.around.reveal(undefined);
        break;
      case "site":
        this.around.reveal(message.site);
        break;
      case "sample":
        this.send({ type: "sample", text: `In a terminal of the folder: qvr sample ${run.runId}`, failed: true });
        break;
      case "compare":
        await this.compare(run, message.runId);
        break;
    }
  }

  private async resume(run: RunState, more: number): Promise<void> {
    await this.command("qvr.restartWorker", { runId: run.runId, uri: this.uri, more });
    run.status = "running";
    run.ending = null;
    await this.open(run);
  }

  private async compare(run: RunState, runId: string): Promise<void> {
    const [mine, theirs] = await Promise.all([this.record(run.runId), this.record(runId)]);
    const other = emptyRun(runId, this.uri, "", run.program, String(theirs.config["algorithm"] ?? ""));
    theirs.events.forEach((event) => take(other, event));
    this.send({ type: "compared", run: other, summary: theirs.summary ?? undefined, differences: differ(mine, theirs) });
  }

  // ------------------------------------------------------------ the wire

  private record(runId: string): Promise<Recorded> {
    return this.transport.request<Recorded>("play/run", { uri: this.uri, runId });
  }

  private command<Result>(command: string, argument: object): Promise<Result> {
    return this.transport.request<Result>("workspace/executeCommand", { command, arguments: [argument] });
  }

  private send(message: ToRun | { type: "shade"; shade: Shade }): void {
    if (this.ready) {
      this.frame.contentWindow?.postMessage(message, location.origin);
    }
  }
}

export function tell(error: unknown): void {
  say(error instanceof Error ? error.message : String(error), "error");
}
