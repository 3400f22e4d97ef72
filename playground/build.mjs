/** Builds the page into dist/, and what the server's worker loads into dist/server/. */
import { build } from "esbuild";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pack } from "./archive.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = join(here, "dist");
const server = join(dist, "server");

rmSync(dist, { recursive: true, force: true });
mkdirSync(server, { recursive: true });

const { info, version } = await pack(server);
for (const name of ["pyodide.asm.mjs", "pyodide.asm.wasm"]) {
  copyFileSync(join(here, "node_modules/pyodide", name), join(server, name));
}

const virtual = {
  name: "virtual",
  setup(plugin) {
    plugin.onResolve({ filter: /^virtual:/ }, ({ path }) => ({ path, namespace: "virtual" }));
    plugin.onLoad({ filter: /./, namespace: "virtual" }, () => ({ contents: JSON.stringify({ ...info, version }), loader: "json" }));
  },
};
const common = { absWorkingDir: here, bundle: true, minify: true, logLevel: "warning", target: "es2022", plugins: [virtual] };

// Where Pyodide runs in Node it imports what a browser has not.
const NODE_ONLY = ["node:*", "ws"];
await build({ ...common, entryPoints: { worker: "src/server/worker.ts" }, outdir: server, format: "iife", external: NODE_ONLY });
// for tests: the same in Node
await build({ ...common, entryPoints: { start: "src/server/start.ts" }, outdir: join(here, ".cache"), outExtension: { ".js": ".mjs" }, format: "esm", platform: "node", external: NODE_ONLY });
