"""The copies of replicated arrows (`replicate=k`) that a file declares: counted, and bounded as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from qvr_core.semantics.file.imported import Statements
from qvr_core.semantics.scope.bounds import MOST_COPIES
from qvr_core.syntax.tree.declarations import MorphismDecl
from qvr_core.syntax.tree.options import Number
from qvr_core.syntax.tree.units import Statement


def replicas(decl: MorphismDecl) -> int | None:
    """The k of `replicate=k`; None where there is none, or nothing that could be one."""
    value = None if (number := replicate_number(decl)) is None else number.value
    return value if isinstance(value, int) and value >= 1 else None


def replicate_number(decl: MorphismDecl) -> Number | None:
    """The number behind `replicate=` as it is written."""
    items = decl.options.items if decl.options is not None else ()
    return next((at.value for at in items if at.key.text == "replicate" and isinstance(at.value, Number)), None)


def copies_of(name: str, count: int) -> tuple[str, ...]:
    """What the copies of a replicated arrow are called."""
    return tuple([f"{name}_{index}" for index in range(count)])


def declared_copies(statement: Statement) -> int:
    """How many arrows a statement declares by `replicate=`."""
    node = statement.header.unit.node
    count = replicas(node) if isinstance(node, MorphismDecl) else None
    return 0 if count is None else count * len(statement.header.unit.declares)


class Copies:
    """How many copies each statement declares.  `beyond` names the statements that the bound leaves without: the first
    with the number of copies down to it, those below with 0, since one error is enough."""

    def __init__(self, layout: Statements) -> None:
        self._layout = layout
        self._counts: dict[int, int] = {}
        self.beyond: dict[int, int] = {}

    def update(self, removed: Iterable[int], added: Iterable[int]) -> set[int]:
        """Take over an edit; all statements for which the bound now means something else."""
        for uid in removed:
            self._counts.pop(uid, None)
        for uid in added:
            if count := declared_copies(self._layout.statement_of(uid)):
                self._counts[uid] = count
        before, self.beyond = self.beyond, self._find()
        return {uid for uid, _ in before.items() ^ self.beyond.items()}

    def count(self, uids: Iterable[int]) -> int:
        """The copies that statements declare within the bound."""
        return sum(self._counts.get(uid, 0) for uid in uids if uid not in self.beyond)

    def _find(self) -> dict[int, int]:
        if sum(self._counts.values()) <= MOST_COPIES:
            return {}
        order = sorted(self._counts, key=self._layout.start_line)
        totals = accumulate(self._counts[uid] for uid in order)
        beyond = [(uid, total) for uid, total in zip(order, totals, strict=True) if total > MOST_COPIES]
        return dict(beyond[:1]) | dict.fromkeys((uid for uid, _ in beyond[1:]), 0)
