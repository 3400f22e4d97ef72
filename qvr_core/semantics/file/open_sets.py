"""Open sets: `object S : FinSet _` that nothing in the file solves and that a program's steps speak of.

Their elements come with the data: the checker is then told them as `KnownSet`s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from qvr_core.semantics.file.references import unit_references
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.statements import units_of
from qvr_core.syntax.tree.declarations import ObjectDecl, ProgramHeader
from qvr_core.syntax.tree.objects import FinSetExpr, ObjectExpr, ObjectRef, ParenObject
from qvr_core.syntax.tree.units import Statement


@immutable
class KnownSet:
    """What data say of an open set: how many elements it has, and what they are called."""

    size: int
    labels: tuple[str, ...] | None = None


class File(Protocol):
    """What is asked of the checker."""

    @property
    def records(self) -> Mapping[int, Any]: ...
    @property
    def owners(self) -> Mapping[str, list[int]]: ...
    @property
    def readers(self) -> Mapping[str, set[int]]: ...


def is_open(variable: str, file: File) -> bool:
    """Whether a size that nothing fixes is that of an open set."""
    name, _, index = variable.rpartition(".")
    statement = _declaration(name, file)
    if index != "0" or statement is None or not declares_hole(statement):
        return False
    return any(_in_steps(file.records[uid].statement, one) for one in _names(name, file) for uid in _users(one, file))


def declares_hole(statement: Statement) -> bool:
    """Whether a statement is `object … : FinSet _`."""
    node = statement.header.unit.node
    if not isinstance(node, ObjectDecl):
        return False
    space = _bare(node.space)
    return isinstance(space, FinSetExpr) and space.size.value is None


def _bare(expr: ObjectExpr) -> ObjectExpr:
    while isinstance(expr, ParenObject):
        expr = expr.inner
    return expr


def _declaration(name: str, file: File) -> Statement | None:
    owners = file.owners.get(name)
    return file.records[owners[0]].statement if owners else None


def _users(name: str, file: File) -> set[int]:
    return {uid for uid in file.readers.get(name, ()) if uid in file.records}


def _names(name: str, file: File) -> Iterator[str]:
    """The set, and its aliases."""
    seen = {name}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        yield one
        for uid in _users(one, file):
            node = file.records[uid].statement.header.unit.node
            inner = _bare(node.space) if isinstance(node, ObjectDecl) else None
            if isinstance(node, ObjectDecl) and isinstance(inner, ObjectRef) and inner.name.text == one:
                found = [declared.text for declared in node.names if declared.text not in seen]
                seen.update(found)
                waiting += found


def _in_steps(statement: Statement, name: str) -> bool:
    """Whether a step of a program mentions the name."""
    if not isinstance(statement.header.unit.node, ProgramHeader):
        return False
    below = (placed for placed in units_of(statement) if placed is not statement.header)
    return any(name in unit_references(placed.unit).names for placed in below)
