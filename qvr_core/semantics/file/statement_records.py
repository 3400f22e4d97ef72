"""What the checker keeps of each statement, and the order in which statements are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from qvr_core.semantics.file.declarations import Checked
from qvr_core.semantics.file.references import References
from qvr_core.semantics.scope.scope import Entry
from qvr_core.syntax.tree.units import Statement

Key = tuple[int, int]
"""An equation: its statement, and its number there."""


@dataclass(slots=True)
class Record:
    """What the checker knows of one statement."""

    statement: Statement
    names: tuple[str, ...]
    references: References
    checked: Checked = field(default_factory=Checked)
    wrong: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a file at one moment: statements as they are read, their checks, entries by name with the
    statement that gives them, and the values of solved holes."""

    records: Mapping[int, Record]
    """Their `checked` and `wrong` are those of a later moment, it may be."""
    checked: Mapping[int, Checked]
    entries: Mapping[str, Entry]
    owners: Mapping[str, int]
    holes: Mapping[str, int]


def in_order(
    start: int, dirty: Set[int], records: Mapping[int, Record], owners: Mapping[str, Sequence[int]]
) -> list[int]:
    """`start` behind all dirty statements that it depends on."""
    if len(dirty) == 1:
        return [start]
    order: list[int] = []
    entered: set[int] = set()
    pending: list[tuple[int, bool]] = [(start, False)]
    while pending:
        uid, done = pending.pop()
        if done:
            order.append(uid)
        elif uid not in entered:
            entered.add(uid)
            pending.append((uid, True))
            for name in records[uid].references.reads:
                for owner in owners.get(name, ())[:1]:
                    if owner in dirty and owner not in entered:
                        pending.append((owner, False))
    return order
