/** Lays out DOT as SVG, off the page's thread. */
import { Graphviz } from "@hpcc-js/wasm-graphviz";

interface Wanted {
  turn: number;
  dot: string;
}

const graphviz = Graphviz.load();

self.onmessage = async ({ data }: MessageEvent<Wanted>) => {
  try {
    const svg = (await graphviz).layout(data.dot, "svg", "dot");
    self.postMessage({ turn: data.turn, svg });
  } catch (error) {
    self.postMessage({ turn: data.turn, error: error instanceof Error ? error.message : String(error) });
  }
};
