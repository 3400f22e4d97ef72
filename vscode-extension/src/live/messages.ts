/** What the panel of a prior, or of a posterior as one types, and its webview say to each other. */
import type { PriorAnswer } from "../protocol";

/** `live` is how the draws from a posterior stand, in a line; none of a prior. */
export type ToPrior = { type: "prior"; answer: PriorAnswer; live?: string } | { type: "problem"; text: string };

export type FromPrior = { type: "ready" } | { type: "site"; site: string };
