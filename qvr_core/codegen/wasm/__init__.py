"""WebAssembly from the same functions of the subset: for pages, which have no LLVM."""
