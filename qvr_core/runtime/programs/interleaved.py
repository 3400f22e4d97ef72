"""Draws of steps that read one another's elements: all of them together, from the first element to the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from qvr_core.arrays.engine import Tensor, is_tensor
from qvr_core.runtime.programs.arithmetic import Parts
from qvr_core.runtime.programs.chain_site import ChainSite
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.indexed import Growing, full
from qvr_core.runtime.programs.site_classes import chain_class
from qvr_core.runtime.programs.steps import IndexedLet, Step
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.whole_numbers import drawn_counts
from qvr_core.semantics.types.groups import Group, groups, indices_of, names_of, reads
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import Chain, LetModel, ObserveModel, SampleModel, StepModel


class GrowingLet:
    """A let of a group: its names, element by element."""

    def __init__(self, let: IndexedLet, axis: int, index: str) -> None:
        self.let = let
        self.axis = axis
        self.index = index
        self.sizes = [1 if at == axis else size for at, size in enumerate(let.sizes)]

    def begin(self, frame: Frame) -> None:
        """Bind the names, empty, and append the elements before the lag."""
        for name in self.let.names:
            frame.bound[name] = Cell(Growing(self.axis, self.index), False)
        for name, cells in zip(self.let.names, self.let.first_elements(frame), strict=False):
            for cell in cells:
                _grow(frame, name, cell)

    def advance(self, frame: Frame, element: int) -> None:
        frame.windows[self.index] = (element, 1)
        for name, value, lag in zip(self.let.names, self.let.values, self.let.lags, strict=True):
            if element >= lag:
                cell = value(frame)
                _grow(frame, name, Cell(full(cell.value, self.sizes, cell.rows), cell.rows))
        del frame.windows[self.index]

    def finish(self, frame: Frame) -> None:
        for name in self.let.names:
            made = frame.bound[name].value
            assert isinstance(made, Growing)
            frame.bound[name] = Cell(made.whole(), made.rows)


class GrowingSite:
    """A site of a group whose elements are not given, element by element."""

    def __init__(self, site: ChainSite, frame: Frame) -> None:
        self.site = site
        self.elements = site.elements(frame)

    def begin(self, frame: Frame) -> None:
        """Bind the name, empty, and append the elements that `from` gives."""
        self._bind(frame, Cell(Growing(self.site.axis, self.site.index), True))
        for value in self.elements.first(frame):
            self._add(frame, value)

    def advance(self, frame: Frame, element: int) -> None:
        site = self.site
        if element < site.lag:
            return
        frame.windows[site.index] = (element, 1)
        self._add(frame, self.elements.later(frame, element))
        del frame.windows[site.index]

    def finish(self, frame: Frame) -> None:
        made = frame.bound[self.site.name].value
        assert isinstance(made, Growing)
        self._bind(frame, Cell(made.whole(), True))

    def record(self, frame: Frame) -> None:
        """The site's record, once all of the group is known."""
        value = frame.bound[self.site.name].value
        assert is_tensor(value)
        frame.sites[self.site.name] = self.elements.record(value, frame)

    def _add(self, frame: Frame, value: Tensor) -> None:
        made = frame.bound[self.site.name].value
        assert isinstance(made, Growing)
        made.add(Cell(drawn_counts(value, self.site.name) if self.site.discrete else value, True))

    def _bind(self, frame: Frame, cell: Cell) -> None:
        frame.bound[self.site.name] = cell
        if self.site.kind == "observe":
            # the steps above read it as data
            frame.given[self.site.name] = cell


def _grow(frame: Frame, name: str, cell: Cell) -> None:
    made = frame.bound[name].value
    assert isinstance(made, Growing)
    made.add(cell)
    frame.bound[name] = Cell(made, made.rows)


@dataclass
class Interleaved:
    """A group of steps by their places in the program; `observed` are what it observes.

    In `order` each stands behind those whose same element it reads.
    """

    observed: tuple[str, ...]
    members: tuple[int, ...]
    order: tuple[int, ...]
    lets: dict[int, GrowingLet] = field(default_factory=dict[int, GrowingLet])
    sites: dict[int, ChainSite] = field(default_factory=dict[int, ChainSite])
    length: int = 0

    name = None

    def wanted(self, frame: Frame) -> bool:
        """Whether something that the group observes is to be drawn."""
        return any(frame.supplied(name) is None for name in self.observed)

    def run(self, frame: Frame) -> None:
        """Draw what is not given, and leave the records of all sites."""
        drawn = {at: GrowingSite(site, frame) for at, site in self.sites.items() if not _given(site, frame)}
        growing: list[GrowingLet | GrowingSite] = [
            self.lets[at] if at in self.lets else drawn[at] for at in self.order if at in self.lets or at in drawn
        ]
        for one in growing:
            one.begin(frame)
        for element in range(self.length):
            for one in growing:
                one.advance(frame, element)
        for one in growing:
            one.finish(frame)
        for at, site in self.sites.items():
            drawn[at].record(frame) if at in drawn else site.run(frame)


def _given(site: ChainSite, frame: Frame) -> bool:
    """Whether a site has its value already: bound then, for the others to read."""
    value = site.given_value(frame)
    if value is not None:
        frame.bound[site.name] = Cell(value, True)
    return value is not None


@dataclass(frozen=True)
class Groups:
    """The groups of a program, with the names that each of its steps binds and reads."""

    groups: Sequence[Interleaved]
    bound: Sequence[frozenset[str]]
    read: Sequence[frozenset[str]]

    def in_order(self, steps: Sequence[Step], frame: Frame) -> Sequence[Step]:
        """The steps of a program as they run: a group that is drawn runs as one."""
        drawn = {group.members: group for group in self.groups if group.wanted(frame)}
        if not drawn:
            return steps
        places = [(at,) for at in range(len(steps))]
        for members in drawn:
            places = self._together(places, members)
        return [drawn[each] if each in drawn else steps[each[0]] for each in places]

    def _together(self, places: Sequence[tuple[int, ...]], members: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The order with a group in one place: what stands between its steps goes before it, or behind it where it
        reads what the group makes."""
        first, last = places.index(members[:1]), places.index(members[-1:])
        names = set[str]().union(*(self.bound[at] for at in members))
        before, after = list(places[:first]), list[tuple[int, ...]]()
        for number, each in enumerate(places[first:], first):
            if each[0] in members:
                continue
            if number > last or any(self.read[at] & names for at in each):
                after.append(each)
                names.update(*(self.bound[at] for at in each))
            else:
                before.append(each)
        return [*before, members, *after]


def interleaved(program: Program, steps: Sequence[object], parts: Parts) -> Groups:
    """The groups of a program that can be drawn; `steps` are those at run time."""
    found = [_interleaved(group, program, steps, parts) for group in groups(program) if group.axes is not None]
    if not found:
        return Groups((), (), ())
    bound = [frozenset(names_of(step)) for step in program.steps]
    return Groups(found, bound, [frozenset(one.name for one in reads(step)) for step in program.steps])


def _interleaved(group: Group, program: Program, steps: Sequence[object], parts: Parts) -> Interleaved:
    assert group.axes is not None
    typed = program.steps
    observed = tuple(step.site.name for at in group.members if isinstance(step := typed[at], ObserveModel))
    made = Interleaved(observed, group.members, _order(group.members, typed))
    for at, axis in zip(group.members, group.axes, strict=True):
        step, own = typed[at], steps[at]
        index = indices_of(step)[axis]
        if isinstance(step, LetModel) and isinstance(own, IndexedLet):
            made.lets[at] = GrowingLet(own, axis, index.name)
        elif isinstance(step, SampleModel | ObserveModel):
            made.sites[at] = _chain(step, axis, program.name, parts)
            made.length = made.sites[at].sizes[axis]
    return made


def _order(members: tuple[int, ...], steps: Sequence[StepModel]) -> tuple[int, ...]:
    """Steps behind those whose same element they read, otherwise as the program has them."""
    binds = {name: at for at in members for name in names_of(steps[at])}
    ahead = {
        at: {binds[one.name] for one in reads(steps[at]) if one.back == 0 and one.name in binds} - {at}
        for at in members
    }
    order: list[int] = []
    while left := [at for at in members if at not in order]:
        # a circle is only one where some condition does not keep an element from being read
        order.append(next((at for at in left if ahead[at] <= {*order}), left[0]))
    return tuple(order)


def _chain(step: SampleModel | ObserveModel, axis: int, program: str, parts: Parts) -> ChainSite:
    site = step.site
    chain = site.chain or Chain(indices=site.indices, at=axis, start=())
    kind = "observe" if isinstance(step, ObserveModel) else "sample"
    made = replace(site, chain=chain)
    return chain_class(made)(made, kind, program, parts)
