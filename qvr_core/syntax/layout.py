"""Physical lines -> logical lines: what a line looks like, and whether it continues the line before.

A line's shape depends on its own text only and is cached by it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

TAB_WIDTH = 4

STATEMENT_WORDS = (
    *("object", "morphism", "let", "define", "program", "export", "composition", "deduction"),
    *("def", "family", "transformation", "data type", "encoder", "decoder", "import", "from"),
)
STEP_WORDS = ("data", "param", "sample", "observe", "predict", "marginalize", "let", "score", "return")
ITEM_WORDS = ("atoms", "binders", "rule", "lexicon")
# Opens a data type; with `:` or `,` behind it, `type` is what a line of a program calls its data.
_DATA_TYPE = re.compile(r"data[ \t]+type(?!\w)(?![ \t]*[,:])")
# Kinds of blocks that are made of rules, `name(…) = …`.
RULES = ("composition", "family")

_INDENT = re.compile("\ufeff?[ \t\f\v\u00a0]*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PIECES = re.compile(r"""("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*')|(\#\[)|(\#)|([(\[{])|([)\]}])""")
# An operator after or before which a newline does not end a statement, and what asks for more only by indentation.
_TRAILS = re.compile(r"(?:>>|\|-|⊢|[@+\-*/~=<>^|])$|(?:<-|->)$")
_TRAILS_SOFTLY = re.compile(r"(?:[,:]|\bfactor\b.*\bin)$")
_LEADS = re.compile(r">>|->|<-|⊢|[@+\-*/~=^<>|]|!=|[)\]}]")
_LEADS_SOFTLY = re.compile(r"[\[.,:](?![0-9])")
# Lines that no line with `from` goes on with: it gives the first elements of a step.
NEVER_CHAINED = frozenset({*STATEMENT_WORDS, "data", "param", "score", "return"} - {"let"})
# Words that open a line and are names elsewhere, each with what must follow where a bracket is open.
UNRESERVED = {
    "data": r"[ \t]+[A-Za-z_]\w*[ \t]*[,:]",
    "param": r"[ \t]+[A-Za-z_]\w*[ \t]*[,:]",
    "predict": r"[ \t]+[A-Za-z_]\w*[ \t]*(?:[:\[~]|<-)",
    "def": r"[ \t]+[A-Za-z_]\w*[ \t]*\(",
    "family": r"[ \t]+[A-Za-z_]\w*[ \t]*\(",
    "transformation": r"[ \t]+[A-Za-z_]\w*[ \t]*[,:]",
    "encoder": r"[ \t]+[A-Za-z_]\w*[ \t]*[,:]",
    "decoder": r"[ \t]+[A-Za-z_]\w*[ \t]*[,:]",
    "import": r'[ \t]+"',
    "from": r'[ \t]+"[^"]*"[ \t]*import\b',
}
_RESERVED = [word for word in dict.fromkeys(STEP_WORDS + STATEMENT_WORDS) if word not in UNRESERVED]
# A line that certainly starts something of its own, even while a bracket is open.
_OPENER = re.compile(
    "|".join(
        [
            rf"(?:{'|'.join(_RESERVED)})(?:[ \t]+[^\s=,)\]}}]|[ \t]*$)",
            *[word + behind for word, behind in UNRESERVED.items()],
        ]
    )
)
# The end of a line of a family's header that awaits the type.
_AWAITS_TYPE = re.compile(r"\)[ \t]*:$")
_ITEM_OPENER = re.compile(rf'(?:{"|".join(ITEM_WORDS)})\b|"')
_RULE_OPENER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[ \t]*(?:\([A-Za-z0-9_, \t]*\))?[ \t]*=(?!=)")


class LineShape(NamedTuple):
    """What the cutter needs to know of a line.  `code` is false for blank lines and comments."""

    code: bool
    comment: bool
    column: int
    """Where the first token starts."""
    width: int
    """The indentation's width; a tab reaches to the next multiple of four."""
    tabs: bool
    end: int
    """Where the last token ends."""
    word: str
    """The first word, '' where the line starts with something else; `data type` is one."""
    closes: int
    opens: int
    """Brackets closed that the line did not open, and brackets left open."""
    attribute_opens: int
    """Brackets left open if `#[` opens one, as it does in a deduction."""
    attribute_end: int
    """Where the last token ends if `#[` opens an attribute."""


@lru_cache(maxsize=16384)
def shape(line: str) -> LineShape:
    """The shape of a line."""
    column = _INDENT.match(line).end()  # pyright: ignore[reportOptionalMemberAccess]
    indent = line[:column].removeprefix("\ufeff")
    rest = line[column:]
    if not rest or rest[0] == "#":
        return LineShape(False, bool(rest), column, len(indent), "\t" in indent, column, "", 0, 0, 0, column)
    word = _WORD.match(rest)
    first = "data type" if _DATA_TYPE.match(rest) else word[0] if word else ""
    end, closes, opens, attribute_opens = len(line), 0, 0, 0
    in_attribute = False
    for match in _PIECES.finditer(line, column):
        which = match.lastindex
        if which == 2 and not in_attribute:
            end, in_attribute = match.start(), True
            attribute_opens = opens + 1
        elif which in (2, 3):
            if not in_attribute:
                end = match.start()
            break
        elif which == 4:
            if in_attribute:
                attribute_opens += 1
            else:
                opens += 1
        elif which == 5:
            if in_attribute:
                attribute_opens = max(attribute_opens - 1, 0)
            elif opens:
                opens -= 1
            else:
                closes += 1
    width = len(indent.expandtabs(TAB_WIDTH)) if "\t" in indent else len(indent)
    code_end = len(line[:end].rstrip())
    attribute_end = _attribute_end(line, end) if in_attribute else code_end
    if not in_attribute:
        attribute_opens = opens
    return LineShape(
        True, False, column, width, "\t" in indent, code_end, first, closes, opens,
        attribute_opens, attribute_end,
    )  # fmt: skip


def _attribute_end(line: str, start: int) -> int:
    """Where the code of a line ends whose attribute bracket opens at `start`."""
    for match in _PIECES.finditer(line, start + 2):
        if match.lastindex in (2, 3):
            return len(line[: match.start()].rstrip())
    return len(line.rstrip())


@dataclass(slots=True)
class Logical:
    """Lines `first` … `last` hold one unit of code."""

    first: int
    last: int
    shape: LineShape


def code_end(line: str, deduction: bool) -> int:
    found = shape(line)
    return found.attribute_end if deduction else found.end


def next_code(lines: Sequence[str], i: int) -> int:
    """The first line from `i` on that holds code; `len(lines)` if there is none."""
    while i < len(lines) and not shape(lines[i]).code:
        i += 1
    return i


def logical_line(lines: Sequence[str], first: int, kind: str) -> Logical:
    """The logical line that starts at `first`, in a block of `kind`: 'program', 'deduction' or one of `RULES`."""
    start = shape(lines[first])
    deduction = kind == "deduction"
    depth = start.attribute_opens if deduction else start.opens
    last = first
    i = first + 1
    while i < len(lines):
        found = shape(lines[i])
        if not found.code:
            i += 1
            continue
        if found.width == 0 and found.word:
            break
        if not _continues(lines, start, last, i, depth, kind):
            break
        depth = max(depth - found.closes, 0) + (found.attribute_opens if deduction else found.opens)
        last = i
        i += 1
    return Logical(first, last, start)


def _continues(lines: Sequence[str], start: LineShape, last: int, i: int, depth: int, kind: str) -> bool:
    """Whether line `i` goes on with the code that begins with `start` and ends in line `last`."""
    found = shape(lines[i])
    line = lines[i]
    deeper = found.width > start.width
    if found.word and _opens(line, found, kind, deeper):
        return False
    if not found.word and kind == "deduction" and line.startswith('"', found.column):
        return False
    if depth:
        return True
    if kind in RULES and not deeper and not _LEADS.match(line, found.column):
        return False
    if _LEADS.match(line, found.column):
        return True
    before = lines[last][: code_end(lines[last], kind == "deduction")]
    if _TRAILS.search(before):
        return True
    if found.word == "from" and kind == "program" and start.word not in NEVER_CHAINED:
        return True
    return deeper and bool(_LEADS_SOFTLY.match(line, found.column) or _trails_softly(before, start.word, kind))


def _trails_softly(before: str, word: str, kind: str) -> bool:
    found = _TRAILS_SOFTLY.search(before)
    # The colon at the end of a header is a mistake; that of `program p :` awaits the type.
    if word == "family":
        mistake = _AWAITS_TYPE.search(before) is None
    elif word == "def":
        mistake = True
    else:
        mistake = kind in RULES or (kind != "statement" and "->" in before)
    return found is not None and not (found[0] == ":" and mistake)


def _opens(line: str, found: LineShape, kind: str, deeper: bool) -> bool:
    if kind == "deduction":
        return _ITEM_OPENER.match(line, found.column) is not None
    if kind in RULES and not deeper and _RULE_OPENER.match(line, found.column):
        return True
    return _OPENER.match(line, found.column) is not None


def line_of_family(word: str) -> str:
    """The start symbol of a line of a family's body by its first word: a `let` or another step, or a formula."""
    return "step" if word in STEP_WORDS and word not in UNRESERVED else "composition_rule"


def gives_value(text: str) -> bool:
    """Whether a `def` says on its own line what it gives, by an `=` outside of its parentheses."""
    depth = 0
    for piece in _VALUE_PIECES.finditer(text):
        depth += (piece.lastgroup == "opens") - (piece.lastgroup == "closes")
        if depth <= 0 and piece.lastgroup == "equal":
            return True
    return False


_VALUE_PIECES = re.compile(
    r"""(?P<skipped>"(?:\\.|[^"\\\n])*"?|\#[^\n]*|[=<>!]=)|(?P<opens>[(\[{])|(?P<closes>[)\]}])|(?P<equal>=)"""
)
