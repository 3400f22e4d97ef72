"""The bounds between which the elements of a chain lie, where they are arguments of its family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qvr_core.arrays.engine import arrays
from qvr_core.runtime.families import RuntimeFamily
from qvr_core.runtime.families.bijectors import Support
from qvr_core.runtime.programs.arguments import Arguments
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.values.cells import lead
from qvr_core.semantics.types.model.expressions import Bound
from qvr_core.semantics.types.walk import operands, walk


@dataclass(frozen=True, slots=True)
class Bounds:
    """`names` are the parameters that bound the later elements.  `apart`: the first elements may lie elsewhere.
    `recursive`: the bounds of an element are read off earlier ones."""

    family: RuntimeFamily
    names: tuple[str, ...]
    apart: bool
    recursive: bool

    @classmethod
    def of(cls, family: RuntimeFamily, starts: Sequence[RuntimeFamily], arguments: Arguments, chain: str) -> Bounds:
        names = _bounding(family)
        computed = [item.expr for item in arguments.items if item.name in names]
        recursive = any(
            isinstance(one, Bound) and one.name == chain for expr in computed for one in walk(expr, operands)
        )
        own = family.support(())
        other = any(start.support(()) != own or _bounding(start) for start in starts)
        return cls(family, names, other or bool(names and starts) or recursive, recursive)

    def support(self, arguments: Arguments, event: tuple[int, ...] | None, rank: int, frame: Frame) -> Support:
        """Between the bounds on a frame, with `rank` axes behind rows; the other arguments are not looked at."""
        cells = arguments.only(self.names).align(frame, event, None)
        values = {
            name: lead(cell.value, rank + own) if cell.rows else cell.value for name, (cell, own) in cells.cells.items()
        }
        # of the others only the places count
        others = {one.name: arrays.as_tensor(one.default or 0.0) for one in self.family.facts.parameters}
        return self.family.support(tuple({**others, **values}.values()))


def _bounding(family: RuntimeFamily) -> tuple[str, ...]:
    facts = family.facts
    return facts.bounded_by or (() if facts.above is None else (facts.above,))
