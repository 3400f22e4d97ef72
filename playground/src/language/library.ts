/** Texts that come with the page: examples, and the library that programs import. */
export interface Text {
  /** The heading that it stands under, '' for none. */
  group: string;
  name: string;
  text: string;
}

let known: Promise<Text[]> | undefined;

export function texts(): Promise<Text[]> {
  known ??= fetch(new URL("examples.json", document.baseURI)).then((answer) => {
    if (!answer.ok) {
      throw new Error(`the examples could not be loaded (${answer.status})`);
    }
    return answer.json() as Promise<Text[]>;
  });
  known.catch(() => (known = undefined));
  return known;
}

const LIBRARY = /\/qvr_core\/(std\/[^"/]+\.qvr)$/;

/** The file of the library that an address in the server's file system names, as imports write it. */
export function libraryFile(uri: string): string | undefined {
  return LIBRARY.exec(uri)?.[1];
}

/** The addresses of library files in a message. */
export function librariesIn(value: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(value)) {
    value.forEach((item) => librariesIn(item, found));
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      if ((key === "uri" || key === "targetUri") && typeof item === "string" && libraryFile(item)) {
        found.add(item);
      } else {
        librariesIn(item, found);
      }
    }
  }
  return found;
}
