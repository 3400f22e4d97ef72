"""How many nodes of a diagram are drawn, counted before they are: what is larger stands shut, as one node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from qvr_core.semantics.types.model.arrows import Arrow, Instance, Ref
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.walk import arrow_named, arrows_of, parts

MOST_NODES = 1000
"""Nodes drawn at once; a frame with more than are left stands shut until it is opened."""

MOST_BESIDE = 50
"""Stages or branches that stand beside each other where there are too many: groups of them are frames then."""


@dataclass(slots=True)
class Budget:
    """The nodes that may still be drawn, and how many each declaration of a model comes to."""

    model: Model
    left: int = MOST_NODES
    _counts: dict[str, int] = field(default_factory=dict[str, int])

    def covers(self, arrow: Arrow | Program) -> bool:
        return self.count(arrow) <= self.left

    def count(self, arrow: Arrow | Program) -> int:
        """Nodes that an arrow comes to when everything in it is drawn."""
        self._count_parts(arrow)
        return self._sum(arrow)

    def _count_parts(self, root: Arrow | Program) -> None:
        """Count every declaration that `root` is made of, the innermost first: no chain of them is too long."""
        entered: set[str] = set()
        pending = list(_names(root))
        while pending:
            name = pending[-1]
            target = None if name in self._counts else arrow_named(self.model, name)
            inner = [] if target is None or name in entered else list(_names(target))
            waiting = [other for other in inner if other not in self._counts and other not in entered]
            entered.add(name)
            if waiting:
                pending += waiting
                continue
            pending.pop()
            if name not in self._counts:
                self._counts[name] = 1 if target is None else self._sum(target)

    def _sum(self, arrow: Arrow | Program) -> int:
        match arrow:
            case Program(steps=steps):
                return len(steps) + sum(map(self._sum, arrows_of(arrow)))
            case Instance(program=Program() as program):
                return self._sum(program)
            case Ref(name=name):
                return self._counts.get(name, 1)
            case _:
                return sum(map(self._sum, parts(arrow))) or 1


def _names(arrow: Arrow | Program) -> Iterator[str]:
    """The declarations that an arrow is made of by name."""
    pending: list[Arrow | Program] = [arrow]
    while pending:
        match pending.pop():
            case Ref(name=name):
                yield name
            case Instance(program=Program() as program) | (Program() as program):
                pending += arrows_of(program)
            case other:
                pending += parts(other)
