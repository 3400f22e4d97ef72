/**
 * Names of documents for a server in a worker.  It has no files, but knows how programs import one another by file names: so
 * a document of any scheme is called like a file, and is itself again on the way back.
 */

/** The parts of a URI. */
export interface Parts {
  scheme: string;
  authority: string;
  path: string;
}

const MARK = "/qvr-web/";
/** Documents without a place of their own keep their names. */
const PLACELESS = ["untitled", "vscode-notebook-cell"];

/** The parts as the server is to see them. */
export function toServer({ scheme, authority, path }: Parts): Parts {
  if (PLACELESS.includes(scheme)) {
    return { scheme, authority, path };
  }
  return { scheme: "file", authority: "", path: `${MARK}${scheme}/${encodeURIComponent(authority)}${path}` };
}

/** And back; what `toServer` has not made stays as it is. */
export function fromServer(parts: Parts): Parts {
  if (parts.scheme !== "file" || !parts.path.startsWith(MARK)) {
    return parts;
  }
  const [scheme = "", authority = "", ...rest] = parts.path.slice(MARK.length).split("/");
  return { scheme, authority: decodeURIComponent(authority), path: `/${rest.join("/")}` };
}
