/** Puts the workers of server and sampling, which `make playground` builds, into dist/web/server/, so that it travels with the extension. */
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const built = join(here, "..", "playground", "dist", "server");
const target = join(here, "dist", "web", "server");
/** The names that src/web/worker.ts reads. */
const FILES = ["worker.js", "sampling.js", "pyodide.asm.mjs", "pyodide.asm.wasm", "python.zip", "server.zip", "sampling.zip", "networkx.zip", "../netcdf.js"];

const missing = FILES.filter((name) => !existsSync(join(built, name)));
if (missing.length > 0) {
  console.error(`${missing.join(", ")} of the playground are not built: run \`make playground\` first`);
  process.exit(1);
}
mkdirSync(target, { recursive: true });
for (const name of FILES) {
  cpSync(join(built, name), join(target, basename(name)));
}
