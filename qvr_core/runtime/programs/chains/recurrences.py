"""The elements of a value one behind the other: at once in a loop of Python, or written down as a loop of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.graph import Array, current
from qvr_core.arrays.listing import FUNCTIONS, in_graph
from qvr_core.arrays.recurrences import Loop, State
from qvr_core.runtime.programs.chains.turns import Element, Turn
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.indexed import Growing
from qvr_core.runtime.values.cells import Cell

FEWEST = 3
"""Elements from which a recorded loop is shorter than its turns one behind the other."""


def each_element(
    frame: Frame,
    index: str,
    grown: Mapping[str, Growing],
    elements: range,
    turn: Callable[[Element], Sequence[Tensor]],
) -> list[Tensor]:
    """Run `turn` for each element, with the frame's window on it; it adds an element to each of `grown`, which are
    bound to their names.  Gives the sums of what the turns give."""
    graph = current()
    if graph is None or len(elements) < FEWEST:
        return one_by_one(frame, index, grown, elements, turn)
    loop = Loop(graph, len(elements))
    recorded = {name: Recorded(made, loop, elements.start, frame.rows) for name, made in grown.items()}
    for name, made in recorded.items():
        frame.bound[name] = Cell(made, True)
    here = Turn(loop, elements.start)
    frame.windows[index] = (here, 1)
    added: Any = turn(here)
    frame.windows.pop(index, None)
    states = [State(tuple(made.back), made.now) for made in recorded.values() if made.back]
    others = [made for made in recorded.values() if not made.back]
    _, parts = loop.run(states, [made.now for made in others], [in_graph(each, graph) for each in added])
    series = iter(parts)
    for made in (*(made for made in recorded.values() if made.back), *others):
        whole, before = made.grown, len(made.elements) - len(made.back)
        along = FUNCTIONS["movedim"](FUNCTIONS["squeeze"](next(series), whole.axis + 2), 0, whole.axis + 1)
        whole.rows, whole.elements = True, [*made.elements[:before], along]
    sums: Any = list(series)
    return sums


def one_by_one(
    frame: Frame,
    index: str,
    grown: Mapping[str, Growing],
    elements: range,
    turn: Callable[[Element], Sequence[Tensor]],
) -> list[Tensor]:
    """As `each_element`, the elements one behind the other wherever they are computed."""
    totals: list[Tensor] | None = None
    for element in elements:
        for name, made in grown.items():
            frame.bound[name] = Cell(made, made.rows)
        frame.windows[index] = (element, 1)
        added = turn(element)
        totals = [*added] if totals is None else [one + two for one, two in zip(totals, added, strict=True)]
    frame.windows.pop(index, None)
    return totals or []


class Recorded(Growing):
    """A value whose elements a recorded loop makes: `now` is that of its turn, `back` are those of turns before."""

    def __init__(self, of: Growing, loop: Loop, first: int, rows: int) -> None:
        super().__init__(of.axis, of.index)
        self.grown, self.loop, self.start = of, loop, first
        self.rows = True
        self.elements = [each if of.rows else each.expand(rows, *each.shape) for each in of.elements]
        self.back: list[Array] = []
        self.made: Array | None = None

    @property
    def now(self) -> Array:
        """The element of this turn, as long as the others."""
        assert self.made is not None
        return self.made

    def add(self, cell: Cell) -> None:
        shape = self.elements[0].shape if self.elements else None
        value: Any = in_graph(cell.value, self.loop.graph)
        if shape is not None:
            value = FUNCTIONS["expand"](value, shape) if tuple(value.shape) != tuple(shape) else value
        self.made = FUNCTIONS["double"](value)

    def window(self, first: Any, count: int) -> Any:
        """The element of this turn, or of one before."""
        back: int = self.start - first.first
        if not back:
            return self.now
        while len(self.back) < back:
            start: Any = in_graph(self.elements[-1 - len(self.back)], self.loop.graph)
            self.back.append(self.loop.state(FUNCTIONS["double"](start)))
        return self.back[back - 1]


def recurrence(
    starts: Sequence[Tensor],
    rows: Sequence[Tensor],
    made: Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]],
) -> list[Tensor]:
    """States that are made of those before and of one row of each of `rows`, (T, …): all of each, (1 + T, …), with
    `starts` in front."""
    graph, count = current(), len(rows[0])
    if graph is None or count < FEWEST:
        series = [[start] for start in starts]
        for at in range(count):
            found = made([one[-1] for one in series], [one[at] for one in rows])
            for one, new in zip(series, found, strict=True):
                one.append(new)
        return [arrays.stack(one) for one in series]
    loop = Loop(graph, count)
    states: Any = [loop.state(FUNCTIONS["double"](in_graph(start, graph))) for start in starts]
    items: Any = [loop.item(in_graph(one, graph)) for one in rows]
    found: Any = made(states, items)
    together = zip(states, found, strict=True)
    _, parts = loop.run([State((one,), in_graph(new, graph)) for one, new in together])
    series_of_all: Any = parts
    return series_of_all
