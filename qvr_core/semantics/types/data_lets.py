"""Lets that are computed from data alone, which may be observed, and what such a let computes from all of its data.

`let z = (y - mean(y)) / sd(y)` has the same numbers whatever the latents are: `observe z[i : Row] <- …` scores them,
and new rows are to be scaled by the mean and the standard deviation of the fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

from qvr_core.operations.along_axes import ALONG_AN_AXIS
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import ArrowBase
from qvr_core.semantics.types.model.expressions import (
    Apply,
    Bound,
    Builtin,
    Contract,
    Data,
    Expr,
    Matrix,
    Scatter,
    ValueType,
)
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, ObserveModel
from qvr_core.semantics.types.spaces import Finite, Real, factors_of
from qvr_core.semantics.types.walk import operands, sites, values, walk

_OF_ALL = frozenset(
    name
    for one in ALONG_AN_AXIS
    if one.function is not None and one.function.rule == "reduce"
    for name in (one.name, *one.function.aliases)
)
"""Functions of all elements along an axis."""


def observed_lets(program: Program) -> frozenset[str]:
    """The lets that a step observes."""
    return frozenset(site.name for site in sites(program.steps, ObserveModel) if site.of_let)


@lru_cache(maxsize=64)
def data_of_lets(program: Program) -> Mapping[str, frozenset[str]]:
    """Of each let that is computed from data alone, in order, the data names that it is computed from."""
    found: dict[str, frozenset[str]] = {}
    for step in program.steps:
        if not isinstance(step, LetModel):
            continue
        parts = [part for value in values(step) for part in walk(value, operands)]
        read = {part.name for part in parts if isinstance(part, Bound)} - {*step.names}
        if not read <= found.keys() or any(isinstance(part, Apply | Matrix) for part in parts):
            continue
        named = frozenset(part.name for part in parts if isinstance(part, Data))
        found.update(dict.fromkeys(step.names, named.union(*(found[name] for name in read))))
    return found


def behind_observed(program: Program) -> frozenset[str]:
    """The observed lets, and all lets that they are computed from."""
    wanted = set(observed_lets(program))
    for step in reversed(program.steps):
        if isinstance(step, LetModel) and not wanted.isdisjoint(step.names):
            parts = (part for value in values(step) for part in walk(value, operands))
            wanted.update(step.names, (part.name for part in parts if isinstance(part, Bound)))
    return frozenset(wanted) & data_of_lets(program).keys()


# ---------------------------------------------------------------- what is computed from all of the data


@lru_cache(maxsize=64)
def row_sets(program: Program) -> frozenset[str]:
    """The sets whose elements are others in new rows: those that observed steps run over, and the program's own."""
    observed = list(sites(program.steps, ObserveModel))
    plates = [named.space for site in observed if (named := site.element or site.plate) is not None]
    indices = [index.space for site in observed for index in site.indices]
    spaces = (*plates, *indices, program.declared_domain.space)
    found = (factor for space in spaces for factor in factors_of(space) if isinstance(factor, Finite))
    return frozenset(one.nominal for one in found if one.nominal is not None)


def statistics(value: Expr, name: str, rows: frozenset[str]) -> tuple[Expr, dict[str, Expr]]:
    """The value of a let of data, each number that it computes from all `rows` replaced by a name that no program can
    write; and what these names stand for."""
    found: dict[str, Expr] = {}
    return _replaced(value, name, rows, found), found


def _replaced(node: Any, name: str, rows: frozenset[str], found: dict[str, Expr]) -> Any:
    if isinstance(node, Builtin | Contract | Scatter) and _is_statistic(node, rows):
        label = f"{name} {len(found) + 1}"
        found[label] = node
        return Bound(type=node.type, origin=node.origin, name=label)
    if isinstance(node, tuple):
        return tuple(_replaced(one, name, rows, found) for one in node)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(node, ArrowBase | Origin | ValueType) or not is_dataclass(node) or isinstance(node, type):
        return node
    held = ((one.name, getattr(node, one.name)) for one in fields(node))
    made = {key: _replaced(one, name, rows, found) for key, one in held if is_dataclass(one) or isinstance(one, tuple)}
    return replace(node, **made) if any(getattr(node, key) is not one for key, one in made.items()) else node


def _is_statistic(node: Builtin | Contract | Scatter, rows: frozenset[str]) -> bool:
    """Whether it brings elements together, and has none of its own for each row."""
    if isinstance(node, Builtin) and node.function not in _OF_ALL:
        return False
    over = [None if axis is None else set_of(axis) for axis in node.type.indexed]
    return isinstance(node.type.space, Real | None) and None not in over and rows.isdisjoint(filter(None, over))


def statistics_of(program: Program) -> Iterator[str]:
    """The names of all of a program, in order."""
    if program.uses_input:
        return
    known = data_of_lets(program)
    for step in program.steps:
        if isinstance(step, LetModel) and known.keys() >= {*step.names} and not _recursive(step):
            for at, value in enumerate(values_of(step)):
                yield from statistics(value, step.names[at], row_sets(program))[1]


def values_of(step: LetModel) -> tuple[Expr, ...]:
    """The values of a let, one for each of its names or one for all of them."""
    return (step.value,) if step.indexed is None else step.indexed.values


def _recursive(step: LetModel) -> bool:
    return step.indexed is not None and step.indexed.recursive
