// Bundles the extension and its webviews into dist/. The graph layout worker is built first and travels as text inside
// the diagram's script: a webview may not fetch anything.
import { build, context } from "esbuild";
import { rmSync } from "node:fs";

const production = process.argv.includes("--production");
const watch = process.argv.includes("--watch");

const common = { bundle: true, minify: production, sourcemap: production ? false : "inline", logLevel: "warning" };

const workerText = {
  name: "worker-text",
  setup(plugin) {
    plugin.onResolve({ filter: /^worker:/ }, (found) => ({
      path: new URL(found.path.slice("worker:".length), `file://${found.resolveDir}/`).pathname,
      namespace: "worker-text",
    }));
    plugin.onLoad({ filter: /.*/, namespace: "worker-text" }, async (found) => {
      const result = await build({ ...common, entryPoints: [found.path], format: "iife", write: false });
      return { contents: result.outputFiles[0].text, loader: "text", watchFiles: [found.path] };
    });
  },
};

const targets = [
  {
    ...common,
    entryPoints: { extension: "src/extension.ts" },
    outdir: "dist",
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["vscode"],
    mainFields: ["module", "main"],
  },
  {
    ...common,
    entryPoints: { extension: "src/web/extension.ts" },
    outdir: "dist/web",
    platform: "browser",
    format: "cjs",
    target: "chrome120",
    external: ["vscode"],
  },
  {
    ...common,
    entryPoints: { diagram: "webviews/diagram/main.ts", run: "webviews/run/main.ts", data: "webviews/data/main.ts", prior: "webviews/prior/main.ts" },
    outdir: "dist/webviews",
    platform: "browser",
    format: "iife",
    target: "chrome120",
    loader: { ".css": "text" },
    plugins: [workerText],
  },
];

rmSync("dist", { recursive: true, force: true });
for (const target of targets) {
  if (watch) {
    await (await context(target)).watch();
  } else {
    await build(target);
  }
}
