/**
 * A run as its events tell it. The extension and the panel's webview fold the same events by the same function, so that
 * a panel that comes late, or comes back after a reload, shows what one that was there shows.
 */
import { joined, type Drawn } from "./drawn";
import type { PosteriorRow } from "./figures";
import type { Accuracy, Check, HeldOut, RunEvent } from "../protocol";

export interface Series {
  steps: number[];
  loss: (number | null)[];
  smoothed: (number | null)[];
  acceptance: (number | null)[];
  gradient: (number | null)[];
}

export interface Note {
  level: "info" | "warning" | "error";
  text: string;
}

export interface RunState {
  runId: string;
  uri: string;
  directory: string;
  program: string;
  algorithm: string;
  status: "starting" | "running" | "cancelling" | "finished" | "cancelled" | "failed" | "crashed";
  data: string;
  device: string;
  parameters: number;
  baselines: { unigram: number; bigram: number } | null;
  step: number;
  steps: number;
  seconds: number;
  eta: number | null;
  stepTime: number | null;
  /** A loss is that of a row; else that of all data, as of a statistical program. */
  perRow: boolean;
  phase: string | null;
  divergences: number | null;
  treeDepth: number | null;
  stepSize: number | null;
  series: Series;
  heldOut: (HeldOut & { seconds?: number })[];
  posterior: PosteriorRow[];
  drawn: Drawn | null;
  notes: Note[];
  ending: RunEvent | null;
}

export function emptyRun(runId: string, uri: string, directory: string, program: string, algorithm: string): RunState {
  return {
    runId,
    uri,
    directory,
    program,
    algorithm,
    status: "starting",
    data: "",
    device: "",
    parameters: 0,
    baselines: null,
    step: 0,
    steps: 0,
    seconds: 0,
    eta: null,
    stepTime: null,
    perRow: true,
    phase: null,
    divergences: null,
    treeDepth: null,
    stepSize: null,
    series: { steps: [], loss: [], smoothed: [], acceptance: [], gradient: [] },
    heldOut: [],
    posterior: [],
    drawn: null,
    notes: [],
    ending: null,
  };
}

/** Fold one event into `run`, in place. */
export function take(run: RunState, event: RunEvent): RunState {
  switch (event.event) {
    case "started":
      run.status = "running";
      run.ending = null;
      run.program = event.program;
      run.algorithm = event.algorithm;
      run.data = event.data;
      run.device = event.device;
      run.parameters = event.parameters;
      run.steps = event.steps;
      run.perRow = event.per_row ?? true;
      run.baselines = event.baselines ?? null;
      if (event.resumed_from !== undefined) {
        forget(run, event.resumed_from);
        run.notes.push({ level: "info", text: `resumed at step ${event.resumed_from}` });
      }
      break;
    case "progress":
      progress(run, event);
      break;
    case "draws":
      run.drawn = joined(run.drawn, event);
      break;
    case "message":
      run.notes.push({ level: event.level, text: event.text });
      break;
    case "held_out":
      run.heldOut.push(event);
      break;
    case "accuracies":
      for (const one of event.sites) {
        run.notes.push({ level: "info", text: accuracyText(one) });
      }
      break;
    case "checkpoint":
      break;
    case "finished":
      run.status = "finished";
      run.ending = event;
      run.step = event.step;
      run.seconds = event.seconds;
      run.posterior = event.posterior ?? [];
      run.divergences = event.divergences ?? run.divergences;
      break;
    case "cancelled":
      run.status = "cancelled";
      run.ending = event;
      run.step = event.step;
      run.seconds = event.seconds;
      run.posterior = event.posterior ?? [];
      break;
    case "failed":
    case "crashed":
      run.status = event.event;
      run.ending = event;
      break;
  }
  return run;
}

function progress(run: RunState, event: Extract<RunEvent, { event: "progress" }>): void {
  run.status = run.status === "cancelling" ? "cancelling" : "running";
  run.step = event.step;
  run.steps = event.steps;
  run.seconds = event.seconds;
  run.eta = event.eta ?? null;
  run.stepTime = event.step_time ?? null;
  run.phase = event.phase ?? null;
  run.divergences = event.divergences ?? run.divergences;
  run.treeDepth = event.tree_depth ?? null;
  run.stepSize = event.step_size ?? null;
  const { series } = run;
  // uPlot wants a growing x; chains report their own draws, so several events may carry one step.
  const last = series.steps.at(-1);
  if (last !== undefined && event.step < last) {
    return;
  }
  if (last === event.step) {
    for (const values of [series.steps, series.loss, series.smoothed, series.acceptance, series.gradient]) {
      values.pop();
    }
  }
  series.steps.push(event.step);
  series.loss.push(event.loss ?? null);
  series.smoothed.push(event.smoothed_loss ?? null);
  series.acceptance.push(event.acceptance ?? null);
  series.gradient.push(event.gradient_norm ?? null);
}

/** Drop what came after the checkpoint that a resumed run goes on from. */
function forget(run: RunState, step: number): void {
  const { series } = run;
  const kept = series.steps.filter((one) => one <= step).length;
  for (const values of [series.steps, series.loss, series.smoothed, series.acceptance, series.gradient]) {
    values.length = kept;
  }
  run.heldOut = run.heldOut.filter((figure) => figure.step <= step);
  run.step = step;
}

export function isOver(run: RunState): boolean {
  return ["finished", "cancelled", "failed", "crashed"].includes(run.status);
}

/** Whether chains have ended well, so that they can be given more draws. */
export function canExtend(algorithm: string, status: string): boolean {
  return algorithm === "nuts" && status === "finished";
}

export function canResume(status: string): boolean {
  return ["cancelled", "crashed", "failed"].includes(status);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function accuracyText(one: Accuracy): string {
  const interval = `95 % interval ${percent(one.low)} to ${percent(one.high)}`;
  return `${one.site}: ${percent(one.accuracy)} right (${interval}); always “${one.commonest}”: ${percent(one.baseline)}`;
}

/** What a loss of the run is, in words. */
export function lossName(run: RunState): string {
  return run.perRow ? "−ELBO per row" : "−ELBO";
}

/** The checks of a run's end that say that its result is not to be trusted. */
export function gravePoints(ending: RunEvent | null): Check[] {
  return ending?.event === "finished" ? (ending.checks ?? []).filter((check) => check.grave) : [];
}

/** The checks of a run's end that it has not passed, the grave ones first. */
export function failedChecks(ending: RunEvent | null): Check[] {
  const failed = ending?.event === "finished" ? (ending.checks ?? []).filter((check) => !check.passed) : [];
  return [...failed.filter((check) => check.grave), ...failed.filter((check) => !check.grave)];
}

/** One line: what a tree item or a notification says of a run. */
export function summary(run: RunState): string {
  const ending = run.ending;
  if (ending?.event === "finished") {
    const grave = gravePoints(ending);
    if (grave.length > 0) {
      return `not to be trusted: ${grave.map((check) => `${check.name}: ${check.text}`).join("; ")}`;
    }
    if (ending.held_out) {
      return `${ending.held_out.bits_per_byte.toFixed(3)} bits per byte held out`;
    }
    if (ending.accuracies) {
      return ending.accuracies.sites.map((one) => `${one.site} ${percent(one.accuracy)} right`).join(" · ");
    }
    const mixing = (ending.posterior ?? []).flatMap((row) => (typeof row.r_hat === "number" ? [row.r_hat] : []));
    if (mixing.length > 0) {
      return `largest R-hat ${Math.max(...mixing).toFixed(3)} · ${ending.divergences ?? 0} divergences`;
    }
    const loss = ending.losses?.mean_of_last ?? ending.losses?.last;
    return loss === undefined ? "finished" : `−ELBO ${loss.toFixed(3)}`;
  }
  if (ending?.event === "failed") {
    return ending.message;
  }
  if (ending?.event === "crashed") {
    return ending.signal ? `ended by ${ending.signal}` : `ended with status ${ending.returncode ?? "unknown"}`;
  }
  const loss = run.series.smoothed.at(-1) ?? run.series.loss.at(-1);
  const parts = [run.steps ? `${run.step}/${run.steps}` : run.status];
  if (loss !== null && loss !== undefined) {
    parts.push(`−ELBO ${loss.toFixed(3)}`);
  }
  return parts.join(" · ");
}
