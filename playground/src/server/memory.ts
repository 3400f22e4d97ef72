/**
 * The memory of a server that has started and was asked nothing yet, kept in this browser: the next visit goes on from it.
 * One for each build of what the worker loads and each browser; where it is not whole, there is none.
 */
import versions from "virtual:versions";

const STORE = "qvr-server-memory";
const DIGEST = "X-Digest";

const place = (base: string): string => `${base}memory?`;
const address = (base: string): string => `${place(base)}${versions.content}&${encodeURIComponent(navigator.userAgent)}`;

/** What is kept for the server of a folder, to be read once. */
export async function kept(base: string): Promise<(() => Promise<ArrayBuffer>) | undefined> {
  try {
    const found = await (await caches.open(STORE)).match(address(base));
    return found && (() => whole(found));
  } catch {
    return undefined; // a browser that stores nothing
  }
}

export async function keep(base: string, memory: Uint8Array<ArrayBuffer>): Promise<void> {
  const store = await caches.open(STORE);
  await store.put(address(base), new Response(memory, { headers: { [DIGEST]: await digest(memory) } }));
  const old = (await store.keys()).filter(({ url }) => url.startsWith(place(base)) && url !== address(base));
  await Promise.all(old.map((one) => store.delete(one)));
}

export async function forget(base: string): Promise<void> {
  await caches
    .open(STORE)
    .then((store) => store.delete(address(base)))
    .catch(() => false);
}

async function whole(found: Response): Promise<ArrayBuffer> {
  const memory = await found.arrayBuffer();
  if ((await digest(memory)) !== found.headers.get(DIGEST)) {
    throw new Error("the memory that was kept is damaged");
  }
  return memory;
}

async function digest(content: BufferSource): Promise<string> {
  return [...new Uint8Array(await crypto.subtle.digest("SHA-256", content))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
