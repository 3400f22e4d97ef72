"""Which observations leave together: folds of K-fold cross-validation, at random or by groups.

Elements of several observed steps that stand at the same place of the same sets (the two measurements of a person) are
one row and leave together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import arrays
from qvr_core.data.needs import Need, Needs
from qvr_core.inference.leaving_out import LeavingOut, Scored
from qvr_core.runtime.programs.labelled.axes import data_axes
from qvr_core.runtime.values.errors import InputProblem

FOLDS = 10


@dataclass(frozen=True)
class Folds:
    """The fold of each observation, and the label of its group where folds are made of groups."""

    fold: tuple[int, ...]
    count: int
    labels: tuple[str, ...] | None = None

    def of(self, number: int) -> NDArray[np.bool_]:
        """The flags of the observations of a fold."""
        return np.asarray(self.fold) == number


def at_random(potential: LeavingOut, count: int, seed: int) -> Folds:
    """Folds of as many rows each, but for one, dealt out in an order made from the seed.  Raises `InputProblem`."""
    rows = _rows(potential)
    each = list(dict.fromkeys(rows))
    if not 2 <= count <= len(each):
        raise InputProblem(f"there are {len(each)} observations: between 2 and {len(each)} folds can be made of them")
    order = np.random.default_rng(seed).permutation(len(each))
    number = {each[at]: place % count for place, at in enumerate(order.tolist())}
    return Folds(tuple(number[row] for row in rows), count)


def by_group(potential: LeavingOut, needs: Needs, by: str, count: int | None, seed: int) -> Folds:
    """Folds of whole groups: each its own fold, or `count` folds of about as many observations.  A data name or a set
    says which group an observation is of.  Raises `InputProblem`."""
    labels = tuple(_labels(potential, needs, by))
    groups = list(dict.fromkeys(labels))
    if len(groups) < 2:
        raise InputProblem(f"all observations are of one `{by}`: without it no data are left")
    if count is None:
        return Folds(tuple(map(groups.index, labels)), len(groups), labels)
    if not 2 <= count <= len(groups):
        raise InputProblem(
            f"there are {len(groups)} groups of `{by}`: between 2 and {len(groups)} folds can be made of them"
        )
    order = [groups[at] for at in map(int, np.random.default_rng(seed).permutation(len(groups)))]
    sizes, number = [0] * count, dict[str, int]()
    for group in sorted(order, key=lambda one: -labels.count(one)):
        number[group] = int(np.argmin(sizes))
        sizes[number[group]] += labels.count(group)
    return Folds(tuple(number[label] for label in labels), count, labels)


def _rows(potential: LeavingOut) -> list[object]:
    """What observations that leave together share."""
    found: list[object] = []
    for step in potential.steps:
        named = step.sets and all(name is not None for name in step.sets)
        of = step.sets if named else (step.name,)
        found += [(of, place) for place in step.places]
    return found


def _labels(potential: LeavingOut, needs: Needs, by: str) -> list[str]:
    found: list[str] = []
    for step in potential.steps:
        found += _of_step(step, potential, needs, by)
    return found


def _of_step(step: Scored, potential: LeavingOut, needs: Needs, by: str) -> list[str]:
    """The group of each observation of a step."""
    own = {need.name: need for need in needs.data}
    if by in step.sets:
        return _along(step, step.sets.index(by))
    if by in own:
        need = own[by]
        if need.values is not None and need.values.name in step.sets and not _over(potential, by, step):
            return _along(step, step.sets.index(need.values.name))
        return _by_data(step, potential, need)
    says = [need for need in own.values() if need.values is not None and need.values.name == by]
    says = [need for need in says if _over(potential, need.name, step)]
    if len(says) > 1:
        names = " and ".join(f"`{need.name}`" for need in says)
        raise InputProblem(f"{names} say which `{by}` an element of `{step.name}` is of: name one of them")
    if says:
        return _by_data(step, potential, says[0])
    raise InputProblem(f"nothing says of which `{by}` an element of `{step.name}` is{_known(step, potential, needs)}")


def _along(step: Scored, axis: int) -> list[str]:
    """The elements of one of its sets, by their labels."""
    labels = [one.labels for at, one in enumerate(step.axes) if at != step.series][axis]
    return [str(labels[place[axis]]) if labels is not None else str(place[axis]) for place in step.places]


def _over(potential: LeavingOut, name: str, step: Scored) -> tuple[int, ...]:
    """Along which of a step's axes a data name runs; none where it runs over another set, too."""
    value = potential.given.known.get(name)
    sets = [axis.name for axis in data_axes(potential.model.program).get(name, ())]
    if value is not None and sets and all(one in step.sets for one in sets):
        return tuple(step.sets.index(one) for one in sets)
    shape = () if value is None else tuple(np.shape(_numbers(value)))
    return (0,) if not sets and len(shape) == 1 and shape[0] == step.there.shape[0] else ()


def _by_data(step: Scored, potential: LeavingOut, need: Need) -> list[str]:
    axes = _over(potential, need.name, step)
    if not axes:
        raise InputProblem(f"`{need.name}` does not run over the elements of `{step.name}`: it cannot say their groups")
    values = _numbers(potential.given.known[need.name])
    if values.dtype.kind == "f" and not (values == np.round(values)).all():
        raise InputProblem(f"`{need.name}` has numbers that are not whole: they name no groups")
    labels: Sequence[str] | None = None if need.values is None else need.values.labels
    labels = labels or need.labels
    found = [int(values[tuple(place[axis] for axis in axes)]) for place in step.places]
    return [labels[one] if labels is not None else str(one) for one in found]


def _known(step: Scored, potential: LeavingOut, needs: Needs) -> str:
    """What could be named instead."""
    sets = [name for name in step.sets if name is not None and len(step.sets) > 1]
    whole = [need.name for need in needs.data if need.kind == "finite" and _over(potential, need.name, step)]
    names = ", ".join(f"`{name}`" for name in (*whole, *sets))
    return f"; it can be grouped by {names}" if names else ""


def _numbers(value: Any) -> NDArray[Any]:
    return arrays.as_tensor(value).numpy()
