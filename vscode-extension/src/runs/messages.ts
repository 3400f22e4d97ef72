/** What the run panel and its webview say to each other. */
import type { RunEvent } from "../protocol";
import type { RunState } from "./state";

export type ToRun =
  | { type: "run"; run: RunState }
  | { type: "events"; events: RunEvent[] }
  | { type: "status"; status: RunState["status"] }
  | { type: "sample"; text: string; failed: boolean };

export type FromRun =
  | { type: "ready" }
  | { type: "cancel" | "resume" | "rerun" | "folder" | "source" | "sample" };
