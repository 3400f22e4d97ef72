/** Lays out DOT as SVG, off the page's thread: from left to right or from top to bottom, whichever fills the panel. */
import { Graphviz } from "@hpcc-js/wasm-graphviz";
import type { Wanted } from "./layout";

/** From left to right is how a pipeline is read: the other way must be this much larger. */
const PREFERENCE = 1.15;

const graphviz = Graphviz.load();

self.onmessage = async ({ data }: MessageEvent<Wanted>) => {
  try {
    const engine = await graphviz;
    const across = engine.layout(data.dot, "svg", "dot");
    const down = engine.layout(data.dot.replace("rankdir=LR", "rankdir=TB"), "svg", "dot");
    const svg = scale(down, data) > PREFERENCE * scale(across, data) ? down : across;
    self.postMessage({ turn: data.turn, svg });
  } catch (error) {
    self.postMessage({ turn: data.turn, error: error instanceof Error ? error.message : String(error) });
  }
};

/** How large a picture is when it fits the panel; above its natural size it gains nothing. */
function scale(svg: string, { width, height }: Wanted): number {
  const box = /viewBox="\S+ \S+ (\S+) (\S+)"/.exec(svg);
  return box ? Math.min(width / Number(box[1]), height / Number(box[2]), 1.3) : 0;
}
