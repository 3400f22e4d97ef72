"""Who reads chains of unequal length: each element that is read must exist.

A step over the same indices with the same lengths reads `h[g, t]`; a sum with `if t < n[g]` does; what reads places
that data tell (`h[subject[i], time[i]]`) is looked at when it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.chain_starts import draws_of, values_of
from qvr_core.semantics.types.diagnostics import Origin, Related
from qvr_core.semantics.types.model.expressions import (
    Arrange,
    Bound,
    Builtin,
    Constant,
    Data,
    Expr,
    Index,
    IndexValue,
    ValueType,
    Window,
)
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    IndexedValue,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    RunningIndex,
    SampleModel,
    ScoreModel,
    StepModel,
)
from qvr_core.semantics.types.program_codes import STEP_OPTION
from qvr_core.semantics.types.spaces import Finite, Unknown
from qvr_core.semantics.types.walk import all_steps, operands, values
from qvr_core.syntax.immutable import immutable

Guard = tuple[str, str, tuple[str, ...]]
"""`t < n[g]`: the index, the lengths and the indices that they are looked up by."""


@immutable
class Counted:
    """A name that has only the first elements along its last index: their number, how many indices it has, and the
    step that says so, its own or the one whose elements a let reads."""

    name: str
    step: str
    lengths: Expr
    rank: int
    origin: Origin

    @property
    def written(self) -> str:
        """The lengths as the program has them."""
        return lengths_text(self.lengths)


@immutable
class Read:
    """A place that reads such a name.

    `along` has for each axis the index that runs there, None where none does.  `index` is the expression where the last
    axis is looked up by values.  `guards` are the conditions that hold.  In a `from`, `start` is the place of the first
    element that it is for.
    """

    name: str
    expr: Expr
    along: tuple[str | None, ...]
    index: Index | None
    guards: frozenset[Guard]
    start: int | None = None


def lengths_text(value: Expr) -> str:
    """`n`, or the number."""
    return value.name if isinstance(value, Data) else str(value.value) if isinstance(value, Constant) else "?"


def lengths_of(text: str, origin: Origin) -> Expr:
    """The expression behind the name of lengths, or behind their number."""
    unknown = ValueType(Unknown())
    if text.isdigit():
        return Constant(type=unknown, origin=origin, value=int(text))
    return Data(type=unknown, origin=origin, name=text)


def counted(program: Program) -> dict[str, Counted]:
    """The names of a program that have lengths: ragged data, those of steps that say so, and lets over the indices of
    such names."""
    found = {
        datum.name: Counted(
            datum.name, datum.name, lengths_of(datum.lengths, datum.origin), len(datum.over), datum.origin
        )
        for datum in program.data
        if datum.lengths
    }
    for step in all_steps(program.steps):
        lengths = None if isinstance(step, LetModel | ScoreModel | ParamModel) else step.site.lengths
        if lengths is not None and not isinstance(step, LetModel | ScoreModel | ParamModel):
            site = step.site
            found[site.name] = Counted(site.name, site.name, lengths, len(_indices(step)), site.origin)
    lets = [step for step in all_steps(program.steps) if isinstance(step, LetModel) and step.indexed is not None]
    more = dict(found)
    while more:
        more = {name: one for step in lets for name, one in inherited(step, found) if name not in found}
        found |= more
    return found


def inherited(step: LetModel, known: Mapping[str, Counted]) -> Iterator[tuple[str, Counted]]:
    """The names of a let that reads another one's elements at its own indices."""
    assert step.indexed is not None
    own = tuple(index.name for index in step.indexed.indices)
    for read in reads(step, known):
        if read.along == own and not _guarded(read, known[read.name]):
            there = known[read.name]
            yield from ((name, Counted(name, there.step, there.lengths, len(own), step.origin)) for name in step.names)
            return


def check_ragged_reads(program: Program, scope: Scope) -> None:
    """Report who reads elements that may not exist."""
    known = counted(program)
    if not known:
        return
    for step in all_steps(program.steps):
        own = _own(step, known)
        for read in reads(step, known):
            problem = _problem(read, known[read.name], step, own)
            if problem is not None:
                related = (Related(f"`{read.name}` gets its lengths here", known[read.name].origin),)
                scope.report(STEP_OPTION, problem, read.expr.origin, related)


def _own(step: StepModel, known: Mapping[str, Counted]) -> Counted | None:
    return next((known[name] for name in _names(step) if name in known), None)


def _indices(step: StepModel) -> tuple[RunningIndex, ...]:
    match step:
        case LetModel(indexed=indexed):
            return () if indexed is None else indexed.indices
        case SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site) | MarginalizeModel(site=site):
            return site.indices or (site.chain.indices if site.chain is not None else ())
        case _:
            return ()


def _problem(read: Read, name: Counted, step: StepModel, own: Counted | None) -> str | None:
    """Why a place may read what does not exist."""
    running = tuple(index.name for index in _indices(step))
    if read.index is not None:
        last = running[-1] if own is not None and running else None
        if last is None or last not in set(_running(read.index)):
            return None
        return (
            f"`{read.name}` has `lengths={name.written}`, and which of its elements this reads depends on `{last}`, "
            "which has lengths of its own: read it by the index itself, or by a shift (`t - 1`)"
        )
    if _guarded(read, name):
        return None
    if read.along != running or None in read.along:
        return _elsewhere(read, name)
    if own is None:
        return (
            f"`{read.name}` has only the first `{name.written}` elements along `{running[-1]}`, and this reads all: "
            f"write `[lengths={name.written}]` behind this step"
        )
    if lengths_text(own.lengths) != name.written:
        return f"`{read.name}` has `lengths={name.written}`, this step `lengths={own.written}`: they must be the same"
    return None


def _elsewhere(read: Read, name: Counted) -> str:
    last = read.along[-1]
    if last is None:
        return (
            f"`{read.name}` has only the first `{name.written}` elements along its last index, and this reads all: "
            "read it by its indices, in a step with the same lengths"
        )
    by = ", ".join(str(index) for index in read.along[:-1] if index is not None)
    condition = f"{last} < {name.written}" + (f"[{by}]" if by else "")
    return (
        f"`{read.name}` has only the first `{name.written}` elements along `{last}`, and this reads all: add "
        f"`if {condition}` to the sum, or read it in a step over the same indices with `[lengths={name.written}]`"
    )


def _guarded(read: Read, name: Counted) -> bool:
    return any(
        guard == (read.along[-1], name.written, tuple(index for index in read.along[:-1] if index is not None))
        for guard in read.guards
    )


def _running(expr: Expr) -> Iterator[str]:
    """The indices that an expression runs along."""
    pending = [expr]
    while pending:
        one = pending.pop()
        if isinstance(one, Window):
            yield one.index
        elif isinstance(one, IndexValue):
            yield one.name
        pending += operands(one)


# ---------------------------------------------------------------- the places


def reads(step: StepModel, known: Mapping[str, Counted]) -> Iterator[Read]:
    """The places of a step that read a name with lengths."""
    starts, options = starts_of(step), _by_element(step)
    for value in values(step):
        if isinstance(value, Bound | Data) and value.name in known and any(value is each for each in options):
            yield Read(value.name, value, tuple(index.name for index in _indices(step)), None, frozenset())
            continue
        start = next((at for at, one in starts if one is value), None)
        yield from (replace(read, start=start) for read in _within(value, known, frozenset()))


def _by_element(step: StepModel) -> tuple[Bound | Data, ...]:
    """The options of a step with indices that are a name over the same sets: each element has its own of it."""
    if isinstance(step, LetModel | ScoreModel | ParamModel):
        return ()
    site = step.site
    sets = [index.space.nominal if isinstance(index.space, Finite) else None for index in _indices(step)]
    options = (site.mask, site.weight, *(value for _, value in site.limits))
    return tuple(
        option
        for option in options
        if isinstance(option, Bound | Data) and [name for _, name in axes(option.type) or ()] == sets
    )


def starts_of(step: StepModel) -> list[tuple[int, Expr]]:
    """What the first elements of a recursion are made of, with the place of the first element that it is for."""
    match step:
        case LetModel(indexed=IndexedValue(starts=starts)):
            return [each for start in starts for each in enumerate(start)]
        case SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site) if site.chain is not None:
            drawn = [(at, value) for at, draw in enumerate(draws_of(site.chain.start)) for _, value in draw.args]
            return [*enumerate(values_of(site.chain.start)), *drawn]
        case _:
            return []


def _within(expr: Expr, known: Mapping[str, Counted], guards: frozenset[Guard]) -> Iterator[Read]:
    found = _leaf(expr, known)
    if found is not None:
        leaf, along = found
        yield Read(leaf.name, expr, along, None, guards)
        return
    if isinstance(expr, Index):
        base = expr.base
        while isinstance(base, Arrange):
            base = base.base
        found = _leaf(base, known)
        if found is not None:
            leaf, along = found
            yield Read(leaf.name, expr, along, expr if along[-1] is None else None, guards)
            for index in expr.indices:
                yield from _within(index, known, guards)
            return
    if isinstance(expr, Builtin) and expr.function == "where" and len(expr.args) == 3:
        condition, body, other = expr.args
        yield from _within(condition, known, guards)
        yield from _within(body, known, guards | frozenset(_conditions(condition)))
        yield from _within(other, known, guards)
        return
    for part in operands(expr):
        yield from _within(part, known, guards)


def _leaf(expr: Expr, known: Mapping[str, Counted]) -> tuple[Bound | Data, tuple[str | None, ...]] | None:
    """A name with lengths behind the indices that run along it."""
    windows: list[Window] = []
    while isinstance(expr, Window):
        windows.append(expr)
        expr = expr.base
    if not isinstance(expr, Bound | Data) or expr.name not in known:
        return None
    rank = len(axes(expr.type) or ())
    found: dict[int, str] = {one.axis + rank: one.index for one in windows}
    return expr, tuple(found.get(at) for at in range(known[expr.name].rank))


def _conditions(expr: Expr) -> Iterator[Guard]:
    """The `t < n[g]` that a condition says."""
    expr = _bare(expr)
    if not isinstance(expr, Builtin):
        return
    if expr.function in ("and", "logical_and"):
        for part in expr.args:
            yield from _conditions(part)
    elif expr.function in ("lt", "gt") and len(expr.args) == 2:
        less, more = (_bare(part) for part in (expr.args if expr.function == "lt" else reversed(expr.args)))
        windows: list[str] = []
        while isinstance(more, Window):
            windows.insert(0, more.index)
            more = more.base
        if isinstance(less, IndexValue) and isinstance(more, Data | Constant):
            yield less.name, lengths_text(more), tuple(windows)


def _bare(expr: Expr) -> Expr:
    while isinstance(expr, Arrange):
        expr = expr.base
    return expr


def looked_up(
    steps: Sequence[StepModel], known: Mapping[str, Counted]
) -> Iterator[tuple[str, Index, int | None, bool]]:
    """Of each step the places that values tell, which only a run can look at: the step, the place, the first element
    that it is for where it stands in a `from`, and whether it is one place for the whole chain of a step that has
    lengths itself."""
    for step in steps:
        name, running = _names(step)[0], tuple(index.name for index in _indices(step))
        for read in reads(step, known):
            if read.index is not None:
                whole = _own(step, known) is not None and set(_running(read.index)) == set(running[:-1])
                yield name, read.index, read.start, whole


def _names(step: StepModel) -> tuple[str, ...]:
    match step:
        case LetModel(names=names) | ParamModel(names=names):
            return names
        case ScoreModel(name=name):
            return (name,)
        case _:
            return (step.site.name,)
