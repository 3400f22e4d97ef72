"""Labelled arrays laid along the sets of a program: axes by their names, elements by their labels.

Nothing is put into another order but by its own names; where these are not those of the program, both are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.runtime.programs.labelled.arrays import DRAWS, Labelled, Labels, called
from qvr_core.runtime.programs.labelled.axes import Axis
from qvr_core.runtime.values.errors import InputProblem

SHOWN = 6


class Alignment:
    """The arrays of one call: what they call the elements of a set without labels must agree."""

    def __init__(self, program: str, sets: frozenset[str]) -> None:
        """`sets` are all sets of the program."""
        self.program = program
        self.sets = {plain(name): name for name in sets}
        self.found: dict[str, tuple[Labels, str]] = {}

    def aligned(self, name: str, given: Labelled, axes: Sequence[Axis], rows_first: bool = False) -> NDArray[Any]:
        """The values with their axes in the order of `axes`, draws in front (chains joined), each along its set.

        Axes without a name of their own keep their order; `rows_first` says that one more is that of rows, else more
        are those of one value.  Raises `InputProblem`.
        """
        given, drawn = _draws_first(given)
        order = self._order(name, given, axes, drawn, rows_first)
        given = given.ordered(order)
        values, first = given.values, drawn + max(0, int(rows_first) * (len(order) - drawn - len(axes)))
        for at, axis in enumerate(axes):
            if first + at < values.ndim:
                values = self._along(name, values, first + at, given.labels[first + at], axis, given.index)
        return values

    def _order(self, name: str, given: Labelled, axes: Sequence[Axis], drawn: int, rows_first: bool) -> list[int]:
        """Which axis of the array comes where."""
        left = list(range(drawn, given.values.ndim))
        placed: list[int | None] = []
        for axis in axes:
            own = [at for at in left if axis.name is not None and plain(given.dims[at]) == plain(axis.name)]
            placed.append(own[0] if own else None)
            left = [at for at in left if at not in own[:1]]
        for at in left:
            other = self.sets.get(plain(given.dims[at]))
            lacking = [axis for axis, place in zip(axes, placed, strict=True) if place is None]
            if other is not None and lacking and not rows_first:
                over = " * ".join(axis.name or "_" for axis in axes)
                dims = ", ".join(map(str, given.dims[drawn:]))
                raise self._problem(name, f"it runs over `{over}`, and the array has the axes {dims}")
        extra = len(left) - placed.count(None)
        lead = left[: max(0, extra)] if rows_first else []
        rest = iter(at for at in left if at not in lead)
        filled = [next(rest, None) if place is None else place for place in placed]
        return [*range(drawn), *lead, *(at for at in filled if at is not None), *rest]

    def _along(self, name: str, values: NDArray[Any], at: int, labels: Labels, axis: Axis, index: bool) -> NDArray[Any]:
        if labels is None:
            return values
        size = values.shape[at]
        counted = tuple(map(str, range(size)))
        if axis.labels is not None:
            wanted = tuple(map(called, axis.labels))
            if labels == wanted or (labels == counted and len(wanted) == size):
                return values
            if len(labels) != len(wanted) or set(labels) != set(wanted):
                raise self._problem(
                    name, f"the elements of `{axis.name}` are {shown(wanted)}, and the array has {shown(labels)}"
                )
            places = {label: place for place, label in enumerate(labels)}
            return np.take(values, [places[label] for label in wanted], axis=at)
        if labels != counted and set(labels) == set(counted):
            if index:
                raise self._problem(
                    name,
                    f"its index is {shown(labels)}, and the elements of `{axis.name}` are {shown(counted)}: "
                    "`sort_index()` takes the rows by their index, `reset_index(drop=True)` in the order they have",
                )
            return np.take(values, [labels.index(one) for one in counted], axis=at)
        self._agrees(name, labels, axis)
        return values

    def _agrees(self, name: str, labels: Labels, axis: Axis) -> None:
        """Two arrays along a set whose elements have no names in the program call them alike."""
        if axis.name is None:
            return
        before, by = self.found.setdefault(axis.name, (labels, name))
        if before != labels:
            raise self._problem(
                name,
                f"along `{axis.name}` it has {shown(labels)}, and `{by}` has {shown(before)}: put them in one order",
            )

    def _problem(self, name: str, words: str) -> InputProblem:
        return InputProblem(f"`{self.program}`, `{name}`: {words}", site=name)

    def positions(self, name: str, values: NDArray[Any], labels: Labels) -> NDArray[Any]:
        """Text as the positions of the elements that it names; numbers as they are.  Raises `InputProblem`."""
        if values.dtype.kind not in "OUST":
            return values
        known: Mapping[str, int] = {label: place for place, label in enumerate(labels or ())}
        found = [known.get(called(cell), -1) for cell in values.reshape(-1).tolist()]
        if -1 in found:
            cell = values.reshape(-1)[found.index(-1)]
            wanted = shown(labels) if labels else "numbers"
            raise self._problem(name, f"it holds `{cell}`, where {wanted} are expected")
        return np.array(found).reshape(values.shape)


def _draws_first(given: Labelled) -> tuple[Labelled, int]:
    """With chains and draws as one axis in front; how many such axes there are."""
    names = next((names for names in DRAWS if set(names) <= set(given.dims)), None)
    if names is None:
        return given, 0
    lead = [given.dims.index(name) for name in names]
    moved = given.ordered([*lead, *(at for at in range(given.values.ndim) if at not in lead)])
    count = len(names)
    values = moved.values.reshape(-1, *moved.values.shape[count:])
    return Labelled(values, ("draw", *moved.dims[count:]), (None, *moved.labels[count:]), moved.index), 1


def plain(name: object) -> str:
    """A name without what spelling differs in."""
    return "" if name is None else str(name).replace("_", "").lower()


def shown(labels: Labels) -> str:
    """The first labels of a set, in words."""
    if labels is None:
        return "none"
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return ", ".join(f"`{label}`" for label in labels[:SHOWN]) + more
