"""Lets with `from` that read one another, what is observed below them included, begin as the names of one pattern do.

`let season[t] = … season[t - 4] … from s0`, `let level[t] = … y[t] - season[t - 4] … level[t - 1] … from l0`,
`observe y[t] <- Normal(level[t - 1] + season[t - 4], s)`: each has the lag at which the group reads it
(docs/reference.md#recursions-and-chains).  Read off the trees, before any step is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from qvr_core.semantics.arithmetic.indices import ShiftedRead, shifted_reads
from qvr_core.semantics.scope.environment import Begun, Binding, StepContext
from qvr_core.semantics.scope.scope import Scope
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import TupleArith, Variable
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.tree.steps import LetStep, MarginalizeStep, ObserveStep, SampleStep
from qvr_core.syntax.tree.units import Placed
from qvr_core.syntax.walk import read_by, walk


@immutable
class Started:
    """A let with `from` that reads earlier elements along `index`, its axis `at`, over the set `over`."""

    names: tuple[str, ...]
    reads: tuple[tuple[ShiftedRead, ...], ...]
    """Of each name what its elements read at earlier ones."""
    at: int
    over: str


def group_lags(steps: Sequence[Placed[Item]], inputs: Mapping[str, Binding], scope: Scope) -> dict[str, Begun]:
    """How the names of such lets begin, of each group of several."""
    lets = {node.pattern.names[0].text: node for placed in steps if (node := _begins(placed)) is not None}
    if len(lets) < 2:
        return {}
    read: dict[str, frozenset[str]] = {}
    below = False
    for name, others in _mentions(steps):
        # what is read above the step that binds it is observed
        below = below or any(name in others for others in read.values())
        read[name] = others | read.get(name, frozenset())
    if not below:
        return {}
    ctx = StepContext(Scope(scope.globals, scope.unit, scope.owner, local=scope.local), dict(inputs))
    reached = {name: _reached(name, read) for name in lets}
    found: dict[str, Begun] = {}
    for name in lets:
        near = [other for other in lets if other in reached[name] and name in reached[other]]
        if name not in found and len(near) > 1:
            started = [one for other in near if (one := _started(lets[other], ctx)) is not None]
            for over in dict.fromkeys(one.over for one in started):
                found.update(_of_group([one for one in started if one.over == over]))
    return found


def _begins(placed: Placed[Item]) -> LetStep | None:
    node = placed.unit.node
    return (
        node if isinstance(node, LetStep) and node.binders and node.start is not None and node.pattern.names else None
    )


def _mentions(steps: Sequence[Placed[Item]]) -> Iterator[tuple[str, frozenset[str]]]:
    """Each name that steps bind, with the names that stand in what it is computed or drawn from."""
    for placed in steps:
        node = placed.unit.node
        if isinstance(node, LetStep):
            names, trees = node.pattern.names, [node.value]
        elif isinstance(node, SampleStep):
            names, trees = node.pattern.names, read_by(node)
        elif isinstance(node, ObserveStep | MarginalizeStep):
            names, trees = (node.name,), read_by(node)
        else:
            continue
        read = frozenset(one.name.text for tree in trees for one in walk(tree) if isinstance(one, Variable))
        yield from ((name.text, read) for name in names)
        yield from _mentions(placed.children)


def _reached(start: str, read: Mapping[str, frozenset[str]]) -> set[str]:
    """All that an element of a name is computed from, over other names."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        for name in read.get(pending.pop(), ()):
            if name not in seen:
                seen.add(name)
                pending.append(name)
    return seen


def _started(node: LetStep, ctx: StepContext) -> Started | None:
    """How a let looks back; None where it does not, or its names are not as many as its values."""
    names = tuple(name.text for name in node.pattern.names)
    trees = node.value.items if isinstance(node.value, TupleArith) and len(names) > 1 else (node.value,)
    reads = [tuple(shifted_reads(tree, node.binders, ctx)) for tree in trees]
    index = next((one.index for each in reads for one in each), None)
    at = next((at for at, binder in enumerate(node.binders) if binder.name.text == index), None)
    space = None if at is None else node.binders[at].space
    if at is None or len(trees) != len(names) or not isinstance(space, ObjectRef):
        return None
    along = tuple(tuple(one for one in each if one.index == index) for each in reads)
    return Started(names, along, at, space.name.text)


def _of_group(lets: Sequence[Started]) -> dict[str, Begun]:
    """As the names of one pattern: how far back the group reads a name, or what its own elements read of others."""
    if len(lets) < 2:
        return {}
    lags = {name: 0 for one in lets for name in one.names}
    for one in lets:
        for name, reads in zip(one.names, one.reads, strict=True):
            for read in reads:
                begins = read.name if read.name in lags else name
                lags[begins] = max(lags[begins], read.count)
    least = min(lag for lag in lags.values() if lag)
    return {
        name: Begun(one.at, lags[name] or least, (lags[name] or least) - least) for one in lets for name in one.names
    }
