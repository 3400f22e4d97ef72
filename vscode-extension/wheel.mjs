/** Builds the wheel of the language server into dist/, so that it travels with the extension. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..");
const own = join(root, ".venv", "bin", "python");
const python = process.env.PYTHON ?? (existsSync(own) ? own : "python3");

for (const name of readdirSync(join(here, "dist")).filter((each) => each.endsWith(".whl"))) {
  rmSync(join(here, "dist", name));
}
execFileSync(python, ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", join(here, "dist"), root], {
  stdio: "inherit",
});
