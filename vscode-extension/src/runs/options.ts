/** Settings of a run as one writes them in a line. */

/** `steps=5000 data="a b"` as an object, or what is wrong with it. */
export function parseOptions(text: string): Record<string, unknown> | string {
  const options: Record<string, unknown> = {};
  const rest = text.replace(/([A-Za-z_]\w*)\s*=\s*("[^"]*"|\S+)/g, (_, key: string, value: string) => {
    const plain = value.startsWith('"') ? value.slice(1, -1) : value;
    options[key] = plain === "true" ? true : plain === "false" ? false : plain !== "" && !Number.isNaN(Number(plain)) ? Number(plain) : plain;
    return "";
  });
  return rest.trim() === "" ? options : `'${rest.trim()}' is not of the form key=value`;
}
