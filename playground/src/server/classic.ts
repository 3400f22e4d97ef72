/**
 * Pyodide asks for a module worker by trying `importScripts`, and needs nothing of it but `import()`, which classic workers
 * have too.  VS Code for the web starts no other ones.
 */
Object.assign(globalThis, {
  importScripts: () => {
    throw new TypeError("no scripts are imported here");
  },
});
