/**
 * The worker that samples: Python makes a program and its data into a module of WebAssembly, whose chains run here in
 * slices, so that progress is told and a cancel is heard between them.  It is never the server's.
 */
import "../server/classic";
import { kept } from "../server/memory";
import { NOWHERE, moduleOf, pythonWith } from "../server/start";
import type { Answer, Asked, Question, Replies, Row, ToWorker } from "../../../vscode-extension/src/web/sampling/request";
import { Chains, type Parts, type Told } from "./chains";

interface Scope {
  readonly location: { readonly href: string; readonly protocol: string };
  onmessage: ((event: { data: ToWorker }) => void) | null;
  postMessage(message: Answer, moved?: Transferable[]): void;
}

type Python = Awaited<ReturnType<typeof pythonWith>>;

const scope = globalThis as unknown as Scope;
/** What stands in the folder, where the script was started from a blob and nothing may be fetched. */
let files: Record<string, ArrayBuffer> | undefined;
const FOLDER = "/data";
/** Milliseconds of a slice; as long as a cancel may wait. */
const SLICE_MS = 25;
const MOST_AT_ONCE = 200;

let python: Promise<Python> | undefined;
let cancelled = false;

scope.onmessage = ({ data }) => {
  if ("start" in data) {
    files = data.start.files;
  } else if ("cancel" in data) {
    cancelled = true;
  } else if ("question" in data) {
    replied(data.question).then(
      (reply) => data.port.postMessage({ reply }),
      (error: unknown) => data.port.postMessage({ problem: words(error) }),
    );
  } else {
    cancelled = false;
    run(data.run).catch((error: unknown) => tell({ kind: "problem", text: words(error) }));
  }
};

function tell(answer: Answer, moved: Transferable[] = []): void {
  scope.postMessage(answer, moved);
}

async function started(): Promise<Python> {
  const base = files ? NOWHERE : new URL(".", scope.location.href).href;
  const wanted = {
    base, files, settings: false, send: () => undefined, end: () => undefined,
    loading: (what: string) => tell({ kind: "loading", what: what === "Python" ? what : "the compiler" }),
  }; // prettier-ignore
  const memory = files ? undefined : (await kept(base))?.();
  const found = await pythonWith({ ...wanted, memory }, "sampling.zip").catch(() => pythonWith(wanted, "sampling.zip"));
  found.pyimport("qvr_core.runs.page").alone();
  return found;
}

function ready(): Promise<Python> {
  python ??= started();
  python.catch(() => (python = undefined));
  return python;
}

async function replied(question: Question): Promise<Replies[keyof Replies]> {
  if ("netcdf" in question) {
    type Script = typeof import("./netcdf");
    const script = files ? await moduleOf<Script>(files["netcdf.js"]) : ((await import(new URL("../netcdf.js", scope.location.href).href)) as Script);
    return script.netcdf(question.netcdf);
  }
  const { text, settings } = question.named;
  const answer = (await ready()).pyimport("qvr_core.runs.page.settings").data_named(text, settings) as string;
  const found = JSON.parse(answer) as Replies["named"] | { problem: string };
  if ("problem" in found) {
    throw new Error(found.problem);
  }
  return found;
}

async function run(asked: Asked): Promise<void> {
  const began = performance.now();
  const own = await ready();
  tell({ kind: "loading", what: "the program" });
  own.FS.mkdirTree(FOLDER);
  // a file of another folder is one of this, under a name that looks the same
  const placed = (name: string): string => `${FOLDER}/${name.replaceAll("/", "∕")}`;
  for (const [name, content] of Object.entries(asked.files)) {
    own.FS.writeFile(placed(name), content);
  }
  const { text, columns, chains, warmup, draws, seed, budget = Infinity } = asked;
  const named = Object.fromEntries(Object.entries(asked.named).map(([name, file]) => [name, placed(file)]));
  const request = { text, columns, chains, warmup, seed, named, main: asked.main === null ? null : placed(asked.main) };
  const answer = own.pyimport("qvr_core.runs.page.answers").prepared(JSON.stringify(request));
  const told = JSON.parse(answer.get(0)) as Told | { problem: string };
  if ("problem" in told) {
    tell({ kind: "problem", text: told.problem.replaceAll(`${FOLDER}/`, "") });
    return;
  }
  const parts = answer.get(1).toJs({ dict_converter: Object.fromEntries }) as Parts;
  const made = new Chains(told, parts);
  const differs = answer.get(2)((...position: number[]) => made.evaluate(position)) as string;
  answer.destroy();
  if (differs) {
    tell({ kind: "problem", text: `The compiled program is not used: ${differs}. Please report it.` });
    return;
  }
  const prepared = performance.now() - began;
  if (cancelled) {
    tell({ kind: "cancelled" });
    return;
  }
  const starts = new Float64Array(parts.starts.slice().buffer);
  const each = starts.length / chains;
  const moving = Array.from({ length: chains }, (_, at) => made.begin(starts.slice(at * each, (at + 1) * each), seed * 1_000 + at, warmup));
  if (moving.includes(null)) {
    tell({ kind: "problem", text: "The density is infinite or undefined wherever a chain could start. Are the data what the priors allow?" });
    return;
  }
  const values = new Float64Array(made.size * chains * draws);
  const reports = new Float64Array(told.reports * chains * draws);
  const total = chains * (warmup + draws);
  let [done, divergences] = [0, 0];
  for (const [number, chain] of moving.entries()) {
    let [draw, count] = [0, 1];
    while (draw < warmup + draws) {
      const now = Math.min(count, warmup + draws - draw, draw < warmup ? warmup - draw : MOST_AT_ONCE);
      const start = performance.now();
      const { positions, rows, diverged } = made.advance(chain as NonNullable<typeof chain>, draw, now);
      if (draw >= warmup) {
        divergences += diverged;
        reports.set(rows, (number * draws + draw - warmup) * told.reports);
        for (let at = 0; at < now; at += 1) {
          const found = made.values(positions.subarray(at * told.width, (at + 1) * told.width));
          found.forEach((value, place) => (values[(place * chains + number) * draws + draw - warmup + at] = value));
        }
      }
      draw += now;
      done += now;
      count = performance.now() - start > SLICE_MS ? Math.max(1, count >> 1) : Math.min(MOST_AT_ONCE, 2 * count);
      tell({ kind: "progress", done, of: total, divergences });
      await turn();
      if (cancelled) {
        tell({ kind: "cancelled" });
        return;
      }
      if (performance.now() - began - prepared > budget) {
        tell({ kind: "problem", text: `its chains take more than ${budget / 1_000} s here: ▶ NUTS has the time` });
        return;
      }
    }
  }
  const rows = names(told).map((name, at): Row => {
    const [mean, sd, low, median, high, rHat, bulk, tail] = made.mixing(values.subarray(at * chains * draws, (at + 1) * chains * draws), chains) as unknown as [
      number, number, number, number, number, number, number, number,
    ]; // prettier-ignore
    return { name, mean, sd, low, median, high, rHat, bulk, tail };
  });
  const sampled = performance.now() - began - prepared;
  const bytes = parts.module.length;
  tell({ kind: "finished", chains, draws, divergences, prepared, sampled, bytes, latents: told.reported, rows, values, reports }, [values.buffer, reports.buffer]);
}

/** The names of all numbers, those of an array by their places from 0 on. */
function names({ reported }: Told): string[] {
  return reported.flatMap(({ name, shape }) => {
    let found = [""];
    for (const size of shape) {
      found = found.flatMap((before) => Array.from({ length: size }, (_, at) => (before ? `${before},${at}` : String(at))));
    }
    return shape.length === 0 ? [name] : found.map((place) => `${name}[${place}]`);
  });
}

/** What went wrong, without the way there: Python's errors tell that first. */
function words(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.trim().split("\n").at(-1) ?? text;
}

/** Messages that have arrived are handled. */
const channel = new MessageChannel();
function turn(): Promise<void> {
  return new Promise((resolve) => {
    channel.port1.onmessage = () => resolve();
    channel.port2.postMessage(null);
  });
}
