"""Which name of a computed outcome is observed: `observe log(k * y)[i : Row] <- …` is of `y` where a step binds `k`.

A line alone cannot tell, so it is decided where the lines of a program stand together, and anew with every edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from qvr_core.syntax.tree.arithmetic import Arith, ArithCall, Binary, ParenArith, Unary, Variable
from qvr_core.syntax.tree.declarations import Item, ProgramHeader
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.objects import ObjectExpr, ObjectRef, ParenObject, ProductExpr
from qvr_core.syntax.tree.steps import (
    DataStep,
    LetStep,
    MarginalizeStep,
    ObserveStep,
    ParamStep,
    PredictStep,
    SampleStep,
    ScoreStep,
)
from qvr_core.syntax.tree.units import Placed, Statement, Unit


def bare_names(tree: Arith) -> tuple[Name, ...]:
    """The names without an index that what is observed is a function of, each once, in the order of the text."""
    found: dict[str, Name] = {}
    for name in _bare(tree):
        found.setdefault(name.text, name)
    return tuple(found.values())


def _bare(tree: Arith) -> Iterator[Name]:
    match tree:
        case Variable(name=name):
            yield name
        case ParenArith(inner=inner) | Unary(operand=inner):
            yield from _bare(inner)
        case Binary(left=left, right=right):
            yield from _bare(left)
            yield from _bare(right)
        case ArithCall(args=args):
            for arg in args:
                yield from _bare(arg.value)
        case _:
            return


def with_observed_names(statement: Statement) -> Statement:
    """The statement with each such line about the name that may be observed: data, or bound nowhere else.

    Where several may be, the line is about the first, and says which the others are.
    """
    header = statement.header
    node = header.unit.node
    if not isinstance(node, ProgramHeader) or not any(map(_is_open, _steps(header.children))):
        return statement
    known = {one.name.text for one in node.parameters or ()}
    data: dict[str, ObjectExpr] = {}
    for step in _steps(header.children):
        known.update(_bound(step))
        if isinstance(step, DataStep):
            data.update((name.text, step.axes) for name in step.names)
    children = _named(header.children, known, data)
    return statement if children is header.children else replace(statement, header=replace(header, children=children))


def _steps(lines: Sequence[Placed[Item]]) -> Iterator[Any]:
    for placed in lines:
        yield placed.unit.node
        if placed.children:
            yield from _steps(placed.children)


def _is_open(step: Any) -> bool:
    return isinstance(step, ObserveStep) and step.outcome is not None and len(bare_names(step.outcome)) > 1


def _bound(step: Any) -> Iterator[str]:
    """What a step binds but for data, its indices included."""
    match step:
        case SampleStep(pattern=pattern) | LetStep(pattern=pattern):
            yield from (name.text for name in pattern.names)
        case MarginalizeStep(name=name) | PredictStep(name=name) | ScoreStep(name=name):
            yield name.text
        case ParamStep(names=names):
            yield from (name.text for name in names)
        case ObserveStep(name=name) if not _is_open(step):
            yield name.text
        case _:
            pass
    yield from (one.name.text for one in getattr(step, "binders", ()))


def _named(
    lines: tuple[Placed[Item], ...], known: set[str], data: Mapping[str, ObjectExpr]
) -> tuple[Placed[Item], ...]:
    found: list[Placed[Item]] = []
    for placed in lines:
        below = _named(placed.children, known, data)
        step = placed.unit.node
        if below is not placed.children:
            placed = replace(placed, children=below)
        if isinstance(step, ObserveStep) and _is_open(step):
            first, *others = _may_be(step, known, data)
            rivals = tuple(name.text for name in others)
            if step.name != first or step.rivals != rivals:
                placed = replace(placed, unit=_about(placed.unit, first, rivals))
        found.append(placed)
    return lines if all(one is other for one, other in zip(found, lines, strict=True)) else tuple(found)


@lru_cache(maxsize=1024)
def _about(unit: Unit[Any], name: Name, rivals: tuple[str, ...]) -> Unit[Any]:
    """The line about another of its names; the same object each time, so that a step is not checked again for it."""
    step = unit.node
    assert isinstance(step, ObserveStep)
    return replace(unit, node=replace(step, name=name, rivals=rivals), declares=(name,))


def _may_be(step: ObserveStep, known: set[str], data: Mapping[str, ObjectExpr]) -> Sequence[Name]:
    """The names that may be observed, or the first where none may."""
    assert step.outcome is not None
    names = bare_names(step.outcome)
    free = [name for name in names if name.text not in known]
    if step.binders:
        free = [name for name in free if name.text not in data or _runs_over(data[name.text], step)]
    return free or names[:1]


def _runs_over(axes: ObjectExpr, step: ObserveStep) -> bool:
    """Whether data of these axes are indexed as the step is, as far as the text tells."""
    factors = _factors(axes)
    if len(factors) != len(step.binders) or not all(isinstance(one, ObjectRef) for one in factors):
        return False
    pairs = zip(factors, step.binders, strict=True)
    return all(
        not isinstance(one, ObjectRef) or not isinstance(binder.space, ObjectRef)
        or one.name.text == binder.space.name.text
        for one, binder in pairs
    )  # fmt: skip


def _factors(axes: ObjectExpr) -> list[ObjectExpr]:
    match axes:
        case ParenObject(inner=inner):
            return _factors(inner)
        case ProductExpr(factors=factors):
            return [one for factor in factors for one in _factors(factor)]
        case _:
            return [axes]
