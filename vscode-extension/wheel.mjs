/**
 * Builds the wheel of the language server into dist/, so that it travels with the extension, and beside it needs.json:
 * what the server needs from elsewhere, and what only runs need, as the wheel itself says it.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** What only runs load; checking, formatting, diagrams and the server do without. */
const FOR_RUNS = ["torch", "numpy", "numba", "llvmlite", "polars", "safetensors", "tokenizers", "arviz-stats", "xarray", "h5netcdf", "h5py", "matplotlib"];

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..");
const own = join(root, ".venv", "bin", "python");
const python = process.env.PYTHON ?? (existsSync(own) ? own : "python3");
const dist = join(here, "dist");
const wheels = () => readdirSync(dist).filter((each) => each.endsWith(".whl"));

for (const name of wheels()) {
  rmSync(join(dist, name));
}
execFileSync(python, ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", dist, root], { stdio: "inherit" });

const read = "import sys, zipfile\nwheel = zipfile.ZipFile(sys.argv[1])\nname = next(n for n in wheel.namelist() if n.endswith('.dist-info/METADATA'))\nprint(wheel.read(name).decode())";
const metadata = execFileSync(python, ["-c", read, join(dist, wheels()[0])], { encoding: "utf8" });
const needs = [...metadata.matchAll(/^Requires-Dist: (.*)$/gm)].map((found) => found[1]).filter((need) => !need.includes("extra =="));
const server = needs.filter((need) => !FOR_RUNS.includes(/^[\w.-]+/.exec(need)[0]));
if (server.length === 0 || server.length + FOR_RUNS.length !== needs.length) {
  throw new Error(`the wheel needs ${needs.join(", ")}: FOR_RUNS in wheel.mjs names something else`);
}
writeFileSync(join(dist, "needs.json"), `${JSON.stringify({ server }, null, 2)}\n`);
