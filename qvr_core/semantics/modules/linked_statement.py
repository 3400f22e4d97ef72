"""A statement of another file as it stands in this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from qvr_core.semantics.modules.module import Module
from qvr_core.syntax.placing import SERIAL_BITS
from qvr_core.syntax.tree.units import Placed, Statement

FIRST_SERIAL = 1 << 40
"""Of the statements of other files: no text has as many of its own."""

LOW = (1 << SERIAL_BITS) - 1


@dataclass(frozen=True, slots=True)
class Linked:
    """A statement of another file as it stands in this one."""

    module: Module
    source: int
    """Its uid at home."""
    statement: Statement
    at_home: Statement
    names: Mapping[str, str]
    values: Mapping[str, int]
    algebra: str
    refused: str | None
    """Why it cannot stand here."""

    def same(self, other: Linked) -> bool:
        """Whether nothing that a check reads differs."""
        return (self.at_home is other.at_home or self.at_home == other.at_home) and (
            (self.names, self.values, self.algebra, self.refused)
            == (other.names, other.values, other.algebra, other.refused)
        )


def placed_as(statement: Statement, uid: int) -> Statement:
    """The statement with this uid, and the units in it with theirs below it."""

    def moved(placed: Placed[Any]) -> Placed[Any]:
        return replace(placed, uid=uid | (placed.uid & LOW), children=tuple(moved(child) for child in placed.children))

    return replace(statement, header=moved(statement.header), problems=())


def without_node(statement: Statement) -> Statement:
    """What stands for a statement that cannot be checked here: it declares its names, and nothing is said of them."""
    header = replace(statement.header, unit=replace(statement.header.unit, node=None), children=())
    return replace(statement, header=header)
