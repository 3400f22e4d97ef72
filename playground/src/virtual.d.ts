/** The versions of Python and of its system interface, as Pyodide's lock file names them (build.mjs). */
declare module "virtual:versions" {
  const versions: { abi_version: string; arch: string; platform: string; python: string; version: string };
  export default versions;
}
