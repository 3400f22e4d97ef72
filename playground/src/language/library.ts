/** Texts that come with the page: examples with their data, and the library that programs import. */
import type { Data } from "../../../vscode-extension/src/web/sampling/request";

export interface Text {
  /** The heading that it stands under, '' for none. */
  group: string;
  name: string;
  /** What it is about, in words. */
  title: string;
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

/** The data of an example, where it has some. */
export async function dataOf({ group, name }: Text): Promise<Data | undefined> {
  data ??= fetch(new URL("data.json", document.baseURI)).then((answer) => answer.json() as Promise<Record<string, Data>>);
  data.catch(() => (data = undefined));
  return (await data)[`${group}/${name}`];
}

let data: Promise<Record<string, Data>> | undefined;

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
