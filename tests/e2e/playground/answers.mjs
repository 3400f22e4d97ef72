/** What the server in WebAssembly, started from a memory that was kept, says of texts: a JSON list of them in, a JSON list of answers out. */
import { readFileSync } from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { memoryOf, start } from "../../../playground/.cache/start.mjs";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");
const { texts, methods } = JSON.parse(readFileSync(0, "utf8"));
const waiting = new Map();
let published;

const wanted = {
  base: path.join(ROOT, "playground/dist/server/"),
  settings: false,
  end: () => undefined,
  loading: () => undefined,
  read: async (name) => new Uint8Array(readFileSync(name)).buffer,
  readNow: (name) => new Uint8Array(readFileSync(name)).buffer,
};
// as every visit after the first does
const memory = memoryOf(wanted).then(({ buffer }) => buffer);
const receive = await start({
  ...wanted,
  memory,
  send: (text) => {
    const message = JSON.parse(text);
    if (message.method === "textDocument/publishDiagnostics") {
      published(message.params.diagnostics);
    } else if (message.method === undefined) {
      waiting.get(message.id)(message.error ?? message.result);
    }
  },
});

let count = 0;
const tell = (method, params) => receive(JSON.stringify({ jsonrpc: "2.0", method, params }));
const ask = (method, params) =>
  new Promise((resolve) => {
    waiting.set(++count, resolve);
    receive(JSON.stringify({ jsonrpc: "2.0", id: count, method, params }));
  });

await ask("initialize", { capabilities: {}, initializationOptions: { codeLens: { enable: false } } });
tell("initialized", {});
const answers = [];
for (const [number, text] of texts.entries()) {
  const uri = `playground:/text${number}.qvr`;
  const diagnostics = new Promise((resolve) => (published = resolve));
  tell("textDocument/didOpen", { textDocument: { uri, languageId: "qvr", version: 1, text } });
  const found = { diagnostics: await diagnostics };
  for (const [method, params] of Object.entries(methods)) {
    found[method] = await ask(method, { textDocument: { uri }, ...params });
  }
  answers.push(found);
  published = () => undefined;
  tell("textDocument/didClose", { textDocument: { uri } });
}
process.stdout.write(JSON.stringify(answers), () => process.exit(0));
