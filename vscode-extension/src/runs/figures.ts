/** The shapes of `summary.json`, which are those of qvr_core/runs/record/summary.py. */
import type { ChainDraws, PosteriorRow } from "../protocol";

export interface Density {
  low: number;
  high: number;
  posterior: number[];
  prior?: number[];
  prior_share?: number;
}

export interface Element extends PosteriorRow {
  density?: Density;
  ranks?: number[][];
}

export interface SiteSummary {
  name: string;
  size: number;
  worst?: string;
  elements: Element[];
}

/** Shares of the values of an observed step in bins: of the data, and of draws (their mean, 5 % and 95 % quantiles). */
export interface Predictive {
  name: string;
  low: number;
  high: number;
  observed: number[];
  posterior?: Band;
  prior?: Band;
}

export interface Band {
  mean: number[];
  low: number[];
  high: number[];
  outside: number;
}

export interface Summary {
  chains: number;
  draws: number;
  sites: SiteSummary[];
  drawn?: string[];
  traces?: ChainDraws[];
  predictive?: Predictive[];
}
