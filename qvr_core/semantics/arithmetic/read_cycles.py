"""What is observed may be read by steps above it, element by element: but no element may depend on itself.

`let v[t] = f(y[t])` above `observe y[t] <- Normal(0.0, v[t])` goes round in a circle; with `y[t - 1]` it does not.
So does `y[other[g], t]` of another series where the series are drawn along t, in whose order some step looks back.
And so does `y[0]`, or `y[t, a]` of an entry a: one of the elements that it makes is that very one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.scope.scope import ObjectEntry, Scope
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin
from qvr_core.semantics.types.program_codes import USED_BEFORE_BOUND
from qvr_core.semantics.types.spaces import Finite
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import (
    Arith,
    ArithCall,
    Binary,
    Binder,
    Comprehension,
    Gather,
    Literal,
    TupleArith,
    Variable,
)
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.tree.steps import LetStep, ObserveStep, SampleStep
from qvr_core.syntax.tree.units import Placed
from qvr_core.syntax.walk import children, read_by, walk


@immutable
class Read:
    """`y[t]` in a step that runs over t: the name, where it stands, and the text one element earlier.

    `along` are the sets at whose element the step is, too; `own` says that the step makes that very element, or, of an
    index that says one element for all, makes that one among others.
    """

    name: str
    place: Origin
    earlier: str | None
    along: frozenset[str]
    own: bool


def check_cycles(steps: Sequence[Placed[Item]], observed: Sequence[str], scope: Scope) -> None:
    """Report each of the observed names of which an element depends on itself, at the first read on the way round."""
    reads = dict(_all_reads(steps, dict(_indexed_steps(steps)), scope))
    own = {name: [read for read in each if read.own] for name, each in reads.items()}
    ordered = sorted(set(_looked_back(steps)))
    for name in observed:
        way = _way_back(name, own)
        for one in ordered if way is None else ():
            at_once = {other: [read for read in each if one in read.along] for other, each in reads.items()}
            way = way or _way_back(name, at_once)
        if way is not None:
            _report(name, way, scope)


@immutable
class _Indexed:
    """The indices of a step, and whether it counts: the total of a vector of counts, read off its entries, is no
    circle, for they are drawn given it."""

    binders: Sequence[Binder]
    counts: bool = False


def _indexed_steps(steps: Sequence[Placed[Item]]) -> Iterator[tuple[str, _Indexed]]:
    """The steps that have indices, by what they bind."""
    for step in steps:
        node = step.unit.node
        if isinstance(node, LetStep) and node.binders:
            yield from ((name.text, _Indexed(node.binders)) for name in node.pattern.names)
        elif isinstance(node, SampleStep | ObserveStep) and node.binders:
            family = FAMILIES.get(node.draw.name.text)
            names = node.pattern.names if isinstance(node, SampleStep) else (node.name,)
            yield from ((name.text, _Indexed(node.binders, family is not None and family.discrete)) for name in names)
        yield from _indexed_steps(step.children)


def _all_reads(
    steps: Sequence[Placed[Item]], made: Mapping[str, _Indexed], scope: Scope
) -> Iterator[tuple[str, list[Read]]]:
    for step in steps:
        node = step.unit.node
        if isinstance(node, LetStep) and node.binders:
            names = node.pattern.names
            value = node.value
            each: Sequence[Arith] = value.items if isinstance(value, TupleArith) else [value] * len(names)
            for name, entry in zip(names, each, strict=False):
                yield name.text, list(_reads([entry], node.binders, node.start is not None, step, made, scope))
        elif isinstance(node, ObserveStep | SampleStep) and node.binders:
            name = node.name if isinstance(node, ObserveStep) else next(iter(node.pattern.names), None)
            if name is not None:
                back = isinstance(node, ObserveStep) or node.start is not None
                yield name.text, list(_reads(read_by(node), node.binders, back, step, made, scope))
        yield from _all_reads(step.children, made, scope)


def _reads(
    trees: Sequence[Arith],
    binders: Sequence[Binder],
    back: bool,
    step: Placed[Item],
    made: Mapping[str, _Indexed],
    scope: Scope,
) -> Iterator[Read]:
    """What is read at the very element that a step makes."""
    own = [binder.name.text for binder in binders]
    sets = _sets(binders)
    always = {id(node) for tree in trees for node in unconditional(tree)}
    for node in (node for tree in trees for node in walk(tree)):
        if not isinstance(node, Gather) or not isinstance(node.base, Variable):
            continue
        places = [index.name.text if isinstance(index, Variable) else None for index in node.indices]
        moved = id(node) not in always or any(isinstance(index, Binary) for index in node.indices)
        along = frozenset[str]() if moved else frozenset(sets[place] for place in places if place in sets)
        same = places == own
        of = made.get(node.base.name.text, _Indexed(()))
        entry = len(node.indices) > len(of.binders)
        whole = same or (
            not moved and not (entry and of.counts) and makes_element(node.indices, of.binders, binders, scope)
        )
        if whole or along:
            text = step.unit.text
            earlier = f"{text[node.span.start : node.indices[-1].span.end]} - 1]" if back and same else None
            place = Origin(step.uid, Span(node.span.start, node.span.end))
            yield Read(node.base.name.text, place, earlier, along, whole)


def makes_element(indices: Sequence[Arith], over: Sequence[Binder], binders: Sequence[Binder], scope: Scope) -> bool:
    """Whether one of the elements that a step with `binders` makes reads, of a step with the indices `over`, the
    element that is as far along each set: by an index of its own, or the one that is named.  An entry of a vector, one
    index more, is of it."""
    here = _sets(binders)
    several = len(set(here.values())) < len(here)
    if not over or any(not isinstance(index, Literal | Variable) for index in indices[len(over) :]):
        return False
    for at, (index, binder) in enumerate(zip(indices, over, strict=False)):
        wanted = binder.space.name.text if isinstance(binder.space, ObjectRef) else None
        if isinstance(index, Literal) and isinstance(index.value, int):
            continue
        if not isinstance(index, Variable) or wanted is None:
            return False
        name = index.name.text
        if here.get(name) == wanted:
            # over one set twice, the order says which is which
            if several and (at >= len(binders) or binders[at].name.text != name):
                return False
        elif name in here or name not in _labels(wanted, scope):
            return False
    return True


def _labels(name: str, scope: Scope) -> Sequence[str]:
    """The names of a set's elements, where they have some."""
    entry = scope.lookup(name)
    space = entry.space.space if isinstance(entry, ObjectEntry) else None
    return space.labels or () if isinstance(space, Finite) else ()


def _sets(binders: Sequence[Binder]) -> dict[str, str]:
    """The sets of indices, by the indices."""
    return {one.name.text: one.space.name.text for one in binders if isinstance(one.space, ObjectRef)}


def unconditional(tree: Arith) -> Iterator[object]:
    """An expression's parts, but for those that a condition may keep from being read."""
    pending: list[Any] = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ArithCall) and node.func.text == "where":
            continue
        if not isinstance(node, Comprehension) or node.condition is None:
            pending += reversed(children(node))


def _looked_back(steps: Sequence[Placed[Item]]) -> Iterator[str]:
    """The sets along which some step reads earlier elements."""
    for step in steps:
        node = step.unit.node
        sets = _sets(getattr(node, "binders", ()) or ())
        for part in walk(node) if sets and node is not None else ():
            for index in part.indices if isinstance(part, Gather) else ():
                first = index
                while isinstance(first, Binary) and first.operator == "-":
                    first = first.left
                if first is not index and isinstance(first, Variable) and first.name.text in sets:
                    yield sets[first.name.text]
        yield from _looked_back(step.children)


def _way_back(name: str, reads: Mapping[str, list[Read]]) -> list[Read] | None:
    """The reads by which an element of `name` comes back to itself, the last of which reads `name`."""
    pending: list[list[Read]] = [[read] for read in reads.get(name, ())]
    seen: set[str] = set()
    while pending:
        way = pending.pop()
        last = way[-1].name
        if last == name:
            return way
        if last not in seen:
            seen.add(last)
            pending += [[*way, read] for read in reads.get(last, ())]
    return None


def _report(name: str, way: Sequence[Read], scope: Scope) -> None:
    last = way[-1]
    through = " and ".join(f"`{read.name}`" for read in way[:-1])
    message = f"`{name}` depends on itself at the same element" + (f", through {through}" if through else "")
    message += f"; an earlier one is `{last.earlier}`" if last.earlier is not None else ""
    fixes = ()
    if last.earlier is not None:
        fixes = (Fix(f"Change to `{last.earlier}`", (Edit(last.place, last.earlier),), True),)
    scope.report(USED_BEFORE_BOUND, message, last.place, fixes=fixes)
