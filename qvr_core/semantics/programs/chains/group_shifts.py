"""A shift along the rows of a table with groups: the row before may be of another group.

(docs/reference.md#recursions-and-chains)

Groups are what data look up for each row (`a[subject[i]]`) in a set that comes with the data: months, of which the file
says how many there are, are seasons of one series.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from qvr_core.semantics.scope.scope import ObjectEntry, Scope
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.diagnostics import Related
from qvr_core.semantics.types.model.programs import DataName
from qvr_core.semantics.types.program_codes import SHIFT_ACROSS_GROUPS
from qvr_core.semantics.types.spaces import Finite, Known, Linear
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, ArithCall, Binary, Binder, Gather, ParenArith, Variable
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.tree.options import Options
from qvr_core.syntax.tree.steps import LetStep, MarginalizeStep, ObserveStep, PredictStep, SampleStep
from qvr_core.syntax.tree.units import Placed
from qvr_core.syntax.walk import children, walk

Step = LetStep | SampleStep | ObserveStep | PredictStep | MarginalizeStep
_STEPS = (LetStep, SampleStep, ObserveStep, PredictStep, MarginalizeStep)


@immutable
class Shifted:
    """`y[i - 1]` in a step that runs over a set by `index`, and perhaps over `others`."""

    over: str
    others: frozenset[str]
    index: str
    gather: Gather
    at: Arith
    step: Placed[Item]


@immutable
class Rows:
    """A data name that says for each element of `over` which element of the set `groups` it belongs to."""

    name: DataName
    over: str
    groups: str


def check_group_shifts(steps: Sequence[Placed[Item]], data: Sequence[DataName], scope: Scope) -> None:
    """Warn once of each set along which a step shifts though a step looks up a group for each of its elements."""
    rows = [one for each in data if (one := _rows(each)) is not None]
    found = list(_shifts(steps, scope)) if rows else []
    shifted = {one.over for one in found}
    rows = [one for one in rows if one.over in shifted and one.groups not in shifted]
    if not rows:
        return
    nodes = list(_nodes(steps))
    picking = {name for _, node in nodes for name in _picked_by(node)}
    told: set[str] = set()
    for group in (one for one in rows if one.name.name in picking):
        apart = _kept_apart(group.name.name, nodes)
        first = next((one for one in found if _crosses(one, group) and one.step.uid not in apart), None)
        if first is not None and group.over not in told:
            told.add(group.over)
            _report(first, group, scope)


def _crosses(one: Shifted, group: Rows) -> bool:
    return one.over == group.over and group.groups not in one.others


def _rows(data: DataName) -> Rows | None:
    space, over = data.type.space, data.type.indexed
    if not isinstance(space, Finite) or len(over) != 1 or over[0] is None or space.nominal is None:
        return None
    with_data = isinstance(space.size, Linear) or (isinstance(space.size, Known) and space.size.hole)
    return Rows(data, set_of(over[0]), space.nominal) if with_data and space.nominal != set_of(over[0]) else None


def _nodes(steps: Sequence[Placed[Item]]) -> Iterator[tuple[Placed[Item], Step]]:
    for step in steps:
        node = step.unit.node
        if isinstance(node, _STEPS):
            yield step, node
        yield from _nodes(step.children)


# ---------------------------------------------------------------- shifts


def _shifts(steps: Sequence[Placed[Item]], scope: Scope) -> Iterator[Shifted]:
    for step, node in _nodes(steps):
        if not node.binders or _leaves_out(getattr(node, "options", None)):
            continue
        gathers = list(_unguarded(node))
        for binder in node.binders:
            for gather in gathers:
                at = next((index for index in gather.indices if _is_shift(index, binder.name.text)), None)
                if at is not None and (over := _set_of(binder, scope)) is not None:
                    sets = (_set_of(other, scope) for other in node.binders if other is not binder)
                    others = frozenset(name for name in sets if name is not None)
                    yield Shifted(over, others, binder.name.text, gather, at, step)


def _leaves_out(options: Options | None) -> bool:
    """Whether a step says which elements count."""
    return options is not None and any(option.key.text in ("mask", "weight") for option in options.items)


def _set_of(binder: Binder, scope: Scope) -> str | None:
    entry = scope.lookup(binder.space.name.text) if isinstance(binder.space, ObjectRef) else None
    space = entry.space.space if isinstance(entry, ObjectEntry) else None
    return space.nominal if isinstance(space, Finite) else None


def _unguarded(node: Step) -> Iterator[Gather]:
    """What a step reads by an index, but for what stands in a `where`."""
    pending: list[Any] = [node]
    while pending:
        found = pending.pop()
        if isinstance(found, Gather):
            yield found
        if not (isinstance(found, ArithCall) and found.func.text == "where"):
            pending += reversed(children(found))


def _is_shift(tree: Arith, index: str) -> bool:
    """Whether an index is `i - 1`, `i - 1 - j`."""
    tree = _bare(tree)
    first: Arith = tree
    while isinstance(first, Binary) and first.operator == "-":
        first = _bare(first.left)
    return first is not tree and isinstance(first, Variable) and first.name.text == index


def _bare(tree: Arith) -> Arith:
    while isinstance(tree, ParenArith):
        tree = tree.inner
    return tree


# ---------------------------------------------------------------- groups


def _picked_by(node: Step) -> Iterator[str]:
    """The names that stand in an index of what the step reads."""
    for gather in (one for one in walk(node) if isinstance(one, Gather)):
        for index in gather.indices:
            yield from (one.name.text for one in walk(index) if isinstance(one, Variable))


def _kept_apart(group: str, nodes: Sequence[tuple[Placed[Item], Step]]) -> set[int]:
    """The steps that compare the groups of two elements, or read a value that does."""
    apart = {step.uid for step, node in nodes if any(_compares(one, group) for one in walk(node))}
    names = {name for step, node in nodes if step.uid in apart for name in _names(node)}
    while True:
        more = [(s, n) for s, n in nodes if s.uid not in apart and not names.isdisjoint(_read(n))]
        if not more:
            return apart
        apart |= {step.uid for step, _ in more}
        names |= {name for _, node in more for name in _names(node)}


def _compares(node: object, group: str) -> bool:
    """`subject[i] == subject[i - 1]`."""
    if not isinstance(node, Binary) or node.operator not in ("==", "!="):
        return False
    return all(
        isinstance(side, Gather) and isinstance(side.base, Variable) and side.base.name.text == group
        for side in (_bare(node.left), _bare(node.right))
    )


def _names(node: Step) -> tuple[str, ...]:
    if isinstance(node, LetStep | SampleStep):
        return tuple(name.text for name in node.pattern.names)
    return (node.name.text,)


def _read(node: Step) -> set[str]:
    return {one.name.text for one in walk(node) if isinstance(one, Variable)}


def _report(shifted: Shifted, group: Rows, scope: Scope) -> None:
    text, name = shifted.step.unit.text, group.name.name
    read = text[shifted.gather.span.start : shifted.gather.span.end]
    here = text[shifted.at.span.start : shifted.at.span.end]
    message = (
        f"`{read}` is an earlier {group.over}, also where `{name}` changes: there it belongs to another "
        f"{group.groups}. Index by [g : {group.groups}, t : …] with a set of times, or weigh it with "
        f"`{name}[{shifted.index}] == {name}[{here}]`"
    )
    word = "is declared" if group.name.declared else "is read"
    related = (Related(f"`{name}` {word} here", group.name.origin),)
    scope.unit = shifted.step.uid
    scope.report(SHIFT_ACROSS_GROUPS, message, shifted.at.span, related)
