"""A smaller case that fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tests.generator.expressions import Compare, Expr, Num, Reduce, Ref
from tests.generator.scope import Begun, begun_apart, greatest_shift, lags_of
from tests.generator.sets import Set, Table
from tests.generator.steps import Case, Let, Marginalize, Site, Step
from tests.generator.vectors import Items, Vec

MOST = 250
"""Cases that are tried."""


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case that is found; `fails` says whether one still does."""
    tried = 0
    while True:
        for smaller in candidates(case):
            tried += 1
            if tried > MOST:
                return case
            if fails(smaller):
                case = smaller
                break
        else:
            return case


def candidates(case: Case) -> Iterator[Case]:
    """Cases that are a little smaller."""
    return (again for smaller in _smaller(case) if (again := relagged(smaller)) is not None)


def relagged(case: Case) -> Case | None:
    """A case whose recursions and chains have the first elements that are asked for; None where they lack some."""
    begun: dict[str, Begun] = {}
    steps: list[Step] = []
    for step in case.steps:
        inner = step.block if isinstance(step, Marginalize) else (step,)
        made = [_relagged(each, begun) for each in inner]
        kept = tuple(each for each in made if each is not None)
        if len(kept) < len(made):
            return None
        steps += [replace(step, block=kept)] if isinstance(step, Marginalize) else kept
    return case.changed(steps=tuple(steps))


def _relagged(step: Step, begun: dict[str, Begun]) -> Step | None:
    """One step; `begun` gets where the names of a recursion begin."""
    if not isinstance(step, Let | Site) or step.time is None:
        return step
    if isinstance(step, Site):
        lag = max((greatest_shift(each, step.time, begun) for each in step.draw.arguments), default=0)
        if not lag:
            return replace(step, start=(), time=None, lag=0)
        return None if 1 < len(step.start) < lag else replace(step, start=step.start[:lag], lag=lag)
    lags = lags_of(step.names, step.bodies, step.time, begun)
    if not lags:
        return replace(step, start=(), time=None, lags=())
    if any(1 < len(entry) < lag for entry, lag in zip(step.start, lags, strict=True)):
        return None
    start = tuple(entry[:lag] for entry, lag in zip(step.start, lags, strict=True))
    begun.update(begun_apart(step.names, lags, step.binders.index(step.time)))
    return replace(step, start=start, lags=lags)


def _smaller(case: Case) -> Iterator[Case]:
    if len(case.rows) > 1:
        yield case.changed(rows=case.rows[:1])
    for k in reversed(range(len(case.steps))):
        yield _without_unused(case.changed(steps=case.steps[:k] + case.steps[k + 1 :]))
    for k, step in enumerate(case.steps):
        for other in _steps(step):
            yield case.changed(steps=(*case.steps[:k], other, *case.steps[k + 1 :]))
    for k, each in enumerate(case.sets):
        used = any(each == s for step in case.all_steps() for s in _sets(step))
        if not used and len(case.sets) > 1:
            yield case.changed(sets=case.sets[:k] + case.sets[k + 1 :])
        elif each.size > 1:
            yield _cut(case, each)
        if each.labels:
            yield _renamed(case, each, replace(each, labels=()))
    for name in case.open:
        yield case.changed(open=case.open - {name})
    for k in range(len(case.families)):
        yield case.changed(families=case.families[:k] + case.families[k + 1 :])
    for k in range(len(case.defs)):
        yield case.changed(defs=case.defs[:k] + case.defs[k + 1 :])


def _without_unused(case: Case) -> Case:
    """Without values of what is gone."""
    names = {getattr(step, "name", None) for step in (*case.steps, *case.all_steps())}
    rows = tuple({n: t for n, t in row.items() if n in names} for row in case.rows)
    data = {n: t for n, t in case.data.items() if n in names}
    returned = case.returned if case.returned in names else next((n for row in rows for n in row), case.returned)
    return case.changed(rows=rows, data=data, returned=returned)


def _steps(step: Step) -> Iterator[Step]:
    """Simpler steps in place of one."""
    if isinstance(step, Marginalize) and len(step.block) > 1:
        for k in range(len(step.block)):
            yield replace(step, block=step.block[:k] + step.block[k + 1 :])
    options = getattr(step, "options", ())
    for k in range(len(options)):
        yield replace(step, options=options[:k] + options[k + 1 :])  # pyright: ignore[reportCallIssue]
    if getattr(step, "lengths", None) is not None:
        yield replace(step, lengths=None)  # pyright: ignore[reportCallIssue]
    words = getattr(step, "words", ())
    for k in range(len(words)):
        yield replace(step, words=words[:k] + words[k + 1 :])  # pyright: ignore[reportCallIssue]
    yield from _variants(step)


def _variants(node: Any) -> Iterator[Any]:
    """A node with one expression below it made simpler, from the top."""
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name in ("indices", "binders", "options", "time", "further", "lengths", "steps"):
            continue
        for other in _simpler(value):
            yield replace(node, **{field.name: other})


def _simpler(value: Any) -> Iterator[Any]:
    if isinstance(value, Expr):
        yield from _instead(value)
        if not (isinstance(value, Reduce) and value.product):
            yield from _variants(value)
    elif isinstance(value, tuple):
        for k, item in enumerate(value):
            for other in _simpler(item):
                yield (*value[:k], other, *value[k + 1 :])
    elif is_dataclass(value) and not isinstance(value, Set):
        yield from _variants(value)


def _instead(expr: Expr) -> Iterator[Expr]:
    """What may stand for an expression: a literal, or a part of it."""
    if isinstance(expr, Vec):
        if not isinstance(expr, Items):
            return
        if all(isinstance(item, Num) for item in expr.items) or any(isinstance(item, Vec) for item in expr.items):
            return
        yield Items(tuple(Num(round(1.0 / len(expr.items), 2)) for _ in expr.items))
        return
    if isinstance(expr, Num):
        return
    yield Num(0.5)
    if isinstance(expr, Ref) or (isinstance(expr, Reduce) and expr.product):
        return
    for field in fields(expr):  # pyright: ignore[reportArgumentType]
        value = getattr(expr, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Expr) and not isinstance(item, Vec | Compare):
                yield item


def _sets(node: Any) -> Iterator[Set]:
    if isinstance(node, Set):
        yield node
    elif isinstance(node, tuple):
        for item in node:
            yield from _sets(item)
    elif is_dataclass(node):
        for field in fields(node):
            yield from _sets(getattr(node, field.name))


def _cut(case: Case, each: Set) -> Case:
    """With one element less of a set."""
    return _renamed(case, each, replace(each, size=each.size - 1, labels=each.labels[:-1]))


def _renamed(case: Case, old: Set, new: Set) -> Case:
    """With another set in place of one, tables cut to it and columns into it bent back."""
    axes = {s.name: s.axes for s in case.all_steps() if hasattr(s, "axes")}  # pyright: ignore
    ends = {
        getattr(s.lengths, "name", "")  # pyright: ignore
        for s in case.all_steps() if getattr(s, "lengths", None) is not None and s.binders[-1].over == old  # pyright: ignore
    }  # fmt: skip
    into = {s.name for s in case.all_steps() if getattr(s, "of", None) == old.name}  # pyright: ignore

    def table(name: str, given: Table) -> Table:
        sets = axes.get(name, ())
        cut = {k for k, axis in enumerate(sets) if axis == old}
        shape = tuple(new.size if k in cut else size for k, size in enumerate(given.shape))
        cells = {at: x for at, x in given.cells.items() if all(i < n for i, n in zip(at, shape, strict=True))}
        if name in ends:
            cells = {at: min(x, new.size) for at, x in cells.items()}
        if name in into:
            cells = {at: x % new.size for at, x in cells.items()}
        return Table(shape, cells)

    return case.changed(
        sets=tuple(new if s == old else s for s in case.sets),
        steps=tuple(_swapped(step, old, new) for step in case.steps),
        data={n: table(n, t) for n, t in case.data.items()},
        rows=tuple({n: table(n, t) for n, t in row.items()} for row in case.rows),
    )


def _swapped(node: Any, old: Set, new: Set) -> Any:
    if node == old:
        return new
    if isinstance(node, tuple):
        return tuple(_swapped(item, old, new) for item in node)
    if is_dataclass(node) and not isinstance(node, Set | type):
        return replace(node, **{f.name: _swapped(getattr(node, f.name), old, new) for f in fields(node)})
    return node
