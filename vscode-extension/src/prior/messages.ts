/** What the panel of a prior and its webview say to each other. */
import type { PriorAnswer } from "../protocol";

export type ToPrior = { type: "prior"; answer: PriorAnswer } | { type: "problem"; text: string };

export type FromPrior = { type: "ready" } | { type: "site"; site: string };
