"""Which names a statement mentions, read off the tree: who must be checked again when a name changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from qvr_core.semantics.language.compositions import COMPOSITION
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tree.arithmetic import ArithCall, Binder, Comprehension, FactorIndex, Lambda, Variable
from qvr_core.syntax.tree.arrows import ArrowCall, ArrowRef
from qvr_core.syntax.tree.declarations import (
    CompositionRule,
    DataTypeDecl,
    DeductionHeader,
    FunctionParameter,
    Parameter,
    TransformationHeader,
)
from qvr_core.syntax.tree.deductions import AtomsItem, LexiconEntry, LexiconItem, RuleItem
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectRef, Size, SpaceExpr
from qvr_core.syntax.tree.options import CallValue, Formula, Option, Word
from qvr_core.syntax.tree.steps import (
    DataStep,
    Draw,
    LetStep,
    MarginalizeStep,
    ObserveStep,
    ParamStep,
    PredictStep,
    ReturnItem,
    SampleStep,
    ScoreStep,
)
from qvr_core.syntax.tree.units import Statement, Unit
from qvr_core.syntax.walk import children

# The name of something else that a node is.
_NAMES: dict[type[Any], Callable[[Any], Name]] = {
    ObjectRef: lambda node: node.name,
    ArrowRef: lambda node: node.name,
    ArrowCall: lambda node: node.func,
    Variable: lambda node: node.name,
    ArithCall: lambda node: node.func,
    Comprehension: lambda node: node.function,
    CallValue: lambda node: node.func,
    Draw: lambda node: node.name,
    ReturnItem: lambda node: node.name,
}

_BINDERS: dict[type[Any], Callable[[Any], tuple[Name, ...]]] = {
    SampleStep: lambda node: node.pattern.names,
    LetStep: lambda node: node.pattern.names,
    ObserveStep: lambda node: (node.name,),
    PredictStep: lambda node: (node.name,),
    DataStep: lambda node: node.names,
    ParamStep: lambda node: node.names,
    MarginalizeStep: lambda node: (node.name,),
    ScoreStep: lambda node: (node.name,),
    Parameter: lambda node: (node.name,),
    Lambda: lambda node: (node.parameter,),
    FactorIndex: lambda node: (node.name,),
    Binder: lambda node: (node.name,),
    FunctionParameter: lambda node: (node.name,),
    CompositionRule: lambda node: node.parameters or (),
}

_CLOSED = (AtomsItem, RuleItem, LexiconItem, LexiconEntry)
"""Lines whose names are their deduction's own."""


@immutable
class UnitReferences:
    """Names that one unit mentions, with their places in it, and names that it binds for its program."""

    mentions: tuple[tuple[str, Span], ...]
    names: frozenset[str]
    binds: frozenset[str]


@immutable
class References:
    """`reads`: every name whose meaning a check may look up.  `uses`: those that must be declarations of the file."""

    reads: frozenset[str]
    uses: frozenset[str]


NONE = UnitReferences((), frozenset(), frozenset())
NO_REFERENCES = References(frozenset(), frozenset())


def unit_references(unit: Unit[Any]) -> UnitReferences:
    """What one unit mentions; the same text is walked once."""
    if unit.node is None:
        if not unit.declares:
            return NONE
        declared = frozenset(name.text for name in unit.declares)
        return UnitReferences((), declared, declared)
    kind = cast("type[object]", type(unit.node))
    key = (unit.text, kind, unit.renamed)
    found = _known.get(key)
    if found is None:
        if len(_known) > 100_000:
            _known.clear()
        found = _known[key] = _walk(unit.node)
    return found


_known: dict[tuple[str, type[object], tuple[tuple[str, str], ...]], UnitReferences] = {}


class StatementReferences:
    """What all units of a statement mention, from one text of it to the next: only the lines that changed are read."""

    __slots__ = ("_binds", "_names", "_units")

    def __init__(self) -> None:
        self._units: list[Unit[Any]] = []
        self._names: Counter[str] = Counter()
        self._binds: Counter[str] = Counter()

    def update(self, statement: Statement) -> References:
        """What it mentions now."""
        header = statement.header
        closed = isinstance(header.unit.node, DeductionHeader)
        units = [header.unit] if closed else [placed.unit for placed in units_of(statement)]
        first, last = common_ends(self._units, units)
        for unit in self._units[first : len(self._units) - last]:
            self._count(unit, -1)
        for unit in units[first : len(units) - last]:
            self._count(unit, 1)
        self._units = units
        names, binds = self._names.keys(), self._binds.keys()
        # a name that is bound may hide a declaration, so its meaning is read as well
        return References(frozenset(names | binds), frozenset(names - binds))

    def _count(self, unit: Unit[Any], change: int) -> None:
        found = unit_references(unit)
        for tally, names in ((self._names, found.names), (self._binds, found.binds)):
            for name in names:
                tally[name] += change
                if not tally[name]:
                    del tally[name]


def common_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """How many items at the start, and how many of the others at the end, are the very same."""
    shorter = min(len(old), len(new))
    first = 0
    while first < shorter and old[first] is new[first]:
        first += 1
    last = 0
    while last < shorter - first and old[-1 - last] is new[-1 - last]:
        last += 1
    return first, last


def renew(index: dict[str, set[int]], uid: int, before: frozenset[str], now: frozenset[str]) -> None:
    """Bring an index of who mentions each name up to date: `uid` mentioned other names before."""
    for name in before - now:
        users = index[name]
        users.discard(uid)
        if not users:
            del index[name]
    for name in now - before:
        index.setdefault(name, set()).add(uid)


def mentions(statement: Statement, name: str) -> Iterator[tuple[int, Span]]:
    """(unit, span) of every place where a statement mentions a name."""
    for placed in units_of(statement):
        for text, span in unit_references(placed.unit).mentions:
            if text == name:
                yield placed.uid, span


def _walk(node: Any) -> UnitReferences:
    found: list[tuple[str, Span]] = []
    binds: set[str] = set()
    own = node.name.text if isinstance(node, DataTypeDecl) else ""  # whose terms hold one another
    pending: list[Any] = [] if isinstance(node, _CLOSED) else [node]
    while pending:
        item = pending.pop()
        kind = cast("type[Any]", type(item))
        if kind is Name:
            continue  # the node that it stands in says what it is
        if kind is Word or (kind is Size and isinstance(item.value, str)):
            found.append((item.text if kind is Word else item.value, item.span))
        elif kind is SpaceExpr:
            pending += reversed(item.sizes)
            bounds = () if item.options is None else item.options.items
            pending += [bound.value for bound in bounds if type(bound.value) is Formula]
        elif kind is not Option or item.key.text != "role":
            if (name := _NAMES.get(kind)) is not None:
                named = name(item)
                if named.text != own:
                    found.append((named.text, named.span))
            if (binder := _BINDERS.get(kind)) is not None:
                binds.update(name.text for name in binder(item))
            if kind is TransformationHeader:
                found += [(f"{COMPOSITION}{side.text}", side.span) for side in (item.source, item.target)]
            pending += reversed(children(item))
    return UnitReferences(tuple(found), frozenset(text for text, _ in found), frozenset(binds))
