"""Real prose that every machine with Python has: the help topics and docstrings of its library, and of packages.

`python examples/data/prose.py prose.txt numpy scipy` writes the standard library's and those of two installed packages.
Each docstring is one paragraph, a blank line between.  Doctests, tables, lines that are no sentences, and what has
stood in an earlier docstring are left out.  Nothing is imported: docstrings are read off the syntax trees.
"""

from __future__ import annotations

import ast
import re
import sys
import sysconfig
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

SKIPPED = {"site-packages", "test", "tests", "idlelib", "lib2to3", "encodings"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def prose(text: str, seen: set[str]) -> str:
    """What of a text is prose and new: parts without a prompt that are mostly letters and end as sentences do."""
    kept: list[str] = []
    for part in re.split(r"\n[^\S\n]*\n", cleandoc(text)):
        plain = " ".join(part.split())
        letters = sum(character.isalpha() or character.isspace() for character in plain)
        if ">>>" not in plain and letters > 0.85 * len(plain) and re.search(r"[.!?]$", plain):
            if plain not in seen:
                kept.append(plain)
            seen.add(plain)
    return " ".join(kept)


def texts(root: Path, skipped: set[str], seen: set[str]) -> Iterator[str]:
    """The prose of every module below a folder, modules in the order of their names."""
    for file in sorted(root.rglob("*.py")):
        if skipped.isdisjoint(file.relative_to(root).parts):
            for text in texts_of(file):
                yield prose(text, seen)


def texts_of(file: Path) -> Iterator[str]:
    """The docstrings of a module, and the texts of `pydoc`'s topics."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node, clean=False)):
            yield text
        if file.name == "topics.py" and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python prose.py OUTPUT [PACKAGE …]")
    library, installed = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    seen: set[str] = set()
    found = list(texts(library, SKIPPED, seen))
    for package in sys.argv[2:]:
        found += texts(installed / package, SKIPPED, seen)
    Path(sys.argv[1]).write_text("\n\n".join(filter(None, found)) + "\n", encoding="utf-8")
