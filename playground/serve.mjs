/** Serves a folder as a static host does: compressed once when it starts, and counts what goes over the wire. */
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css",
  ".json": "application/json", ".wasm": "application/wasm", ".zip": "application/zip", ".ttf": "font/ttf",
}; // prettier-ignore

const entry = (body) => ({ body, packed: {}, tag: `"${createHash("sha256").update(body).digest("hex").slice(0, 16)}"` });

/** Serve `folder` on a free port; `quality` of brotli, 0 for gzip alone. */
export async function serve(folder, { port = 0, quality = 9 } = {}) {
  const files = new Map();
  for (const name of readdirSync(folder, { recursive: true })) {
    if (statSync(join(folder, name)).isFile()) {
      files.set(`/${name}`, entry(readFileSync(join(folder, name))));
    }
  }
  files.set("/", files.get("/index.html"));
  let sent = 0;
  const pack = (file, encoding) =>
    (file.packed[encoding] ??=
      encoding === "br"
        ? brotliCompressSync(file.body, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } })
        : gzipSync(file.body, { level: 9 }));
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://here").pathname);
    const file = files.get(path);
    if (!file) {
      response.writeHead(404).end("not found");
      return;
    }
    if (request.headers["if-none-match"] === file.tag) {
      response.writeHead(304, { etag: file.tag }).end();
      return;
    }
    const accepted = String(request.headers["accept-encoding"] ?? "");
    const encoding = quality && /\bbr\b/.test(accepted) ? "br" : /\bgzip\b/.test(accepted) ? "gzip" : "";
    const body = encoding ? pack(file, encoding) : file.body;
    sent += body.length;
    const type = TYPES[path === "/" ? ".html" : extname(path)] ?? "application/octet-stream";
    response.writeHead(200, { "content-type": type, "content-length": body.length, "cache-control": "no-cache", etag: file.tag, ...(encoding ? { "content-encoding": encoding } : {}) });
    response.end(body);
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    address: `http://127.0.0.1:${server.address().port}/`,
    /** Bytes of bodies sent since the last call. */
    taken: () => [sent, (sent = 0)][0],
    /** Compress everything beforehand, so that no start waits for it. */
    warm: (encoding) => files.forEach((file) => pack(file, encoding)),
    stop: () => new Promise((resolve) => (server.closeAllConnections(), server.close(resolve))),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { address } = await serve(fileURLToPath(new URL("dist", import.meta.url)), { port: 8000, quality: 0 });
  console.log(address);
}
