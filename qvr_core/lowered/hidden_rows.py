"""`marginalize z : Row <- Categorical(w)` as a hidden value with an index, where each observed element reads one place.

`observe y : Row <- Normal(mu[z], s)` below it is `observe y[i : Row] <- Normal(mu[z[i]], s)`; below one of groups
(`[over=Group]`), of which each element names its own (`via=group`), it reads `z[group[i]]`.  Arguments get the axes
that those of such steps have: the elements', then one for the value before, then one for the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from qvr_core.lowered.tails import ANY
from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import Arrange, Bound, Builtin, Data, Expr, Index, IndexValue, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    Chain,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    RunningIndex,
    Site,
)
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.walk import operands, walk

_HIDDEN = ("Categorical", "Bernoulli")
_OPERATORS = frozenset(("add", "sub", "mul", "div", "pow", "neg", "lt", "le", "gt", "ge", "eq", "ne"))


class _Other(Exception):
    """A block, or what it reads, of another form."""


def with_places(program: Program) -> Program:
    """The program with such blocks as blocks with an index; others as they are."""
    kinds: dict[str, ValueType] = {}
    steps = tuple(_placed(step, kinds) if isinstance(step, MarginalizeModel) else step for step in program.steps)
    data = tuple(replace(item, type=kinds.get(item.name, item.type)) for item in program.data)
    return replace(program, steps=steps, data=data)


def _placed(step: MarginalizeModel, kinds: dict[str, ValueType]) -> MarginalizeModel:
    try:
        return _with_index(step, kinds)
    except _Other:
        return step


def _with_index(step: MarginalizeModel, kinds: dict[str, ValueType]) -> MarginalizeModel:
    site, draw, over = step.site, step.site.draw, step.over or step.rows
    if step.reads is not None or over is None or not isinstance(draw, FamilyDraw) or draw.family not in _HIDDEN:
        raise _Other
    groups, states = over.space, _states(step)
    if not isinstance(groups, Finite) or groups.nominal is None:
        raise _Other
    if any(option is not None for option in (site.via, site.at, site.mask, site.weight, site.lengths)):
        raise _Other
    reader = _Reader(site.name, groups, states, kinds)
    ranks = _ranks(draw)
    args = tuple((name, reader.prior(value, ranks[name])) for name, value in draw.args)
    body: list[ObserveModel] = []
    reads: list[tuple[Expr, ...]] = []
    for one in step.body:
        if isinstance(one, LetModel) and one.indexed is None and len(one.names) == 1:
            reader.lets[one.names[0]] = one.value
        elif isinstance(one, ObserveModel):
            made, place = _observed(one.site, reader)
            body.append(ObserveModel(site=made))
            reads.append((place,))
        else:
            raise _Other
    index = RunningIndex(name="", space=groups, lag=0)
    chain = Chain(indices=(index,), at=0, start=None)
    named = replace(site.bound[0][1], space=states)
    site = replace(site, draw=replace(draw, args=args), chain=chain, bound=((site.name, named),))
    return replace(step, site=site, body=tuple(body), reads=tuple(reads), over=None, rows=None)


def _states(step: MarginalizeModel) -> Finite:
    """The values of the hidden name."""
    draw = step.site.draw
    assert isinstance(draw, FamilyDraw)
    support = facts_of_draw(draw).support
    if support.kind == "finite" and support.high is not None:
        return Finite(int(support.high) + 1, None)
    space = step.site.bound[0][1].space
    if not isinstance(space, Finite):
        raise _Other
    return space


def _observed(site: Site, reader: _Reader) -> tuple[Site, Expr]:
    """An observed step, and the place that each of its elements reads."""
    draw, plate = site.draw, site.elementwise
    if not isinstance(draw, FamilyDraw) or draw.declared or draw.family not in FAMILIES or site.indices:
        raise _Other
    if plate is None or not isinstance(plate.space, Finite):
        raise _Other
    if site.chain is not None or site.at is not None or site.missing is not None or site.lengths is not None:
        raise _Other
    rows, groups = plate.space, site.via
    if groups is None:
        if rows.nominal != reader.groups.nominal:
            raise _Other
        kind = ValueType(rows, (rows.nominal,), sizes=(rows.size,))
        place: Expr = IndexValue(type=kind, origin=site.origin, name="", first=0, size=rows.size)
    else:
        if not isinstance(groups, Data):
            raise _Other
        kind = ValueType(reader.groups, (rows.nominal,), sizes=(rows.size,))
        place = groups = replace(groups, type=kind)
        reader.kinds[groups.name] = kind
    reader.rows = rows
    ranks = _ranks(draw)
    args = tuple((name, reader.wide(value, ranks[name], groups)) for name, value in draw.args)
    return replace(site, via=None, draw=replace(draw, args=args)), place


def _ranks(draw: FamilyDraw) -> Mapping[str, int]:
    family = FAMILIES[draw.family]
    return {name: one.rank for one in family.parameters for name in (one.name, *dict(one.alternatives))}


class _Reader:
    """What arguments are below a hidden name of some groups, for each of its states."""

    def __init__(self, name: str, groups: Finite, states: Finite, kinds: dict[str, ValueType]) -> None:
        self.name = name
        self.groups = self.rows = groups
        self.states = states
        self.kinds = kinds
        self.lets: dict[str, Expr] = {}
        self._by_row = False

    def prior(self, expr: Expr, rank: int) -> Expr:
        """An argument of the hidden name's own draw, (places, 1, 1, …)."""
        expr, known = self._by(expr, self.groups), axes(expr.type)
        if known is None or len(known) - rank > 1:
            raise _Other
        axes_of = (0, None, None, *range(1, 1 + rank))
        return Arrange(type=ANY, origin=expr.origin, base=expr, axes=axes_of) if len(known) > rank else expr

    def wide(self, expr: Expr, rank: int, via: Expr | None) -> Expr:
        """An argument whose last `rank` axes are a vector's, (elements, 1, states, …); `via` looks up the group of each
        element."""
        behind = range(2, 2 + rank)
        made = self._of_states(expr, rank, via)
        return Arrange(type=ANY, origin=expr.origin, base=made, axes=(0, None, 1, *behind)) if self._by_row else made

    def _of_states(self, expr: Expr, rank: int, via: Expr | None) -> Expr:
        """The same without the axis of length 1, or, where nothing is of an element, (states, …)."""
        self._by_row = False
        return self._within(expr, rank, via)

    def _within(self, expr: Expr, rank: int, via: Expr | None) -> Expr:
        if isinstance(expr, Bound) and expr.name in self.lets:
            return self._within(self.lets[expr.name], rank, via)
        if not self._reads(expr):
            return self._beside(expr, rank, via)
        match expr:
            case Bound():
                kind = ValueType(self.states, (None,), sizes=(self.states.size,))
                return IndexValue(type=kind, origin=expr.origin, name="", first=0, size=self.states.size)
            case Index(base=base, indices=indices) if not self._reads(base) and axes(base.type):
                return replace(expr, type=ANY, indices=tuple(self._within(one, 0, via) for one in indices))
            case Builtin(function=name, args=args) if not rank and not expr.keywords and _is_pointwise(name):
                return replace(expr, type=ANY, args=tuple(self._within(one, 0, via) for one in args))
            case _:
                raise _Other

    def _by(self, expr: Expr, over: Finite) -> Expr:
        """What data without a type look up, which have one for each element; raises `_Other` where nothing says over
        what an axis runs."""
        if not expr.type.indexed or expr.type.indexed[0] is not None:
            return expr
        if not isinstance(expr, Index) or len(expr.indices) != 1:
            raise _Other
        (index,), base = expr.indices, expr.base.type
        name, size = (*base.indexed, None)[0], (*base.sizes, None)[0]
        if not isinstance(index, Data) or index.type.space is not None or name is None or size is None:
            raise _Other
        kind = ValueType(Finite(size, set_of(name)), (over.nominal,), sizes=(over.size,))
        self.kinds[index.name] = kind
        return replace(expr, indices=(replace(index, type=kind),))

    def _reads(self, expr: Expr) -> bool:
        parts = list(walk(expr, operands))
        return any(isinstance(one, Bound) and (one.name == self.name or one.name in self.lets) for one in parts)

    def _beside(self, expr: Expr, rank: int, via: Expr | None) -> Expr:
        """An argument that reads no state."""
        expr, known = self._by(expr, self.rows), axes(expr.type)
        if known is None or len(known) - rank > 1:
            raise _Other
        if len(known) <= rank:
            return expr
        (_, first), *_ = known
        if via is not None and first is not None and set_of(first) == self.groups.nominal:
            expr = Index(type=ANY, origin=expr.origin, base=expr, indices=(via,))
        self._by_row = True
        return Arrange(type=ANY, origin=expr.origin, base=expr, axes=(0, None, *range(1, 1 + rank)))


def _is_pointwise(name: str) -> bool:
    known = BUILTINS.get(name)
    return name in _OPERATORS or (known is not None and known.rule == "pointwise")
