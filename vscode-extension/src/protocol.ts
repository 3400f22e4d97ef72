/**
 * What goes between this extension and the language server beyond LSP (docs/protocol.md), and the events of runs.
 */
import type { Position, Range } from "vscode-languageclient";
import type { ChainDraws, PosteriorRow, Summary } from "./runs/figures";

export interface DiagramNode {
  id: string;
  kind: string;
  label: string;
  note: string;
  detail: string;
  box: string | null;
  declared: string | null;
  shared: boolean;
  sort: string;
  role: string;
  site: string | null;
  returned: boolean;
  range: Range | null;
  ranges: Range[];
  home: { uri: string; range: Range } | null;
}

export interface DiagramWire {
  source: string;
  target: string;
  label: string;
  space: string;
  width: number | null;
  kind: string;
  mismatch: string | null;
  range: Range | null;
}

export interface DiagramBox {
  id: string;
  kind: string;
  label: string;
  parent: string | null;
  range: Range | null;
}

/** The graph in the answer of `qvr/diagram`. */
export interface DiagramPage {
  name: string;
  kind: string;
  type: string;
  nodes: DiagramNode[];
  wires: DiagramWire[];
  boxes: DiagramBox[];
  collapsed: string[];
  /** What its shapes say; empty where there is nothing to tell apart. */
  legend: { kind: string; role: string; text: string }[];
  /** DOT text of the same graph; node ids stand in its `id` attributes as `node:<id>`. */
  dot: string;
  /** DOT text with the legend, for a file. */
  saved: string | null;
  mermaid: string;
}

/** Answer of `qvr/diagram`. */
export interface DiagramAnswer extends DiagramPage {
  version: number | null;
  /** Names of this file that can be drawn. */
  names: string[];
  /** True while the file has errors: the picture may lag behind the text. */
  stale: boolean;
}

export interface DiagramParams {
  textDocument: { uri: string };
  name?: string | undefined;
  position?: Position | undefined;
  opened?: string[];
}

export interface HeldOut {
  step: number;
  rows: number;
  draws: number;
  bits_per_byte: number;
  bound: number;
  unigram: number;
  bigram: number;
}

/** How often a site's likeliest value was right on held-out rows, beside always answering `commonest`. */
export interface Accuracy {
  site: string;
  count: number;
  accuracy: number;
  low: number;
  high: number;
  baseline: number;
  commonest: string;
}

export interface Accuracies {
  step: number;
  seconds: number;
  rows: number;
  sites: Accuracy[];
}

/** One thing that tells whether a fit is to be trusted; `grave` where the result is not. */
export interface Check {
  name: string;
  passed: boolean;
  grave: boolean;
  text: string;
  site?: string;
  advice?: string;
  range?: Range;
  foreign?: string;
}

/** One event of a run, as `qvr_core.runs.record.protocol` writes it; keys without a value are left out. */
export type RunEvent =
  | {
      event: "started";
      run_id: string;
      program: string;
      algorithm: string;
      directory: string;
      pid: number;
      device: string;
      parameters: number;
      guide_parameters?: number;
      engine?: "compiled" | "replay" | "plain";
      engine_why?: string;
      steps: number;
      data: string;
      baselines?: { unigram: number; bigram: number };
      memory?: number;
      resumed_from?: number;
      /** A loss is that of a row; else that of all data. */
      per_row?: boolean;
    }
  | {
      event: "progress";
      step: number;
      steps: number;
      seconds: number;
      step_time?: number;
      eta?: number;
      loss?: number;
      smoothed_loss?: number;
      gradient_norm?: number;
      skipped?: number;
      phase?: "warmup" | "sampling";
      chain?: number;
      acceptance?: number;
      divergences?: number;
      tree_depth?: number;
      step_size?: number;
    }
  | { event: "draws"; names: string[]; total: number; chains: ({ chain: number } & ChainDraws)[] }
  | { event: "message"; level: "info" | "warning" | "error"; text: string; range?: Range }
  | ({ event: "held_out"; seconds: number } & HeldOut)
  | ({ event: "accuracies" } & Accuracies)
  | { event: "checkpoint"; step: number; path: string }
  | {
      event: "finished";
      step: number;
      seconds: number;
      losses?: { first?: number; last?: number; best?: number; mean_of_last?: number };
      posterior?: PosteriorRow[];
      held_out?: HeldOut;
      accuracies?: Accuracies;
      divergences?: number;
      acceptance?: number;
      checks?: Check[];
      warnings?: string[];
      reason?: string;
    }
  | { event: "cancelled"; step: number; seconds: number; checkpoint?: string; posterior?: PosteriorRow[] }
  | { event: "failed"; code: string; message: string; usage?: boolean; range?: Range; foreign?: string; site?: string; fixes?: string[]; log?: string[] }
  | { event: "crashed"; returncode?: number; signal?: string; log?: string[] };

/** Parameters of the notification `qvr/runEvent`. */
export interface RunEventParams {
  runId: string;
  uri: string;
  program: string | null;
  event: RunEvent;
}

/** One entry of the answer to `qvr/runs`. */
export interface RunOverview {
  runId: string;
  program: string;
  algorithm: string;
  status: string;
  created: string;
  lastLoss: number | null;
  ending: RunEvent | null;
  problem: string | null;
  directory: string;
}

export interface DataPreviewParams {
  textDocument: { uri: string };
  program?: string | undefined;
  data?: string | undefined;
}

/** A column of a table: what it holds, the name that reads it and what that takes, and what is wrong with it. */
export interface DataColumn {
  name: string;
  kind: string;
  site: string | null;
  wanted: string;
  problem: string | null;
  row: number | null;
}

export interface DataTable {
  path: string;
  rows: number;
  whole: boolean;
  columns: DataColumn[];
  left_out: number;
  numbers: number[];
  cells: string[][];
}

/** Answer of `qvr/dataPreview`. */
export interface DataPreview {
  program: string;
  data: string;
  looked: boolean;
  fits: boolean;
  tables: DataTable[];
  missing: { site: string; wanted: string; problem: string }[];
  problem: string | null;
}

export interface RunDataParams {
  textDocument: { uri: string };
  program?: string | undefined;
}

/** Answer of `qvr/runData`: which data the nearest qvr.toml names for a program, where it stands, and whether the program declares data. */
export interface RunData {
  program: string | null;
  data: string | null;
  settings: string | null;
  declared: boolean;
}

/** Parameters of `qvr/prior`. */
export interface PriorParams {
  textDocument: { uri: string };
  position?: { line: number; character: number };
  program?: string;
  draws?: number;
}

/** Answer of `qvr/prior`. */
export interface PriorAnswer {
  program: string;
  version: number | null;
  data: string;
  problem: string | null;
  summary: Summary | null;
  notes: string[];
  outside: Record<string, string>;
}

/** Notification `qvr/live`: what is drawn while one types, or why nothing is. */
export interface LiveEvent {
  uri: string;
  version: number | null;
  kind: "prior" | "posterior";
  program: string | null;
  state: "waiting" | "drawing" | "drawn" | "problem";
  text: string;
  data?: string;
  method?: "prior" | "nuts" | "pathfinder";
  last?: boolean;
  summary?: Summary;
  notes?: string[];
  outside?: Record<string, string>;
}

export type Algorithm = "svi" | "nuts";

/** Argument of the command `qvr.run`. */
export interface RunRequest {
  uri: string;
  program?: string | undefined;
  algorithm?: Algorithm | undefined;
  options?: Record<string, unknown>;
}

export interface RunStarted {
  runId: string;
  directory: string;
  pid: number;
}

export const RUN_EVENT = "qvr/runEvent";
export const DIAGRAM = "qvr/diagram";
export const DATA_PREVIEW = "qvr/dataPreview";
export const RUN_DATA = "qvr/runData";
export const PRIOR = "qvr/prior";
export const LIVE = "qvr/live";
export const RUNS = "qvr/runs";
