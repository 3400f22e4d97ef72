"""Units: the pieces of text that are parsed alone.

A unit is a one-line statement, the header of a block statement, or one step of a block.  Text that merely moves keeps
its tree; only the position of its unit changes (`qvr_core.syntax.statements`).
"""

from __future__ import annotations

from typing import Generic, TypeVar

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.declarations import Header, Item
from qvr_core.syntax.tree.names import Name, Span

T = TypeVar("T", covariant=True)


@immutable
class SyntaxProblem:
    """A located syntax error of one unit.  `fix` is (title, replacement edits relative to the unit)."""

    code: str
    message: str
    span: Span
    severity: str = "error"
    fix: tuple[str, tuple[tuple[Span, str], ...]] | None = None


@immutable
class Unit(Generic[T]):
    """One parsed piece of text and what went wrong in it.

    `node` is None where nothing could be made of the text; `keyword` and `declares` then still say what the line
    wanted to be, so that a damaged declaration does not make every use of its name an error.
    """

    text: str
    node: T | None
    problems: tuple[SyntaxProblem, ...]
    keyword: str
    declares: tuple[Name, ...]
    renamed: tuple[tuple[str, str], ...] = ()
    """Names of the text with what the node has in their place, where it stands for another file's namespace."""

    @property
    def broken(self) -> bool:
        """True where the text has a syntax error."""
        return any(problem.severity == "error" for problem in self.problems)


@immutable
class Placed(Generic[T]):
    """A unit at its place in a statement.

    `uid` names the place under edits: it is unique in a document, and a unit that merely moves keeps it.  `line` counts
    lines below the statement's first line, `column` code points in that line.  `children` are the lines of the block
    that the unit opens (steps, rules, lexicon entries); nested blocks nest.
    """

    uid: int
    line: int
    column: int
    unit: Unit[T]
    children: tuple[Placed[Item], ...] = ()


@immutable
class Statement:
    """A top-level statement.  `doc` is the comment run that documents it, markers stripped ('' without)."""

    header: Placed[Header]
    doc: str
    problems: tuple[tuple[int, SyntaxProblem], ...]
    """Layout problems of the whole statement, each with the uid of the unit its span counts from."""

    @property
    def uid(self) -> int:
        return self.header.uid
