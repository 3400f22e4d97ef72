"""Random well-typed programs of statistical steps, checked, run, and compared with an interpreter of the tests' own.

A program is a function of a seed (`writing`).  It is kept as a description (`programs`, `steps`, `expressions`), which
prints itself as a text for the engine under test (`engines`) and is scored one element at a time on Python floats, with
densities that are written down here (`families`) and hidden values summed out by enumeration (`interpreter`).  What
differs is shrunk while it still fails (`shrinking`).

    python -m tests.generator --from 0 --count 1000
"""
