"""What a program with chains of unequal length does before its first step and after its last."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from qvr_core.arrays.engine import is_tensor
from qvr_core.runtime.programs.arithmetic import Evaluate, Parts, compile_expr
from qvr_core.runtime.programs.chains.lengths import Existing, Lengths
from qvr_core.runtime.programs.chains.unequal import UnequalSite
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.first_cause import first_true
from qvr_core.runtime.values.indices import in_transform, recording
from qvr_core.runtime.values.layout import Where
from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.programs.chains.ragged_reads import Counted, counted, looked_up
from qvr_core.semantics.types.model.expressions import Arrange, Bound, Data, Expr, Window
from qvr_core.semantics.types.model.programs import DataName, Program
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.walk import all_steps


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A place of the step `reader` that values tell: for each element, whether what it reads of `name` exists.

    Where it is one place for the `whole` of a chain, a chain without elements reads it not, nor, in a `from`, one that
    ends before the element `start`.
    """

    reader: str
    name: str
    there: Evaluate
    behind: int
    start: int | None
    whole: bool


class UnequalNames:
    """The names of a program that have lengths, in one execution after another."""

    def __init__(
        self,
        program: Program,
        sites: Collection[UnequalSite],
        hidden: Mapping[str, Lengths],
        predicted: Collection[str],
        parts: Parts,
    ) -> None:
        """`hidden` has the lengths of states that are summed out, by name."""
        self.program = program
        self.sites = list(sites)
        self.predicted = predicted
        self.parts = parts
        self.data = {item.name: item for item in program.data if item.lengths}
        self.known: Mapping[str, Counted] = counted(program) if self.sites or self.data else {}
        self.lengths: dict[str, Lengths] = {name: self._of_data(item) for name, item in self.data.items()}
        self.lengths |= {site.name: site.lengths for site in self.sites} | dict(hidden)

    name = None

    def prepare(self, frame: Frame) -> None:
        """Before any step runs: stand-ins behind the ends of ragged data that no step observes."""
        observed = {site.name for site in self.sites}
        for name, item in self.data.items():
            cell = None if name in observed else frame.supplied(name)
            if cell is not None and is_tensor(cell.value):
                frame.given[name] = self._held(item, cell, frame)

    def _of_data(self, item: DataName) -> Lengths:
        counts = next(one for one in self.program.data if one.name == item.lengths)
        expr = Data(type=counts.type, origin=counts.origin, name=counts.name)
        return Lengths(expr, item.over, Where(self.program.name, f"data `{item.name}`", item.name), self.parts)

    def _held(self, item: DataName, cell: Cell, frame: Frame) -> Cell:
        """Ragged data that nothing observes, with stand-ins behind the ends; `InputProblem` where one is missing."""
        existing, value = self.lengths[item.name](frame), cell.value
        if value.is_floating_point() and not recording():
            gone = value.isnan() & existing.beside(value, int(cell.rows))
            if bool(gone.any()):
                place = first_true(gone)[int(cell.rows) :][: len(item.over)]
                found = f"none for {self.lengths[item.name].cell(place, item.name)}"
                wanted = f"a value for each element up to `{item.lengths}`"
                raise self.lengths[item.name].where.misfit(wanted, f"{found}: give it, or end the sequence before it")
        held = existing.held(value, int(cell.rows))
        whole = isinstance(item.type.space, Finite) or item.numbers == "count"
        return Cell(held.long() if whole else held, cell.rows)

    def run(self, frame: Frame) -> None:
        """After all steps: every element that was read exists, and what is reported says which do not."""
        if not (recording() or in_transform()):
            for place in self._places:
                self._check(place, frame)
        for site in self.sites:
            site.finish(frame)
        for name, one in self.known.items():
            cell = frame.bound.get(name)
            if cell is not None and is_tensor(cell.value):
                lead = int(cell.rows)
                frame.bound[name] = Cell(self.lengths[one.step](frame).blank(cell.value, lead), cell.rows)

    def _exist(self, name: str, frame: Frame) -> Existing:
        return self.lengths[self.known[name].step](frame)

    def _check(self, place: LookedUp, frame: Frame) -> None:
        if place.reader in self.predicted and not frame.request.predicting:
            return
        there = self._exist(place.name, frame).there
        frame.bound[_there(place.name)] = Cell(there.long().reshape(*there.shape, *(1,) * place.behind), False)
        found = place.there(frame).value
        if place.whole:
            own = self._exist(place.reader, frame).there[..., place.start or 0]
            found = (found != 0) | ~own.reshape(*own.shape, *(1,) * (found.ndim - own.ndim))
        if not bool(found.all()):
            at = first_true(found == 0)[: found.ndim - place.behind]
            where = f", for its element {at}," if at else ""
            message = (
                f"`{self.program.name}`: `{place.reader}` reads an element of `{place.name}`{where} that does not "
                f"exist: `{place.name}` has `lengths={self.known[place.name].written}`"
            )
            raise InputProblem(message, site=place.reader)

    @cached_property
    def _places(self) -> list[LookedUp]:
        return list(self._looked_up())

    def _looked_up(self) -> Iterator[LookedUp]:
        for reader, index, start, whole in looked_up(list(all_steps(self.program.steps)), self.known):
            base, name, behind = _of_there(index.base, self.known)
            there = compile_expr(replace(index, base=base), self.parts)
            yield LookedUp(reader, name, there, behind, start, whole)


def _there(name: str) -> str:
    return f"{name} exists"


def _of_there(expr: Expr, known: Mapping[str, Counted]) -> tuple[Expr, str, int]:
    """The same place of what says which elements exist, the name, and how many axes one element has."""
    if isinstance(expr, Arrange | Window):
        base, name, behind = _of_there(expr.base, known)
        return replace(expr, base=base), name, behind
    assert isinstance(expr, Bound | Data)
    behind = len(axes(expr.type) or ()) - known[expr.name].rank
    return Bound(name=_there(expr.name), type=expr.type, origin=expr.origin), expr.name, behind
