/** What the run panel and its webview say to each other. */
import type { RunEvent } from "../protocol";
import type { Summary } from "./figures";
import type { RunState } from "./state";

export type ToRun =
  | { type: "run"; run: RunState }
  | { type: "events"; events: RunEvent[] }
  | { type: "status"; status: RunState["status"] }
  | { type: "summary"; summary: Summary | undefined; others: { runId: string; label: string }[] }
  | { type: "compared"; run: RunState; summary: Summary | undefined; differences: string[] }
  | { type: "sample"; text: string; failed: boolean };

export type FromRun =
  | { type: "ready" }
  | { type: "cancel" | "resume" | "more" | "rerun" | "folder" | "source" | "sample" }
  | { type: "site"; site: string }
  | { type: "compare"; runId: string };
