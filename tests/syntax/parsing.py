"""A whole text, parsed."""

from __future__ import annotations

from qvr_core.syntax.source import Range
from qvr_core.syntax.statements import Document
from qvr_core.syntax.tree.units import Statement, SyntaxProblem


def parse_text(text: str) -> tuple[tuple[Statement, ...], list[tuple[Range, SyntaxProblem]]]:
    """Statements of a text, and every syntax problem with its place.  Never raises, whatever the text."""
    document = Document(text)
    return tuple(document.statements), document.problems()
