/** The shapes of `summary.json`, which are those of qvr_core/runs/record/summary.py. */

export interface PosteriorRow {
  name: string;
  mean: number | null;
  sd: number | null;
  q05: number | null;
  median: number | null;
  q95: number | null;
  r_hat?: number | null;
  ess?: number | null;
  /** R-hat is more than chains that have mixed would show. */
  unmixed?: boolean;
}

/** Some draws of one chain: at which draw, which of them diverged (positions in these lists), and each number's values. */
export interface ChainDraws {
  draws: number[];
  diverging: number[];
  values: (number | null)[][];
}

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
