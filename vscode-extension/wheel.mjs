/** Builds the wheel of the language server into dist/, so that it travels with the extension. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

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
