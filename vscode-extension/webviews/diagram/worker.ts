/** Lays out DOT as SVG, off the page's thread: from left to right or from top to bottom, whichever fills the panel. */
import { Graphviz } from "@hpcc-js/wasm-graphviz";
import type { Direction, Wanted } from "./layout";

/** From left to right is how a pipeline is read: the other way must be this much larger. */
const PREFERENCE = 1.15;

const graphviz = Graphviz.load();

self.onmessage = async ({ data }: MessageEvent<Wanted>) => {
  try {
    const engine = await graphviz;
    const laid = (dot: string, direction: Direction) => engine.layout(dot.replace("rankdir=LR", `rankdir=${direction}`), "svg", "dot");
    const layout = (direction: Direction) => laid(data.dot, direction);
    const saved = (direction: Direction) => (data.saved === null ? undefined : laid(data.saved, direction));
    if (data.direction) {
      self.postMessage({ turn: data.turn, svg: layout(data.direction), saved: saved(data.direction), direction: data.direction });
      return;
    }
    const [across, down] = [layout("LR"), layout("TB")];
    const direction: Direction = scale(down, data) > PREFERENCE * scale(across, data) ? "TB" : "LR";
    self.postMessage({ turn: data.turn, svg: direction === "TB" ? down : across, saved: saved(direction), direction });
  } catch (error) {
    self.postMessage({ turn: data.turn, error: error instanceof Error ? error.message : String(error) });
  }
};

/** How large a picture is when it fits the panel; above its natural size it gains nothing. */
function scale(svg: string, { width, height }: Wanted): number {
  const box = /viewBox="\S+ \S+ (\S+) (\S+)"/.exec(svg);
  return box ? Math.min(width / Number(box[1]), height / Number(box[2]), 1.3) : 0;
}
