/** The server's worker, started from the extension's own files: wherever they lie, nothing is fetched from elsewhere. */
import * as vscode from "vscode";

/** What the worker loads (playground/build.mjs); without pydantic, which only runs and their settings need. */
const FILES = ["pyodide.asm.mjs", "pyodide.asm.wasm", "python.zip", "server.zip", "networkx.zip"];

export async function startWorker(folder: vscode.Uri): Promise<Worker> {
  const read = async (name: string): Promise<ArrayBuffer> => {
    const bytes = await vscode.workspace.fs.readFile(vscode.Uri.joinPath(folder, name));
    return bytes.slice().buffer;
  };
  const [script, ...contents] = await Promise.all(["worker.js", ...FILES].map(read));
  const address = URL.createObjectURL(new Blob([script as ArrayBuffer], { type: "text/javascript" }));
  const worker = new Worker(address, { name: "QVR language server" });
  const files = Object.fromEntries(FILES.map((name, index) => [name, contents[index]]));
  worker.postMessage({ start: { files } }, contents);
  return worker;
}
