"""Whether the lines typed so far ask for more: an open bracket, an operator at the end, a block without its end."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.syntax.cutter import INDENT, Extent, extent
from qvr_core.syntax.layout import STATEMENT_WORDS, STEP_WORDS, UNRESERVED, LineShape, logical_line, next_code, shape


def declares(line: str) -> bool:
    """Whether a line begins as a declaration, or as a step, whose place the checker tells; else it is an expression."""
    found = shape(line)
    if found.word in UNRESERVED:
        # a word that may be a name, too
        rest = line[found.column + len(found.word) :].lstrip()
        return rest[:1].isidentifier() or rest[:1] == '"'
    return found.word in STATEMENT_WORDS or found.word in STEP_WORDS


def last_statement(lines: Sequence[str]) -> Extent | None:
    """The last statement that begins in some lines; None where there is no code."""
    at, found = next_code(lines, 0), None
    while at < len(lines):
        found = extent(lines, at)
        at = next_code(lines, max(found.end, at + 1))
    return found


def unfinished(lines: Sequence[str], *, blank_ends: bool) -> bool:
    """Whether more lines belong to these.  At a prompt an empty line ends whatever is open; in a file it ends nothing
    that has to go on."""
    if not lines or (blank_ends and not lines[-1].strip()):
        return False
    found = last_statement(lines)
    if found is None:
        return any(line.strip() for line in lines)  # a comment, which is about what follows it
    if _unindented(lines):
        return True
    return _joins(lines, found) or (found.kind not in ("statement", "unknown") and not _returned(found))


def indentation(lines: Sequence[str]) -> int:
    """How far the line behind these is indented: as the line before, deeper where that opens a block or goes on."""
    found = last_statement(lines)
    if found is None:
        return 0
    last = found.lines[-1]
    opens = last.shape.word == "marginalize" or (len(found.lines) == 1 and found.kind not in ("statement", "unknown"))
    return last.shape.width + (len(INDENT) if opens or _joins(lines, found) else 0)


def _joins(lines: Sequence[str], found: Extent) -> bool:
    """Whether the last line of a statement goes on in the next one: a bracket is open, or an operator ends it."""
    last = found.lines[-1]
    more = [*lines[: found.end], " " * (last.shape.width + 1) + "x"]
    return logical_line(more, last.first, found.kind).last >= found.end


def goes_on(lines: Sequence[str], line: str) -> bool:
    """Whether one more line of a file belongs to the statement that these end with."""
    before, found = last_statement(lines), shape(line)
    if before is None or not found.code:
        return True
    if found.word in STEP_WORDS and (_unindented(lines) or _header_alone(lines)):
        return True
    after = last_statement([*lines, line])
    return after is None or after.lines[0].first == before.lines[0].first


def _returned(found: Extent) -> bool:
    """Whether a program has said what it returns, which ends it."""
    return len(found.lines) > 1 and found.lines[-1].shape.word == "return"


def _unindented(lines: Sequence[str]) -> bool:
    """Whether these are a program whose body is not indented, and that has not returned yet."""
    steps = _body(lines)
    if not steps or steps[0].width or steps[0].word not in STEP_WORDS:
        return False
    return not any(one.word == "return" for one in steps)


def _header_alone(lines: Sequence[str]) -> bool:
    return _body(lines) == []


def _body(lines: Sequence[str]) -> list[LineShape] | None:
    """The lines behind the header of a program; None where these are none."""
    head = next_code(lines, 0)
    if head == len(lines) or shape(lines[head]).word != "program":
        return None
    below = logical_line(lines, head, "program").last + 1
    return [found for found in map(shape, lines[below:]) if found.code]
