/** What the data preview and its webview say to each other. */
import type { DataPreview } from "../protocol";

export type ToData = { type: "preview"; preview: DataPreview; choosing: boolean } | { type: "problem"; text: string; choosing: boolean };

export type FromData = { type: "ready" | "use" | "other" } | { type: "site"; site: string };
