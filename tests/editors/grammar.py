"""The tree-sitter grammar as a compiled library, and the texts that its tests share."""

from __future__ import annotations

import ctypes
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tree_sitter import Language, Node, Tree

from qvr_core.syntax.mistakes.openers import LOOPS
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor
from qvr_core.syntax.statements import Document
from tests.spec.cases import Case, read_cases
from tests.syntax import samples

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tree-sitter-qvr"
QUERIES = FOLDER / "queries"

Place = tuple[int, int]
Unit = tuple[Place, Place]


def compiled(folder: Path) -> Language:
    """The grammar, compiled into `folder`."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        pytest.skip("no C compiler: what tree-sitter reads by is C")
    library = folder / "qvr.so"
    sources = [FOLDER / "src" / "parser.c", FOLDER / "src" / "scanner.c"]
    flags = ["-O1", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-I", FOLDER / "src", *sources, "-o", library], check=True)
    function = ctypes.CDLL(str(library)).tree_sitter_qvr
    function.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype = ctypes.py_object
    capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return Language(capsule(function(), b"tree_sitter.Language", None))


def cases() -> Iterator[Case]:
    """Every block of the spec and of the pages of the diagnostics."""
    for folder in (ROOT / "tests" / "spec", ROOT / "docs" / "diagnostics"):
        for path in sorted(folder.rglob("*.md")):
            yield from read_cases(path)


def programs() -> dict[str, str]:
    """Whole files: the examples, the library, and the samples of the tests."""
    paths = [
        path for folder in ("examples", "qvr_core/std", "tests") for path in sorted((ROOT / folder).rglob("?*.qvr"))
    ]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}
    return texts | {name: text for name, text in vars(samples).items() if name.isupper() and isinstance(text, str)}


# ---------------------------------------------------------------- what a text is made of


def statements_of_ours(text: str) -> list[tuple[int, int, list[Unit]]]:
    """The first line of each statement, the line behind it, and where its lines of code begin and end."""
    document = Document(text)
    found: list[tuple[int, int, list[Unit]]] = []
    for statement in document.statements:
        first = document.start_line(statement.header.uid)
        units: list[Unit] = []
        for placed in units_of(statement):
            *above, last = placed.unit.text.split("\n")
            start = (first + placed.line, placed.column)
            units.append((start, (start[0] + len(above), len(last) + (0 if above else placed.column))))
        found.append((first, document.end_line(statement.header.uid), sorted(units)))
    return found


def statements_of_tree(tree: Tree, text: str) -> list[tuple[int, int, list[Unit]]]:
    """The same, as the nodes of tree-sitter have it."""
    lines = [line.encode() for line in text.split("\n")]

    def place(row: int, column: int) -> Place:
        return row, len(lines[row][:column].decode())

    found: list[tuple[int, int, list[Unit]]] = []
    for statement in tree.root_node.children:
        if statement.type == "comment":
            continue
        units: list[Unit] = []
        pending = [statement]
        while pending:
            above = pending.pop()
            loop = False
            for child in above.children:
                if child.type == "block":
                    # below the loop of another language nothing is a line of ours
                    pending += [] if loop else [child]
                elif child.type != "comment":
                    word = re.match(rb"\w*", child.text or b"")
                    loop = above is not statement and word is not None and word[0].decode() in LOOPS
                    units.append((place(*child.start_point), place(*child.end_point)))
        found.append((statement.start_point.row, statement.end_point.row + 1, sorted(units)))
    return found


def unread(tree: Tree) -> list[Node]:
    """The nodes of what the grammar cannot read."""
    found: list[Node] = []
    pending = [tree.root_node]
    while pending:
        node = pending.pop()
        if node.type in ("damaged", "ERROR") or node.is_missing:
            found.append(node)
        pending += node.children
    return found


# ---------------------------------------------------------------- edits

PIECES = (
    *(
        "\n",
        "\n",
        "\n    ",
        "\n        ",
        "  ",
        "    ",
        " ",
        "\t",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "#",
        "#[",
        '"',
        "'",
        "\\",
    ),
    *(",", ":", "=", "==", "->", "<-", ">>", "@", "+", "-", "*", "~", "|-", ".", "1", ".5", "x", "é", "⊢", "→"),
    *("from ", "let ", "sample ", "observe ", "predict ", "data ", "factor ", "in", "for ", "if ", "object ", "rule "),
    *("program p : A -> B", "return x", "marginalize z : K <- C(a)", "deduction d : A -> B", "lexicon", "atoms "),
    *("def f(x)", "def f(x) = x", "family F(a) :", "composition c", 'import "x"', 'from "x" import a', "f(x) = 2"),
)


def edited(chance: random.Random, text: str) -> tuple[str, list[tuple[Cursor, Cursor, str]]]:
    """A text after one to three edits, with the edits."""
    document = Document(text)
    edits: list[tuple[Cursor, Cursor, str]] = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        row = chance.randrange(len(document.lines))
        column = chance.randrange(len(document.lines[row]) + 1)
        start = end = Cursor(row, column)
        piece = chance.choice(PIECES)
        match chance.randrange(6):
            case 0:
                end, piece = Cursor(row, column + chance.choice((1, 1, 2, 3, 5, 10))), ""
            case 1:
                end, piece = Cursor(row + chance.choice((1, 1, 2)), chance.randrange(8)), ""
            case 2:
                start = end = Cursor(row, 0)
                piece = document.lines[chance.randrange(len(document.lines))] + "\n"
            case 3:
                line = document.lines[row]
                start, end = Cursor(row, 0), Cursor(row, len(line))
                piece = chance.choice((line.lstrip(), "  " + line))
            case _:
                end = Cursor(row, column + chance.choice((0, 0, 0, 1, 2)))
        edits.append((document.source.clamp(start), document.source.clamp(end), piece))
        document.edit(start, end, piece)
    return document.text, edits
