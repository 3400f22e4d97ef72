/** The archives of the build (archive.py): zip files in which nothing is compressed, so that each file is a piece of the whole. */

const END = 0x06054b50;
const END_SIZE = 22;

/** The files of an archive by their paths; none is copied. */
export function* filesIn(archive: ArrayBuffer): Generator<[path: string, content: Uint8Array]> {
  const view = new DataView(archive);
  const end = archive.byteLength - END_SIZE;
  if (end < 0 || view.getUint32(end, true) !== END) {
    throw new Error("an archive of the server is not whole");
  }
  const count = view.getUint16(end + 10, true);
  let entry = view.getUint32(end + 16, true);
  for (let number = 0; number < count; number += 1) {
    const size = view.getUint32(entry + 24, true);
    const [name, extra, comment] = [28, 30, 32].map((field) => view.getUint16(entry + field, true)) as [number, number, number];
    const local = view.getUint32(entry + 42, true);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    yield [new TextDecoder().decode(new Uint8Array(archive, entry + 46, name)), new Uint8Array(archive, start, size)];
    entry += 46 + name + extra + comment;
  }
}
