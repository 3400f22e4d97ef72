"""Loops and the sampler as machine code: a subset of Python, LLVM text, objects on disk."""
