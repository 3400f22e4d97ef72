"""Data drawn from the program itself under a fixed seed: the default of a run, and a check that it can be fitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.typed_engine import seeded
from qvr_core.data.binding import RowsOf, Whole
from qvr_core.data.needs import Need, Needs
from qvr_core.runtime.values.term_tables import tables
from qvr_core.semantics.terms.written import place_width
from qvr_core.semantics.types.spaces import Constrained, Finite, Real, Space, Terms

# Rows of a data name whose length nothing says.
STATISTICAL_ROWS = 64
# One position of so many is selected where a site has `at=`.
SELECTED = 7


def synthetic(
    needs: Needs,
    draw: Callable[[Any, Mapping[str, Tensor]], Mapping[str, Tensor]],
    *,
    rows: int,
    length: int,
    seed: int,
) -> RowsOf | Whole:
    """Inputs and data names at random, then the observed sites as the program draws them.

    `draw(x, data)` gives a value for every observed site.  Finite inputs are uniform, real ones standard normal
    (reflected or squashed into their bounds), terms have a few levels; sequences have `length` positions.
    """
    with seeded(seed):
        if needs.statistical:
            data = {need.name: _values(need, _plate_rows(needs, need), length) for need in needs.data}
            return Whole(_with_draws(needs, data, draw(None, data)))
        inputs = [_values(need, rows, length) for need in needs.inputs]
        x = inputs[0] if len(inputs) == 1 else tuple(inputs)
        data = _data(needs, rows, length)
        return RowsOf(x, _with_draws(needs, data, draw(x, data)))


def _with_draws(needs: Needs, data: Mapping[str, Tensor], drawn: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Data and what was drawn; each element of an interval-censored site is known exactly."""
    ends = {
        need.name: drawn[need.purpose[1]].to(data[need.name].dtype).reshape(data[need.name].shape)
        for need in needs.data
        if need.purpose is not None and need.purpose[0] == "interval"
    }
    return {**data, **ends, **drawn}


def _data(needs: Needs, rows: int, length: int) -> dict[str, Tensor]:
    """The data names of a program that reads its rows; those that options mention are lengths, positions, masks."""
    made: dict[str, Tensor] = {}
    valid = arrays.full((rows,), length)
    for need in needs.data:
        if need.purpose == ("lengths", ""):
            made[need.name] = valid = arrays.randint(max(length // 2, 1), length + 1, (rows,))
    chosen = max(length // SELECTED, 1)
    for need in needs.data:
        match need.purpose:
            case ("at", _):
                made[need.name] = (arrays.rand(rows, chosen) * valid[:, None]).long()
            case ("mask", _):
                made[need.name] = arrays.ones((rows, chosen) if _at(needs, need) else (rows,), dtype=arrays.bool)
            case ("lengths", _):
                pass
            case _:
                made[need.name] = _values(need, rows, length)
    return made


def _at(needs: Needs, mask: Need) -> bool:
    """Whether the site of a mask scores selected positions."""
    return mask.purpose is not None and any(need.purpose == ("at", mask.purpose[1]) for need in needs.data)


def _plate_rows(needs: Needs, datum: Need) -> int:
    """The length of an indexed likelihood: its plate's size.  An option's data name has that of its own site."""
    site = datum.purpose[1] if datum.purpose is not None else None
    observed = sorted(needs.observed, key=lambda need: need.name != site)
    sizes = [need.plate[1] for need in observed if need.plate is not None]
    return sizes[0] if sizes else STATISTICAL_ROWS


# What says that a value is censored or truncated, by the option: one element of five is censored on each side, and no
# bound cuts anything off.
_LIMITS: Mapping[str, Callable[[int], Tensor]] = {
    "right_censored": lambda rows: arrays.arange(rows) % 5 == 0,
    "left_censored": lambda rows: arrays.arange(rows) % 5 == 1,
    "interval": lambda rows: arrays.full((rows,), math.inf),
    "truncate_lower": lambda rows: arrays.full((rows,), -math.inf),
    "truncate_upper": lambda rows: arrays.full((rows,), math.inf),
}


# Between which numbers the bounds of a hidden count are drawn: none is below the other.
_BETWEEN = {"lowest": (0, 4), "highest": (4, 12)}


SENTENCE = 5
"""Words of a sentence that is made up."""
DEEPEST = 4
"""Levels of a term that is made up."""


def _term(space: Terms, numbers: Random, depth: int = 1) -> list[object]:
    """A term of a few levels as it is written in data, each constructor as likely as the others."""
    deepest = min(DEEPEST, space.depth or DEEPEST)
    may = [one for one in space.constructors if depth < deepest or None not in one[1]]
    name, places = numbers.choice(may)
    return [name, *(_term(space, numbers, depth + 1) if one is None else _place(one, numbers) for one in places)]


def _place(space: Space, numbers: Random) -> object:
    if isinstance(space, Finite) and isinstance(space.size, int):
        return numbers.randrange(space.size)
    low, high = (space.low, space.high) if isinstance(space, Real | Constrained) else (None, None)
    made = [numbers.gauss(0.0, 1.0) for _ in range(place_width(space))]
    if isinstance(space, Constrained):
        made = sorted(made) if space.kind == "Ordered" else [1.0 / len(made)] * len(made)
    if low is not None and high is not None:
        return [low + (high - low) / (1.0 + math.exp(-one)) for one in made]
    return [low + abs(one) if low is not None else high - abs(one) if high is not None else one for one in made]


def _values(need: Need, rows: int, length: int) -> Tensor:
    shape: tuple[int, ...] = (rows,)
    if need.terms is not None:
        numbers = Random(int(arrays.randint(2**31 - 1, ())))
        return tables([_term(need.terms, numbers) for _ in range(rows)], need.terms)
    if need.axes is not None:
        shape = tuple(axis.size or rows for axis in need.axes)
    if need.lexicon is not None:
        # words in any order: a deduction says what sentences weigh, not how they are drawn
        return arrays.randint(max(1, len(need.lexicon.labels or need.lexicon.words)), (*shape, min(length, SENTENCE)))
    if need.purpose is not None and need.purpose[0] in _LIMITS:
        return _LIMITS[need.purpose[0]](math.prod(shape)).reshape(shape)
    if need.purpose is not None and need.purpose[0] == "times":
        return arrays.arange(1.0, shape[-1] + 1.0).expand(shape).clone()  # they ascend
    if need.purpose is not None and need.purpose[0] in _BETWEEN:
        return arrays.randint(*_BETWEEN[need.purpose[0]], shape)
    if need.sequence:
        shape = (*shape, length)
    if need.kind == "finite":
        return arrays.randint(need.size or 2, shape)
    if need.kind == "count":
        return arrays.randint(10 if need.high is None else int(need.high) + 1, shape)
    if need.axes is not None:
        shape = (*shape, *need.element)
    elif need.role == "input" or need.width > 1:
        shape = (*shape, need.width)
    if need.constraint == "Simplex":
        return arrays.randn(shape).softmax(-1)
    if need.constraint:
        return arrays.eye(shape[-1]).expand(shape).clone()
    noise = arrays.randn(shape)
    match need.low, need.high:
        case None, None:
            # a scale or a rate may be among what nobody has said anything of
            return noise.abs() + 0.5 if need.kind == "any" or need.inferred else noise
        case float(low), None:
            return low + noise.abs() + 0.1
        case None, float(high):
            return high - noise.abs() - 0.1
        case float(low), float(high):
            return low + (high - low) * noise.sigmoid()
        case _:
            return noise
