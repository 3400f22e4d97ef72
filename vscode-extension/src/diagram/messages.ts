/** What the diagram panel and its webview say to each other. */
import type { SiteDensity } from "../live/densities";
import type { DiagramAnswer } from "../protocol";

export interface DiagramState {
  uri: string;
  name: string | undefined;
  follow: boolean;
  opened: string[];
}

export type ToDiagram =
  | { type: "diagram"; answer: DiagramAnswer; state: DiagramState; wireLabels: boolean }
  | { type: "highlight"; nodes: string[] }
  | { type: "densities"; densities: SiteDensity[] }
  | { type: "problem"; message: string };

export type FromDiagram =
  | { type: "ready" }
  | { type: "reveal"; node: string }
  | { type: "open"; box: string }
  | { type: "name"; name: string }
  | { type: "drawn"; svg: string }
  | { type: "save" };
