"""Typing the steps of a program one after the other; a step that reads nothing new is taken over as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from qvr_core.semantics.programs.data_steps import check_data
from qvr_core.semantics.programs.guides.param_steps import check_param
from qvr_core.semantics.programs.marginals import check_marginalize, damaged_binding
from qvr_core.semantics.programs.step_results import (
    Changes,
    Pass,
    RecordingGlobals,
    StepResult,
    same_text,
    unit_identities,
)
from qvr_core.semantics.programs.steps import check_step
from qvr_core.semantics.programs.undeclared.aligned_data import alongside
from qvr_core.semantics.scope.bounds import MOST_OPERATIONS, too_many_operations
from qvr_core.semantics.scope.environment import Begun, Binding, StepContext
from qvr_core.semantics.scope.predictions import follow_predictions
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.internal_error import failure
from qvr_core.semantics.types.model.extents import ONE_STAGE
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.steps import (
    DataStep,
    LetStep,
    MarginalizeStep,
    ObserveStep,
    ParamStep,
    PredictStep,
    ReturnStep,
    SampleStep,
    ScoreStep,
)
from qvr_core.syntax.tree.units import Placed, Statement

DISCARD = "_"
"""In a pattern: a part that nobody wants."""


def type_steps(
    statement: Statement,
    one: Pass,
    inputs: dict[str, Binding],
    names: tuple[str, ...],
    lags: Mapping[str, Begun],
    scope: Scope,
) -> None:
    """Bring `one` up to date with the text, the header's bindings, the lags of groups and the file."""
    changes = Changes(set(), set(), one.stale(scope.globals), lags)
    for name in one.inputs.keys() | inputs.keys():
        changes.note(name, one.inputs.get(name), inputs.get(name))
    order = [placed for placed in statement.header.children if not isinstance(placed.unit.node, ReturnStep)]
    first, last = _common(order, one)
    bindings = dict(inputs)
    results = one.results[:first]
    fresh = not (changes.names or changes.places or changes.file) and lags == one.lags
    for index, before in enumerate(results):
        if not fresh:
            results[index] = _renewed(order[index], before, one, bindings, changes, names, scope)
        bindings.update(results[index].binds)
    gone = {name for result in one.results[first : len(one.results) - last] for name in result.binds}
    for placed in order[first : len(order) - last]:
        result = _check(placed, bindings, names, lags, scope)
        for name, binding in result.binds.items():
            changes.note(name, one.final.get(name), binding)
        gone.difference_update(result.binds)
        bindings.update(result.binds)
        results.append(result)
    changes.names |= gone
    tail = one.results[len(one.results) - last :] if last else []
    for placed, before in zip(order[len(order) - last :], tail, strict=True):
        result = _renewed(placed, before, one, bindings, changes, names, scope)
        bindings.update(result.binds)
        results.append(result)
    if len(one.earlier) > len(order):
        one.earlier = {placed.uid: one.earlier[placed.uid] for placed in order if placed.uid in one.earlier}
    one.inputs, one.order, one.results, one.final, one.lags = inputs, order, results, bindings, lags


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
    one: Pass,
    bindings: dict[str, Binding],
    changes: Changes,
    names: tuple[str, ...],
    scope: Scope,
) -> StepResult:
    if before.untouched(changes):
        return before
    result = one.earlier.get(placed.uid)
    if result is None or not same_text(placed, result.units) or not result.fits(bindings, changes.lags, scope.globals):
        result = _check(placed, bindings, names, changes.lags, scope)
    one.earlier[placed.uid] = before
    for name in before.binds.keys() | result.binds.keys():
        changes.note(name, before.binds.get(name), result.binds.get(name))
    return result


def _check(
    placed: Placed[Item],
    bindings: dict[str, Binding],
    names: tuple[str, ...],
    lags: Mapping[str, Begun],
    scope: Scope,
) -> StepResult:
    file = RecordingGlobals(scope.globals)
    own = Scope(
        file, placed.uid, scope.owner, scope.algebra, scope.local, scope.local_sizes, first_owner=scope.first_owner
    )
    begins = {one.text: lags[one.text] for one in placed.unit.declares if one.text in lags}
    ctx = StepContext(own, bindings, placed.unit.text, input_names=names, begins=begins)
    try:
        return _result(placed, bindings, file, ctx)
    except Exception as error:
        # what it did read decides whether it is checked again
        units = {one.uid: one.unit for one in _with_lines_below(placed)}
        at = own.unit if own.unit in units else placed.uid
        failed = Scope(file, placed.uid, scope.owner, scope.algebra)
        failed.diagnostics.append(failure(error, Origin(at, Span(0, len(units[at].text)))))
        damaged = StepContext(failed, bindings, placed.unit.text, reads=ctx.reads, input_names=names, begins=begins)
        result = _result(replace(placed, unit=replace(placed.unit, node=None)), bindings, file, damaged)
        return replace(result, units=unit_identities(placed))


def _with_lines_below(placed: Placed[Item]) -> Iterator[Placed[Item]]:
    yield placed
    for child in placed.children:
        yield from _with_lines_below(child)


def _result(placed: Placed[Item], bindings: dict[str, Binding], file: RecordingGlobals, ctx: StepContext) -> StepResult:
    own, node = ctx.scope, placed.unit.node
    ctx.tree = node
    model = None
    binds: list[tuple[str, Binding]] = []
    nested: tuple[tuple[str, Binding], ...] = ()
    if isinstance(node, DataStep):
        binds = check_data(node, ctx)
    elif isinstance(node, ParamStep):
        model, binds = check_param(node, ctx)
    elif isinstance(node, MarginalizeStep):
        block = check_marginalize(placed, node, ctx)
        model = block.model
        nested = tuple((name, binding) for name, binding in block.nested if name != DISCARD)
        ctx.effects.add("Marginal")
    elif isinstance(node, SampleStep | ObserveStep | PredictStep | LetStep | ScoreStep):
        model, binds = check_step(node, ctx)
    else:
        binds = [(name.text, damaged_binding(ctx, name.span)) for name in placed.unit.declares]
    if own.operations > MOST_OPERATIONS:
        too_many_operations(Span(0, len(placed.unit.text)), own)
        model, nested, ctx.inlined = None, (), ()
        binds = [(name.text, damaged_binding(ctx, name.span)) for name in placed.unit.declares]
    elif any(binding.kind == "function" for _, binding in binds) and _reads_damaged(ctx):
        binds = [(name.text, damaged_binding(ctx, name.span)) for name in placed.unit.declares]
    binds = follow_predictions(node, model, binds, ctx)
    # with what its block binds: an observed name may be declared above it, now or after an edit
    reads = frozenset(ctx.reads)
    return StepResult(
        units=unit_identities(placed),
        model=model,
        binds={name: binding for name, binding in binds if name != DISCARD},
        nested=nested,
        reads=reads,
        read={name: bindings[name] for name in reads if name in bindings},
        begins=ctx.begins,
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
        inlined=ctx.inlined,
        beside=None if ctx.inlined else alongside(model),
        inherited=tuple(ctx.inherited),
        lifts=frozenset(ctx.lifts),
        uses_input=ctx.uses_input,
        effects=frozenset(ctx.effects),
        plates=frozenset(ctx.plates),
        stages=own.stages if own.stages.count else ONE_STAGE,
    )


def _reads_damaged(ctx: StepContext) -> bool:
    return any(binding is not None and binding.kind == "damaged" for binding in ctx.reads.values())
