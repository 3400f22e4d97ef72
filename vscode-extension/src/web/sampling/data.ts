/** The data of a program: what the nearest qvr.toml of its folder names, else a file that is chosen. */
import * as vscode from "vscode";
import type { Data, Replies } from "./request";
import type { Sampler } from "./sampler";

const SETTINGS = "qvr.toml";
/** Of all files of data together; a page holds them several times. */
const MOST_BYTES = 50_000_000;
const MOST_FILES = 200;
const NOTHING: Data = { files: {}, main: null, named: {}, columns: {} };

/** The data of a document's program; undefined where nothing was chosen. With `choose`, where its qvr.toml names none, asks for a file. */
export async function dataOf(document: vscode.TextDocument, sampler: Sampler, choose: boolean): Promise<Data | undefined> {
  const settings = await nearest(document.uri);
  const named = await sampler.reply({ named: { text: document.getText(), settings: settings?.text ?? "" } });
  const files = filesOf(named);
  if (settings && files.length > 0) {
    return { main: named.main, named: named.named, columns: named.columns, files: await contents(settings.folder, files) };
  }
  return !named.reads || !choose ? NOTHING : chosen(named.columns);
}

function filesOf({ main, named }: Replies["named"]): string[] {
  return [...new Set([...(main === null ? [] : [main]), ...Object.values(named)])];
}

/** The qvr.toml beside a file, or in the nearest folder above it, up to that of the workspace. */
async function nearest(uri: vscode.Uri): Promise<{ folder: vscode.Uri; text: string } | undefined> {
  const top = vscode.workspace.getWorkspaceFolder(uri)?.uri;
  for (let folder = vscode.Uri.joinPath(uri, ".."); top && folder.path.length >= top.path.length; folder = vscode.Uri.joinPath(folder, "..")) {
    try {
      const content = await vscode.workspace.fs.readFile(vscode.Uri.joinPath(folder, SETTINGS));
      return { folder, text: new TextDecoder().decode(content) };
    } catch {
      // in the folder above, perhaps
    }
    if (folder.path === "/") {
      return undefined;
    }
  }
  return undefined;
}

async function contents(folder: vscode.Uri, names: string[]): Promise<Record<string, string>> {
  let left = MOST_BYTES;
  const found: Record<string, string> = {};
  for (const name of names) {
    const uri = vscode.Uri.joinPath(folder, name);
    const { size } = await vscode.workspace.fs.stat(uri).then(undefined, () => {
      throw new Error(`${name}, which ${SETTINGS} names, is not there`);
    });
    left -= size;
    if (left < 0) {
      throw new Error(`the data are larger than ${MOST_BYTES / 1e6} MB: sample them with QVR on your machine`);
    }
    found[name] = new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  }
  return found;
}

async function chosen(columns: Data["columns"]): Promise<Data | undefined> {
  const files = await vscode.workspace.findFiles("**/*.{csv,tsv,json}", "**/{node_modules,.venv,.qvr,.vscode}/**", MOST_FILES);
  const none = { label: "Nothing: the program declares no data", uri: undefined };
  const items = files.map((uri) => ({ label: vscode.workspace.asRelativePath(uri), uri })).sort((one, other) => one.label.localeCompare(other.label));
  const picked = await vscode.window.showQuickPick([...items, none], { title: "The data of the program", placeHolder: `A file, or name it in ${SETTINGS}` });
  if (!picked?.uri) {
    return picked && NOTHING;
  }
  const name = picked.uri.path.slice(picked.uri.path.lastIndexOf("/") + 1);
  return { main: name, named: {}, columns, files: await contents(vscode.Uri.joinPath(picked.uri, ".."), [name]) };
}
