"""Write the words of the language into the files of `editors/`: `python -m scripts.editor_word_lists`.

The queries of Helix and Zed are those of tree-sitter-qvr/, Helix's under the names that its themes know.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.tree_sitter import HIGHLIGHTS
from scripts.vocabulary import ROOT, VOCABULARY, between

EDITORS = ROOT / "editors"
EMACS = EDITORS / "emacs" / "qvr-mode.el"
SUBLIME = EDITORS / "sublime" / "QVR.sublime-syntax"
KATE = EDITORS / "kate" / "qvr.xml"
HELIX = EDITORS / "helix" / "queries"
ZED = EDITORS / "zed" / "languages" / "qvr"

LISTS: Mapping[str, tuple[str, ...]] = {
    "keywords": tuple(dict.fromkeys((*VOCABULARY["statements"], *VOCABULARY["steps"]))),
    "openers": tuple(
        dict.fromkeys((*VOCABULARY["named statements"], *VOCABULARY["named steps"], *VOCABULARY["items"]))
    ),
    "types": VOCABULARY["spaces"],
    "families": VOCABULARY["families"],
    "functions": tuple(dict.fromkeys((*VOCABULARY["builtins"], *VOCABULARY["combinators"]))),
}
"""The words that editors without a parser of ours colour; `openers` only where a line begins with them."""

HELIX_NAMES = {
    "number": "constant.numeric.integer",
    "number.float": "constant.numeric.float",
    "module": "namespace",
    "variable.member": "variable.other.member",
    "keyword.import": "keyword.control.import",
    "keyword.repeat": "keyword.control.repeat",
    "keyword.return": "keyword.control.return",
    "comment.documentation": "comment.line.documentation",
    "type.definition": "type",
    "function.call": "function",
}
"""Captures that the themes of Helix know by another name."""


def emacs(text: str) -> str:
    for title, words in LISTS.items():
        lines = textwrap.wrap(" ".join(f'"{word}"' for word in words), 110, initial_indent="    ")
        text = between(f";; words: {title}\n", "\n;; end", lines, text)
    return text


def sublime(text: str) -> str:
    lines = [f"  {title}: '{'|'.join(words)}'" for title, words in LISTS.items()]
    # `between` strips, and the first line needs its indentation
    return between("variables:\n# words\n", "\n# end", ["x", *lines], text).replace("# words\nx\n", "# words\n")


def kate(text: str) -> str:
    lines: list[str] = []
    for title, words in LISTS.items():
        items = "".join(f"<item>{word}</item>" for word in words if " " not in word)
        lines.append(f'<list name="{title}">{items}</list>')
    return between("<!-- words -->\n", "\n<!-- end -->", lines, text)


def helix(_: str) -> str:
    query = HIGHLIGHTS.read_text(encoding="utf-8")
    return re.sub(r"@([\w.]+\w)", lambda name: f"@{HELIX_NAMES.get(name[1], name[1])}", query)


def copied(name: str) -> Callable[[str], str]:
    return lambda _: HIGHLIGHTS.with_name(name).read_text(encoding="utf-8")


FILES: Mapping[Path, Callable[[str], str]] = {
    EMACS: emacs,
    SUBLIME: sublime,
    KATE: kate,
    HELIX / "highlights.scm": helix,
    HELIX / "locals.scm": copied("locals.scm"),
    ZED / "highlights.scm": copied("highlights.scm"),
}


def fresh(path: Path) -> str:
    """A file as it should be."""
    return FILES[path](path.read_text(encoding="utf-8") if path.exists() else "")


if __name__ == "__main__":
    for file in FILES:
        file.parent.mkdir(exist_ok=True)
        file.write_text(fresh(file), encoding="utf-8")
