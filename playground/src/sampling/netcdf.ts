/** The draws of a run as a NetCDF file like `posterior.nc`, for ArviZ and xarray.  A script of its own, fetched at the click: it holds HDF5. */
import { File, FS, type Group, ready } from "h5wasm";
import type { Finished } from "../../../vscode-extension/src/web/sampling/request";

const PATH = "posterior.nc";
/** Columns of what transitions report, under ArviZ's names. */
const STATISTICS = ["acceptance_rate", "diverging", "n_steps", "tree_depth", "lp", "step_size", "energy"];

export async function netcdf(found: Finished): Promise<Uint8Array> {
  await ready;
  const file = new File(PATH, "w", { track_order: true });
  const { chains, draws, latents, values, reports } = found;
  const posterior = group(file, "posterior", [["chain", chains], ["draw", draws]]);
  const each = chains * draws;
  let first = 0;
  for (const { name, shape } of latents) {
    const count = shape.reduce((one, size) => one * size, 1);
    const own = new Float64Array(count * each);
    // here a number has its draws one behind the other, there a draw its numbers
    for (let place = 0; place < count; place += 1) {
      for (let at = 0; at < each; at += 1) {
        own[at * count + place] = values[(first + place) * each + at] as number;
      }
    }
    first += count;
    const axes = shape.map((size, axis): [string, number] => [`${plain(name)}_dim_${axis}`, size]);
    axes.forEach(([axis, size]) => scale(posterior, axis, size));
    put(posterior, plain(name), own, [["chain", chains], ["draw", draws], ...axes]);
  }
  const statistics = group(file, "sample_stats", [["chain", chains], ["draw", draws]]);
  STATISTICS.forEach((name, column) => {
    const own = new Float64Array(each);
    own.forEach((_, at) => (own[at] = reports[at * STATISTICS.length + column] as number));
    const kept = name === "diverging" ? Int8Array.from(own) : ["n_steps", "tree_depth"].includes(name) ? Int32Array.from(own) : own;
    put(statistics, name, kept, [["chain", chains], ["draw", draws]]);
  });
  file.close();
  const bytes = (FS as { readFile(path: string): Uint8Array }).readFile(PATH);
  (FS as { unlink(path: string): void }).unlink(PATH);
  return bytes;
}

type Axes = [name: string, size: number][];

function group(file: File, name: string, axes: Axes): Group {
  const made = file.create_group(name);
  axes.forEach(([axis, size]) => scale(made, axis, size));
  return made;
}

/** An axis with its coordinates, as NetCDF has it in HDF5. */
function scale(within: Group, name: string, size: number): void {
  const made = within.create_dataset({ name, data: BigInt64Array.from({ length: size }, (_, at) => BigInt(at)), shape: [size] });
  made.make_scale(name);
}

function put(within: Group, name: string, data: Float64Array | Int8Array | Int32Array, axes: Axes): void {
  const made = within.create_dataset({ name, data, shape: axes.map(([, size]) => size) });
  axes.forEach(([axis], at) => made.attach_scale(at, `${within.path}/${axis}`));
}

/** A slash would be a group. */
function plain(name: string): string {
  return name.replaceAll("/", "_");
}
