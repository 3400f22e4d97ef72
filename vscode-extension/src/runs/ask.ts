/** The question before a first run: on which data? Answered once, remembered in qvr.toml. */
import * as path from "node:path";
import * as vscode from "vscode";
import type { DataPreviews } from "../data/panel";
import type { Server } from "../client";
import { RUN_DATA, type RunData, type RunDataParams, type RunRequest } from "../protocol";
import { parseOptions } from "./options";
import { MOST_DRAWS, drawsOf } from "./words";
import { rememberData } from "./settings";

interface Source {
  label: string;
  detail: string;
  source: string;
  extensions?: string[];
}

const SYNTHETIC: Source = { label: "$(beaker) Synthetic data", detail: "Drawn from the program itself under a fixed seed", source: "synthetic" };
const SOURCES: Source[] = [
  { label: "$(book) Text file…", detail: "Any file as bytes, in windows; held-out bits per byte at the end", source: "text" },
  { label: "$(table) CSV file…", detail: "Columns become data and observed sites", source: "csv", extensions: ["csv", "tsv"] },
  { label: "$(table) Parquet file…", detail: "Columns become data and observed sites", source: "parquet", extensions: ["parquet"] },
  { label: "$(json) NDJSON file…", detail: "One JSON object a line", source: "ndjson", extensions: ["ndjson", "jsonl"] },
  { label: "$(database) NumPy archive…", detail: "Named arrays", source: "npz", extensions: ["npz"] },
];

/** Sources that are tables, which are shown before anything runs. */
const TABLES = ["csv", "parquet", "ndjson", "npz"];

/** `request` with its program and its data; undefined where the user closed the question. The server says what qvr.toml has. */
export async function withData(request: RunRequest, server: Server, previews: DataPreviews): Promise<RunRequest | undefined> {
  if (request.options?.["data"] !== undefined) {
    return request;
  }
  const uri = vscode.Uri.parse(request.uri);
  const params: RunDataParams = { textDocument: { uri: request.uri }, program: request.program };
  const client = await server.running();
  const found = await client?.sendRequest<RunData>(RUN_DATA, params);
  if (!found?.program || found.data !== null) {
    return found?.program ? { ...request, program: found.program } : request;
  }
  const { program } = found;
  const settings = found.settings ? vscode.Uri.parse(found.settings) : beside(uri);
  const data = await askData(uri, found, program, settings, previews);
  if (data === undefined) {
    return undefined;
  }
  if (settings) {
    const text = rememberData(await read(settings), program, data);
    await vscode.workspace.fs.writeFile(settings, new TextEncoder().encode(text));
  }
  return { ...request, program, options: { ...request.options, data } };
}

/** Data that the user has chosen, and of a table has seen; undefined where the question was closed. */
async function askData(uri: vscode.Uri, { declared }: RunData, program: string, settings: vscode.Uri | undefined, previews: DataPreviews): Promise<string | undefined> {
  for (;;) {
    const data = await chooseData(program, settings, declared);
    if (data === undefined || !TABLES.some((source) => data.startsWith(`${source}:`)) || uri.scheme !== "file") {
      return data;
    }
    const choice = await previews.show(uri, program, data, true);
    if (choice !== "other") {
      return choice === "use" ? data : undefined;
    }
  }
}

/** The first source is the one that Enter takes: made-up data only where the program asks for none. */
async function chooseData(program: string, settings: vscode.Uri | undefined, declared: boolean): Promise<string | undefined> {
  const picked = await vscode.window.showQuickPick(declared ? [...tablesFirst(), SYNTHETIC] : [SYNTHETIC, ...SOURCES], {
    title: `Data for ${program}`,
    placeHolder: settings ? "Remembered in qvr.toml" : "Where does the data come from?",
    matchOnDetail: true,
  });
  if (!picked || picked.source === "synthetic") {
    return picked?.source;
  }
  const files = await vscode.window.showOpenDialog({
    title: `${picked.source} data for ${program}`,
    openLabel: "Use",
    ...(picked.extensions ? { filters: { [picked.source]: picked.extensions, "All files": ["*"] } } : {}),
    ...(settings ? { defaultUri: vscode.Uri.joinPath(settings, "..") } : {}),
  });
  const file = files?.[0];
  if (!file) {
    return undefined;
  }
  const folder = settings ? path.dirname(settings.fsPath) : undefined;
  const inside = folder !== undefined && !path.relative(folder, file.fsPath).startsWith("..");
  return `${picked.source}:${inside ? path.relative(folder, file.fsPath) : file.fsPath}`;
}

/** The tables before the text. */
function tablesFirst(): Source[] {
  return [...SOURCES.filter(({ source }) => TABLES.includes(source)), ...SOURCES.filter(({ source }) => !TABLES.includes(source))];
}

/** The qvr.toml that is to be written where there is none: in the workspace's folder, and none for a file without a folder. */
function beside(document: vscode.Uri): vscode.Uri | undefined {
  const folder = vscode.workspace.getWorkspaceFolder(document);
  return folder ? vscode.Uri.joinPath(folder.uri, "qvr.toml") : undefined;
}

async function read(file: vscode.Uri): Promise<string> {
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(file));
  } catch {
    return "";
  }
}

const CHANGEABLE = ["steps", "learning_rate", "batch_size", "particles", "seed", "warmup", "samples", "chains"];

/** Settings of a further run, as `key=value` pairs; undefined where the user closed the question. */
export async function askOptions(algorithm: string): Promise<Record<string, unknown> | undefined> {
  const text = await vscode.window.showInputBox({
    title: "Run again with other settings",
    prompt: `key=value pairs, such as ${algorithm === "nuts" ? "warmup=200 samples=500" : "steps=5000 learning_rate=0.003"}. Keys: ${CHANGEABLE.join(", ")}, and all others of qvr.toml.`,
    validateInput: (value) => (typeof parseOptions(value) === "string" ? (parseOptions(value) as string) : undefined),
  });
  const options = text === undefined ? undefined : parseOptions(text);
  return typeof options === "string" ? undefined : options;
}

/** How many more draws each chain shall make; undefined where the user closed the question. */
export async function askDraws(now: number | undefined): Promise<number | undefined> {
  const text = await vscode.window.showInputBox({
    title: "More draws",
    prompt: "How many more draws shall each chain make? The chains go on where they ended; the draws so far are kept.",
    value: String(now ?? 1000),
    validateInput: (value) => (drawsOf(value) === undefined ? `a whole number from 1 to ${MOST_DRAWS.toLocaleString("en-US")}` : undefined),
  });
  return text === undefined ? undefined : drawsOf(text);
}
