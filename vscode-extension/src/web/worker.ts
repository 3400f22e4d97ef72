/** Workers of the page, started from the extension's own files: wherever they lie, nothing is fetched from elsewhere. */
import * as vscode from "vscode";

/** What both load (playground/build.mjs); without pydantic, which only runs and their settings need. */
const FILES = ["pyodide.asm.mjs", "pyodide.asm.wasm", "python.zip", "server.zip", "networkx.zip"];

export const SERVER = { script: "worker.js", name: "QVR language server", files: FILES };
export const SAMPLING = { script: "sampling.js", name: "QVR sampling", files: [...FILES, "sampling.zip", "netcdf.js"] };

export async function startWorker(folder: vscode.Uri, wanted: typeof SERVER): Promise<Worker> {
  const read = async (name: string): Promise<ArrayBuffer> => {
    const bytes = await vscode.workspace.fs.readFile(vscode.Uri.joinPath(folder, name));
    return bytes.slice().buffer;
  };
  const [script, ...contents] = await Promise.all([wanted.script, ...wanted.files].map(read));
  const address = URL.createObjectURL(new Blob([script as ArrayBuffer], { type: "text/javascript" }));
  const worker = new Worker(address, { name: wanted.name });
  const files = Object.fromEntries(wanted.files.map((name, index) => [name, contents[index]]));
  worker.postMessage({ start: { files } }, contents);
  return worker;
}
