"""Documents printed on one line where they fit and broken where they do not (Wadler, "A prettier printer").

A document is a string, a list of documents, a `Line` (a space or nothing, or a line break), a `Nest` (deeper
indentation after breaks) or a `Group` (all its own lines break, or none does).
"""

from __future__ import annotations

from collections.abc import Iterable

from qvr_core.syntax.immutable import immutable


@immutable
class Line:
    """A possible line break; `flat` stands where it is not taken."""

    flat: str


@immutable
class Nest:
    """Breaks inside go `indent` columns deeper."""

    indent: int
    content: Doc


@immutable
class Group:
    """Printed flat if that fits in the line."""

    content: Doc


Doc = str | Line | Nest | Group | list["Doc"]

SPACE = Line(" ")
SOFT = Line("")
STEP = 4


def flat(doc: Doc) -> str:
    """The document on one line."""
    match doc:
        case str():
            return doc
        case Line(text):
            return text
        case Nest(_, content) | Group(content):
            return flat(content)
        case _:
            return "".join([flat(part) for part in doc])


def render(doc: Doc, width: int, indent: int, column: int) -> str:
    """The document as text from `column` on; lines after a break start at `indent` or deeper."""
    out: list[str] = []
    pending: list[tuple[int, bool, Doc]] = [(indent, False, doc)]
    while pending:
        level, is_flat, part = pending.pop()
        match part:
            case str():
                out.append(part)
                column += len(part)
            case Line(text):
                if is_flat:
                    out.append(text)
                    column += len(text)
                else:
                    out.append("\n" + " " * level)
                    column = level
            case Nest(step, content):
                pending.append((level + step, is_flat, content))
            case Group(content):
                pending.append((level, is_flat or column + len(flat(content)) <= width, content))
            case _:
                pending += [(level, is_flat, item) for item in reversed(part)]
    return "".join(out)


def join(separator: Doc, parts: Iterable[Doc]) -> list[Doc]:
    """The parts with the separator between them."""
    result: list[Doc] = []
    for part in parts:
        if result:
            result.append(separator)
        result.append(part)
    return result


def bracketed(opening: str, parts: Iterable[Doc], closing: str) -> Doc:
    """A list in brackets; broken, each item stands on a line of its own."""
    items = join([",", SPACE], parts)
    if not items:
        return opening + closing
    return Group([opening, Nest(STEP, [SOFT, *items]), SOFT, closing])


def chain(first: Doc, rest: Iterable[tuple[str, Doc]]) -> Doc:
    """Operands with operators between them; broken, each further line starts with its operator."""
    tail: list[Doc] = [[SPACE, f"{operator} ", operand] for operator, operand in rest]
    return Group([first, Nest(STEP, tail)])
