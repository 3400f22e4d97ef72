/** A program in the address of the page: after `#`, so that it is never sent anywhere. */
const START = "#code=";

/** No link is read that holds more. */
export const MOST = 2_000_000;

export async function linkTo(text: string, page: string): Promise<string> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let letters = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    letters += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  const code = btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return `${page.split("#")[0]}${START}${code}`;
}

/** The program of an address; null where it holds none.  Raises an error with a sentence where it is broken. */
export async function programIn(hash: string): Promise<string | null> {
  if (!hash.startsWith(START)) {
    return null;
  }
  try {
    const letters = atob(hash.slice(START.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    return await unpacked(bytes);
  } catch (error) {
    if (error instanceof TooLong) {
      throw error;
    }
    throw new Error("The link is broken: part of it is missing or changed. Ask for it again; your own text is kept.");
  }
}

class TooLong extends Error {}

async function unpacked(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    size += next.value.length;
    if (size > MOST) {
      void reader.cancel();
      throw new TooLong(`The link holds more than ${MOST / 1e6} MB of text and is not opened.`);
    }
    parts.push(next.value as Uint8Array<ArrayBuffer>);
  }
  return new TextDecoder("utf-8", { fatal: true }).decode(await new Blob(parts).arrayBuffer());
}
