"""Names in brackets that nobody binds: indices of other steps and labels of other sets, which are no data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property

from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.arithmetic.labels import listed_labels
from qvr_core.semantics.programs.step_cycles import StepReads
from qvr_core.semantics.programs.step_results import Block
from qvr_core.semantics.scope.environment import Binding, FreeName
from qvr_core.semantics.scope.scope import ObjectEntry, Scope
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin, within
from qvr_core.semantics.types.program_codes import INDEX_MISMATCH, UNKNOWN_LABEL, USED_BEFORE_BOUND
from qvr_core.semantics.types.spaces import Finite, Unknown
from qvr_core.syntax.tree.arithmetic import Binder, Gather, Variable
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.tree.units import Placed
from qvr_core.syntax.walk import walk

NAMELESS = "no set"
"""Of an axis that runs over none."""


class Lines:
    """The lines of a program, by the units that stand in them; gone over once, when the first is asked for."""

    def __init__(self, steps: Sequence[Placed[Item]]) -> None:
        self._steps = steps
        self.reads = StepReads(steps)

    @cached_property
    def _by_unit(self) -> Mapping[int, Placed[Item]]:
        return {part.uid: step for step in self._steps for part in _units(step)}

    @cached_property
    def indices(self) -> Set[str]:
        """The indices of all of them."""
        return {binder.name.text for step in self._steps for binder in _binders(step)}

    def holding(self, unit: int) -> Placed[Item] | None:
        """The line that a unit belongs to, itself or below it."""
        return self._by_unit.get(unit)


def check_index_of_others(free: FreeName, names: Mapping[str, Binding], lines: Lines, scope: Scope) -> None:
    """An element picked by a name that nobody binds here, and that other steps have as their index."""
    step = lines.holding(free.origin.unit) if free.name in lines.indices else None
    over = None if step is None else _indexed_by(free, step, names)
    if step is not None and over is not None:
        here = [one.name.text for one in _binders(step) if _set_name(one) == over]
        if free.name in here:  # behind `from`, where it is not yet bound
            message = (
                f"`{free.name}` is not known behind `from`: the first elements stand there, before `{free.name}` runs"
            )
            scope.report(INDEX_MISMATCH, message, free.origin)
            return
        message = f"`{free.name}` is an index of other steps, not of this one"
        message += f"; did you mean `{here[0]}`?" if here else ""
        fixes = (Fix(f"Change to `{here[0]}`", (Edit(free.origin, here[0]),), True),) if here else ()
        scope.report(INDEX_MISMATCH, message, free.origin, fixes=fixes)


def check_label_of_others(free: FreeName, owner: str, names: Mapping[str, Binding], lines: Lines, scope: Scope) -> None:
    """An element of one set where an axis runs over another; of a read that is an error itself, nothing is said."""
    told = [one.place for one in scope.diagnostics if one.code is USED_BEFORE_BOUND]
    if any(isinstance(place, Origin) and within(free.origin, place) for place in told):
        return
    step = lines.holding(free.origin.unit)
    over = None if step is None else _indexed_by(free, step, names)
    if over == NAMELESS:
        message = f"`{free.name}` is an element of `{owner}`, and no set says which element is meant here"
        advice = "its elements are numbered from 0, or declare over which set the value runs"
        scope.report(UNKNOWN_LABEL, f"{message}: {advice}", free.origin)
    elif over:
        entry = scope.lookup(over)
        own = entry.space.space if isinstance(entry, ObjectEntry) else None
        labels = own.labels if isinstance(own, Finite) else None
        if labels is not None and free.name in labels:  # of what is observed below
            message = f"`{free.name}` is an element of `{over}`, but which sets the axes have is said only below"
            scope.report(UNKNOWN_LABEL, f"{message}: declare it above, `data … : … * {over}`", free.origin)
            return
        message = f"`{free.name}` is an element of `{owner}`, and an element of `{over}` is wanted"
        message += "" if labels is None else f": those are {listed_labels(labels)}"
        scope.report(UNKNOWN_LABEL, message, free.origin)


def label_owners(blocks: Sequence[Block], names: Mapping[str, Binding], scope: Scope) -> dict[str, str]:
    """The set of each label, of the sets that the program speaks of."""
    sets = set[str]().union(*(block.plates for block in blocks))
    sets.update(name for one in names.values() for name in one.type.indexed if name is not None)
    entries = [(name, scope.lookup(name)) for name in sorted(sets)]
    spaces = [(name, entry.space.space) for name, entry in entries if isinstance(entry, ObjectEntry)]
    return {label: name for name, own in spaces if isinstance(own, Finite) for label in own.labels or ()}


def _binders(step: Placed[Item]) -> Iterator[Binder]:
    """The indices of a step and of the steps below it."""
    yield from getattr(step.unit.node, "binders", ())
    for child in step.children:
        yield from _binders(child)


def _set_name(binder: Binder) -> str | None:
    return binder.space.name.text if isinstance(binder.space, ObjectRef) else None


def _indexed_by(free: FreeName, step: Placed[Item], names: Mapping[str, Binding]) -> str | None:
    """The set of the axis that a name stands for in a bracket of a step; '' where that is not known."""
    for part in _units(step):
        if part.uid != free.origin.unit or part.unit.node is None:
            continue
        for node in walk(part.unit.node):
            if not isinstance(node, Gather) or not isinstance(node.base, Variable):
                continue
            for at, index in enumerate(node.indices):
                if isinstance(index, Variable) and index.name.span == free.origin.span:
                    binding = names.get(node.base.name.text)
                    if binding is None or isinstance(binding.type.space, Unknown):
                        return ""
                    shape = axes(binding.type) or []
                    return (shape[at][1] or NAMELESS) if at < len(shape) else NAMELESS
    return None


def _units(step: Placed[Item]) -> Iterator[Placed[Item]]:
    yield step
    for child in step.children:
        yield from _units(child)
