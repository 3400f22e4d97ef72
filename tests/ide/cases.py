"""Texts with a cursor in them: `$0`, or a selection between `$1` and `$2`."""

from __future__ import annotations

from qvr_core.analysis import Analyzer, Snapshot
from qvr_core.ide.answers import TextEdit
from qvr_core.syntax.source import Cursor, Range, SourceText
from tests.standalone import standalone

LM = """\
#! What the tokens are.
object Token : FinSet 256
object Embedded : Real 64
object Hidden : Real 128
morphism tok_embed : Token -> Embedded [role=embed]
morphism cell : Embedded * Hidden -> Hidden [role=kernel, scale=0.1] ~ Normal
morphism lm_head : Hidden -> Token [role=kernel] ~ Categorical
let backbone = tok_embed >> scan(cell)
"""

PROGRAM = """\
program lm : Token -> Token
    sample h <- backbone
    observe next_token : Token <- lm_head(h)
    return next_token
"""


def at(text: str) -> tuple[Snapshot, Cursor]:
    """The analysis of a text without its mark, and the place of the mark."""
    offset = text.index("$0")
    before = text[:offset]
    cursor = Cursor(before.count("\n"), offset - (before.rfind("\n") + 1))
    return standalone(before + text[offset + 2 :]), cursor


def between(text: str) -> tuple[Snapshot, Range]:
    """The analysis of a text without its marks, and what stood between them."""
    first, _, rest = text.partition("$1")
    inside, _, last = rest.partition("$2")
    snapshot = Analyzer(first + inside + last).snapshot()
    return snapshot, Range(_cursor(first), _cursor(first + inside))


def _cursor(before: str) -> Cursor:
    return Cursor(before.count("\n"), len(before) - (before.rfind("\n") + 1))


def applied(text: str, edits: tuple[TextEdit, ...]) -> str:
    """The text after edits that do not overlap."""
    source = SourceText(text)
    for edit in sorted(edits, key=lambda edit: edit.range, reverse=True):
        source.edit(edit.range.start, edit.range.end, edit.text)
    return source.text


def text_of(snapshot: Snapshot) -> str:
    return "\n".join(snapshot.lines)


def errors(text: str) -> list[tuple[str, str]]:
    """Code and message of everything wrong with a text but for hints."""
    found = Analyzer(text).snapshot().diagnostics()
    return [(item.code.name, item.message) for item in found if item.code.severity.value < 4]
