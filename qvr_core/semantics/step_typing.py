"""Typing the steps of a program one after the other; a step that reads nothing new is taken over as it was."""

from __future__ import annotations

from qvr_core.semantics.environment import Binding, StepContext
from qvr_core.semantics.marginals import check_marginalize, damaged_binding
from qvr_core.semantics.scope import Scope
from qvr_core.semantics.spaces import Linear, sizes
from qvr_core.semantics.step_results import Pass, RecordingGlobals, StepResult, same_text, units_of
from qvr_core.semantics.steps import check_step
from qvr_core.syntax.tree import (
    Item,
    LetStep,
    MarginalizeStep,
    ObserveStep,
    Placed,
    ReturnStep,
    SampleStep,
    ScoreStep,
    Statement,
)


def type_steps(
    statement: Statement, one: Pass, inputs: dict[str, Binding], names: tuple[str, ...], scope: Scope
) -> None:
    """Bring `one` up to date with the text, the header's bindings and the file."""
    stale = one.stale(scope.globals)
    changed = _take_inputs(one, inputs)
    order = [placed for placed in statement.header.children if not isinstance(placed.unit.node, ReturnStep)]
    first, last = _common(order, one)
    bindings = dict(one.inputs)
    results = one.results[:first]
    if changed or stale:
        for index in range(first):
            results[index] = _renewed(order[index], results[index], bindings, changed, stale, names, scope)
            bindings.update(results[index].binds)
    else:
        for result in results:
            bindings.update(result.binds)
    old_middle = {
        placed.uid: result
        for placed, result in zip(one.order[first : len(one.order) - last], one.results[first:], strict=False)
    }
    for placed in order[first : len(order) - last]:
        result = _check(placed, bindings, names, old_middle.get(placed.uid), scope)
        changed.update(name for name, binding in result.binds.items() if one.final.get(name) is not binding)
        bindings.update(result.binds)
        results.append(result)
    kept = {name for result in results[first:] for name in result.binds}
    changed.update(name for result in old_middle.values() for name in result.binds if name not in kept)
    tail = one.results[len(one.results) - last :] if last else []
    for placed, before in zip(order[len(order) - last :], tail, strict=True):
        result = _renewed(placed, before, bindings, changed, stale, names, scope)
        bindings.update(result.binds)
        results.append(result)
    one.order, one.results, one.final = order, results, bindings


def _take_inputs(one: Pass, inputs: dict[str, Binding]) -> set[str]:
    """Keep the input bindings that say the same as before; the names of the others."""
    kept = {name: _kept(one.inputs.get(name), binding) for name, binding in inputs.items()}
    changed = {name for name in one.inputs.keys() | kept.keys() if one.inputs.get(name) is not kept.get(name)}
    one.inputs = kept
    return changed


def _common(order: list[Placed[Item]], one: Pass) -> tuple[int, int]:
    """How many steps at the start and at the end are what they were."""
    shorter = min(len(order), len(one.order))
    first = 0
    while first < shorter and _same(order[first], one, first):
        first += 1
    last = 0
    while last < shorter - first and _same(order[-1 - last], one, len(one.order) - 1 - last):
        last += 1
    return first, last


def _same(placed: Placed[Item], one: Pass, index: int) -> bool:
    before = one.order[index]
    return placed is before or (placed.uid == before.uid and same_text(placed, one.results[index].units))


def _renewed(
    placed: Placed[Item],
    before: StepResult,
    bindings: dict[str, Binding],
    changed: set[str],
    stale: set[str],
    names: tuple[str, ...],
    scope: Scope,
) -> StepResult:
    if before.untouched(changed, stale):
        return before
    result = _check(placed, bindings, names, before, scope)
    changed.update(name for name, binding in result.binds.items() if before.binds.get(name) is not binding)
    changed.update(name for name in before.binds if name not in result.binds)
    return result


def _kept(before: Binding | None, now: Binding) -> Binding:
    """The earlier binding where both say the same, so that what has read it stays valid."""
    return before if before is not None and _key(before) == _key(now) else now


def _key(binding: Binding) -> tuple[object, ...]:
    # equality of spaces looks at neither the spelling nor the variables behind the sizes
    space = binding.named.space
    forms = tuple(size if isinstance(size, Linear) else getattr(size, "form", None) for size in sizes(space))
    return binding, binding.named.written, forms


def _check(
    placed: Placed[Item],
    bindings: dict[str, Binding],
    names: tuple[str, ...],
    before: StepResult | None,
    scope: Scope,
) -> StepResult:
    file = RecordingGlobals(scope.globals)
    own = Scope(
        file, placed.uid, scope.owner, scope.algebra, scope.local, scope.local_sizes, first_owner=scope.first_owner
    )
    ctx = StepContext(own, bindings, placed.unit.text, input_names=names)
    node = placed.unit.node
    model = None
    binds: list[tuple[str, Binding]] = []
    nested: tuple[tuple[str, Binding], ...] = ()
    if isinstance(node, MarginalizeStep):
        block = check_marginalize(placed, node, ctx)
        model, nested = block.model, block.nested
        ctx.effects.add("Marginal")
    elif isinstance(node, SampleStep | ObserveStep | LetStep | ScoreStep):
        model, binds = check_step(node, ctx)
    else:
        binds = [(name.text, damaged_binding(ctx, name.span)) for name in placed.unit.declares]
    old = before.binds if before is not None else {}
    inner = {name for name, _ in nested}
    return StepResult(
        units=units_of(placed),
        model=model,
        binds={name: _kept(old.get(name), binding) for name, binding in binds},
        nested=nested,
        reads=frozenset(ctx.reads.keys() - inner) if inner else frozenset(ctx.reads),
        entries=file.entries,
        sizes=file.sizes,
        diagnostics=tuple(own.diagnostics),
        equations=tuple(own.equations),
        unknown_names=tuple(own.unknown_names),
        size_places=own.size_places,
        size_values=own.size_values,
        holes=own.holes,
        free=tuple(ctx.free),
        data=ctx.data,
        lifts=frozenset(ctx.lifts),
        uses_input=ctx.uses_input,
        effects=frozenset(ctx.effects),
        plates=frozenset(ctx.plates),
    )
