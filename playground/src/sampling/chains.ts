/** Chains of a module that samples (qvr_core/runs/page): its memory, its arguments, and slices of transitions. */

/** What `qvr_core.runs.page.answers` tells of a module. */
export interface Told {
  width: number;
  rooms: [density: number, report: number];
  reported: { name: string; shape: number[]; line: number | null }[];
  windowStart: number;
  ends: number[];
  early: number;
  earlyDepth: number;
  depth: number;
  /** Of a chain's room. */
  rows: number;
  /** How many numbers a chain has, a summary tells, and a transition reports. */
  numbers: number;
  told: number;
  reports: number;
  places: { logDensity: number; step: number; diverging: number; steps: number };
}

export type Parts = Record<"module" | "starts" | "densityReals" | "densityWholes" | "reportReals" | "reportWholes", Uint8Array>;

interface Exports {
  memory: WebAssembly.Memory;
  heap: WebAssembly.Global;
  log_density(q: number, g: number, w: number, d: number, k: number): number;
  report(q: number, values: number, w: number, d: number, k: number): number;
  advance(...given: (number | bigint)[]): void;
  mixing(...given: (number | bigint)[]): void;
}

const PAGE = 65_536;
const TARGET = 0.8;
const FIRST_STEP = 0.1;

interface Chain {
  q: number;
  given: (number | bigint)[];
}

export class Chains {
  private readonly exports: Exports;
  private free: number;
  private readonly density: [room: number, reals: number, wholes: number];
  private readonly report: [room: number, reals: number, wholes: number];
  private readonly here: number;
  private readonly slope: number;
  private readonly ends: number;
  readonly size: number;

  constructor(
    private readonly told: Told,
    parts: Parts,
  ) {
    const module = new WebAssembly.Module(parts.module as BufferSource);
    this.exports = new WebAssembly.Instance(module, {}).exports as unknown as Exports;
    this.free = this.exports.heap.value as number;
    this.density = [this.zeros(told.rooms[0]), this.put(parts.densityReals), this.put(parts.densityWholes)];
    this.report = [this.zeros(told.rooms[1]), this.put(parts.reportReals), this.put(parts.reportWholes)];
    this.size = told.reported.reduce((sum, { shape }) => sum + shape.reduce((one, n) => one * n, 1), 0);
    this.here = this.zeros(told.width);
    this.slope = this.zeros(told.width);
    this.ends = this.put(new BigInt64Array(told.ends.map(BigInt)));
  }

  /** The log density at coordinates, then its gradient. */
  evaluate(position: ArrayLike<number>): Float64Array {
    this.doubles(this.here, this.told.width).set(position);
    const value = this.exports.log_density(this.here, this.slope, ...this.density);
    return Float64Array.of(value, ...this.doubles(this.slope, this.told.width));
  }

  /** A chain at the first of its starts where the density is finite; null where there is none. */
  begin(starts: Float64Array, seed: number, warmup: number): Chain | null {
    const { width, numbers, rows, places, windowStart, ends, early, earlyDepth, depth } = this.told;
    for (let at = 0; at < starts.length; at += width) {
      const found = this.evaluate(starts.subarray(at, at + width));
      if (!found.every(Number.isFinite)) {
        continue;
      }
      const own = this.zeros(numbers);
      this.doubles(own, numbers)[places.logDensity] = found[0] as number;
      this.doubles(own, numbers)[places.step] = FIRST_STEP;
      const q = this.put(starts.slice(at, at + width));
      const g = this.put(found.slice(1));
      const inverse = this.put(new Float64Array(width).fill(1));
      const [w, d, k] = this.density;
      const one = 1n;
      const many = BigInt(width);
      const given = [
        0n, w, BigInt(this.told.rooms[0]), d, one, k, one, q, many, g, many, own, BigInt(numbers), inverse, one, many,
        this.put(Float64Array.of(1)), one, one, this.zeros(width), many, this.zeros(width), one, many,
        this.zeros(rows * width), BigInt(rows), many, this.put(stream(seed)), 8n,
        0n, 0n, 0n, BigInt(warmup), BigInt(windowStart), this.ends, BigInt(ends.length), BigInt(early), BigInt(earlyDepth),
        BigInt(depth), 0n, 0, TARGET, one, one,
      ]; // prettier-ignore
      return { q, given };
    }
    return null;
  }

  /** Transitions of a chain from `draw` on: positions, what each reports, and how many diverged. */
  advance({ given }: Chain, draw: number, count: number): { positions: Float64Array; rows: Float64Array; diverged: number } {
    const { width, reports, places } = this.told;
    const before = this.free;
    const positions = this.zeros(count * width);
    const told = this.zeros(count * reports);
    const own = [...given];
    own[DRAW] = BigInt(draw);
    own[DRAW + 1] = BigInt(count);
    this.exports.advance(...own, positions, BigInt(count), BigInt(width), told, BigInt(count), BigInt(reports));
    const rows = this.doubles(told, count * reports).slice();
    let diverged = 0;
    for (let at = places.diverging; at < rows.length; at += reports) {
      diverged += rows[at] ? 1 : 0;
    }
    const found = this.doubles(positions, count * width).slice();
    this.free = before;
    return { positions: found, rows, diverged };
  }

  /** What the latents are at a position, one number behind the other. */
  values(position: Float64Array): Float64Array {
    this.doubles(this.here, this.told.width).set(position);
    const before = this.free;
    const out = this.zeros(this.size);
    this.exports.report(this.here, out, ...this.report);
    const found = this.doubles(out, this.size).slice();
    this.free = before;
    return found;
  }

  /** What is said of draws (chains, draws) of one number. */
  mixing(draws: Float64Array, chains: number): Float64Array {
    const before = this.free;
    const each = draws.length / chains;
    const out = this.zeros(this.told.told);
    const given = [this.put(draws), BigInt(chains), BigInt(each), out, BigInt(this.told.told)];
    for (let room = 0; room < 4; room += 1) {
      given.push(this.zeros(draws.length), BigInt(draws.length));
    }
    this.exports.mixing(...given);
    const found = this.doubles(out, this.told.told).slice();
    this.free = before;
    return found;
  }

  private doubles(at: number, count: number): Float64Array {
    return new Float64Array(this.exports.memory.buffer, at, count);
  }

  private zeros(count: number): number {
    const at = this.free;
    this.free += 8 * Math.max(count, 1);
    const missing = Math.ceil((this.free - this.exports.memory.buffer.byteLength) / PAGE);
    if (missing > 0) {
      this.exports.memory.grow(missing);
    }
    this.doubles(at, Math.max(count, 1)).fill(0);
    return at;
  }

  private put(content: Uint8Array | Float64Array | BigInt64Array): number {
    const at = this.zeros(Math.ceil(content.byteLength / 8));
    new Uint8Array(this.exports.memory.buffer, at, content.byteLength).set(new Uint8Array(content.buffer, content.byteOffset, content.byteLength));
    return at;
  }
}

/** Where `draw` and `count` stand among the arguments. */
const DRAW = 30;

/** The state and the increment of a generator, in whole numbers of 32 bits, from a seed (splitmix, Steele et al. 2014). */
function stream(seed: number): BigInt64Array {
  let state = BigInt(seed);
  const found = new BigInt64Array(8);
  for (let at = 0; at < 8; at += 1) {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let mixed = BigInt.asUintN(64, (state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    found[at] = (mixed ^ (mixed >> 31n)) & 0xffffffffn;
  }
  // an increment is odd
  found[4] = (found[4] as bigint) | 1n;
  return found;
}
