/** What the page and the worker that samples say to each other. */

/** Files of data by their names: a main one, those of the rows of a set or of one name, and what columns are called, as in qvr.toml. */
export interface Data {
  files: Record<string, string>;
  main: string | null;
  named: Record<string, string>;
  columns: Record<string, string | string[]>;
}

export interface Asked extends Data {
  text: string;
  chains: number;
  warmup: number;
  draws: number;
  seed: number;
  /** Milliseconds that sampling may take; what takes longer ends as a problem. */
  budget?: number;
}

/** A number of the posterior: `elements` of a latent have one each. */
export interface Row {
  name: string;
  mean: number;
  sd: number;
  low: number;
  median: number;
  high: number;
  rHat: number;
  bulk: number;
  tail: number;
}

/** A latent, and the line on which it is drawn, from 0 on. */
export interface Latent {
  name: string;
  shape: number[];
  line: number | null;
}

export interface Finished {
  kind: "finished";
  chains: number;
  draws: number;
  divergences: number;
  /** Milliseconds: until the module was there, and of sampling. */
  prepared: number;
  sampled: number;
  bytes: number;
  latents: Latent[];
  rows: Row[];
  /** One number after the other: draws of all chains. */
  values: Float64Array;
  /** Of each draw of each chain what its transition reports. */
  reports: Float64Array;
}

export type Answer =
  | { kind: "loading"; what: string }
  | { kind: "progress"; done: number; of: number; divergences: number }
  | { kind: "problem"; text: string }
  | { kind: "cancelled" }
  | Finished;

/** Beside runs: which data a qvr.toml names for the program of a text, and the draws of a run as a NetCDF file. */
export type Question = { named: { text: string; settings: string } } | { netcdf: Finished };

export interface Replies {
  /** Paths from where the qvr.toml stands; `reads` is whether the program reads any data. */
  named: Omit<Data, "files"> & { reads: boolean };
  netcdf: Uint8Array;
}

export type ToWorker =
  | { start: { files: Record<string, ArrayBuffer> } }
  | { run: Asked }
  | { cancel: true }
  | { question: Question; port: MessagePort };
