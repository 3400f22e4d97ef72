"""Parts of a nest that become vector instructions, each in a loop of its own over a block of rows.

A loop that also scatters, or calls what has no vector form, is run number by number as a whole.  So a nest over rows is
cut into phases; what one phase makes for another lies in a lane, a block of numbers on the stack.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qvr_core.codegen.loops import Buffer, Call, Expression, Linear, Load, Nest, Statement
from qvr_core.codegen.scalar_operations import WRITTEN
from qvr_core.operations.operation import ITSELF, ONE_BY_ONE
from qvr_core.operations.table import NODES

FEWEST_ROWS = 32
"""Fewer are not worth loops of their own."""
FEWEST_OF_LARGEST = 48
"""The same where the largest of a row is sought, as a softmax does, which no vector is fast at."""
LONGEST_INNER = 16
"""A sum within a row that is written out and so leaves the rows to the vectors."""
MOST_LANES = 64
"""128 kB of the stack, of which a thread may have no more than 512; a nest that wants more stays whole."""
WIDE = {
    name: WRITTEN[name].replace(node.loop, node.vector)
    for name, node in NODES.items()
    if node.vector not in (ITSELF, ONE_BY_ONE)
}
"""The text of each operation that has a form without branches of its own."""
NARROW = frozenset(name for name, node in NODES.items() if node.vector == ONE_BY_ONE and node.loop)
"""Operations that are called number by number."""


@dataclass(slots=True)
class Phase:
    """Statements of one loop over rows.  'wide': vectors; 'turned': sums over the rows for each turn of an inner loop;
    'plain': number by number."""

    kind: str
    statements: list[Statement]


def phases(nest: Nest, local: Mapping[Buffer, str]) -> list[Phase]:
    """The phases of a nest in order; one that is plain where vectors would do nothing, or too much would cross."""
    kinds = [_kind(statement, f"i{len(nest.extents) - 1}") for statement in nest.statements]
    sought = any(statement.inner and statement.joined_by in ("max", "min") for statement in nest.statements)
    fewest = FEWEST_OF_LARGEST if sought else FEWEST_ROWS
    if not nest.extents or nest.extents[-1] < fewest or set(kinds) == {"plain"}:
        return [Phase("plain", nest.statements)]
    found: list[Phase] = []
    made: dict[Buffer, int] = {}
    for kind, statement in zip(kinds, nest.statements, strict=True):
        first = max((made.get(load.buffer, 0) for load in statement.reads()), default=0)
        for place in range(first, len(found)):
            if found[place].kind == kind:
                break
        else:
            place = len(found)
            found.append(Phase(kind, []))
        found[place].statements.append(statement)
        made[statement.target] = max(place, made.get(statement.target, 0))
    return found if len(crossing(found, local)) <= MOST_LANES else [Phase("plain", nest.statements)]


def crossing(found: list[Phase], local: Mapping[Buffer, str]) -> dict[Buffer, int]:
    """The lane of each local buffer that a phase makes for a later one."""
    lanes: dict[Buffer, int] = {}
    for at, phase in enumerate(found):
        own = {statement.target for statement in phase.statements}
        for later in found[at + 1 :]:
            for statement in later.statements:
                for load in statement.reads():
                    if load.buffer in own and load.buffer in local:
                        lanes.setdefault(load.buffer, len(lanes))
    return lanes


def _kind(statement: Statement, row: str) -> str:
    size = math.prod(extent for _, extent in statement.inner)
    if statement.kind in ("scan", "routine") or any(call in NARROW for call in _calls(statement.value)):
        return "plain"
    if any(isinstance(atom, Load) for atom, _ in statement.place.terms):
        return "plain"
    if statement.kind == "add" and statement.inner:
        return "plain" if _moves(statement.place, row) else "turned"
    return "wide" if size <= LONGEST_INNER else "plain"


def _moves(place: Linear, row: str) -> bool:
    return any(atom == row for atom, _ in place.terms)


def _calls(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Call):
        yield expression.name
        for argument in expression.arguments:
            yield from _calls(argument)
