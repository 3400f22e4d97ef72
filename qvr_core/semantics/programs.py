"""Programs: the typed do-block, step by step (LANGUAGE.md 6).

A step is checked again only where its own text or something that it reads has changed: `step_results`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from qvr_core.semantics.density import DETERMINISTIC
from qvr_core.semantics.diagnostics import Edit, Fix, Origin, Severity
from qvr_core.semantics.environment import Binding, StepContext
from qvr_core.semantics.marginals import check_marginalize, damaged_binding
from qvr_core.semantics.model import Program, Sort, ValueType
from qvr_core.semantics.objects import check_object_expr
from qvr_core.semantics.program_codes import EFFECT_MISMATCH, MISSING_RETURN, UNUSED_EFFECT
from qvr_core.semantics.program_density import program_density, program_sort
from qvr_core.semantics.program_inputs import (
    Argument,
    InputFactor,
    check_inputs,
    check_template,
    declared_effects,
    flat_names,
    input_bindings,
    model_inputs,
)
from qvr_core.semantics.program_rules import (
    Bound,
    bind,
    check_free,
    check_local_name,
    check_paths,
    check_unused,
)
from qvr_core.semantics.returns import Returned, check_return
from qvr_core.semantics.scope import Globals, Scope
from qvr_core.semantics.spaces import Linear, Named, sizes
from qvr_core.semantics.step_results import RecordingGlobals, StepResult, units_of
from qvr_core.semantics.steps import check_step
from qvr_core.syntax.tree import (
    Item,
    LetStep,
    MarginalizeStep,
    ObserveStep,
    Placed,
    ProgramHeader,
    ReturnStep,
    SampleStep,
    ScoreStep,
    Span,
    Statement,
)


@dataclass(slots=True)
class Pass:
    """The step results of one reading of a program: which inputs were sequences, and what the header bound."""

    bindings: dict[str, Binding] = field(default_factory=dict[str, Binding])
    results: dict[int, StepResult] = field(default_factory=dict[int, StepResult])


Memory = dict[frozenset[str], Pass]
_memories: WeakKeyDictionary[Globals, dict[int, Memory]] = WeakKeyDictionary()
"""Per file and statement: the passes of the last check."""


def check_program(statement: Statement, scope: Scope, arguments: Mapping[str, Argument] | None = None) -> Program:
    """The typed program; `arguments` fill in its typed parameters (symbols stand for them otherwise)."""
    header = statement.header.unit.node
    assert isinstance(header, ProgramHeader)
    template, parameters = check_template(header, scope, arguments)
    domain = check_object_expr(header.domain, scope)
    codomain = check_object_expr(header.codomain, scope)
    effects = declared_effects(header, scope)
    factors = check_inputs(header, domain, scope)
    for factor in factors:
        if factor.given:
            check_local_name(
                factor.name, Binding("input", ValueType(None), factor.named, scope.origin(factor.span)), scope
            )
    memory = _memory(statement, scope) if arguments is None else {}
    typed = _read(statement, factors, parameters, memory, scope)
    returned = _returned(statement, typed, codomain, scope)
    done = frozenset[str]().union(*(result.effects for result in typed.results))
    if effects is not None:
        scope.unit = statement.uid
        _check_effects(effects[0], effects[1].span, done, scope)
    data = check_free(typed.results, Bound(typed.bindings, typed.inner), scope)
    _check_whole(typed, returned, scope)
    scope.unit = statement.uid
    steps = tuple(result.model for result in typed.results if result.model is not None)
    items = () if returned is None else returned.items
    sort = program_sort(steps)
    return Program(
        name=header.name.text,
        inputs=model_inputs(factors, typed.bindings),
        template=template,
        declared_domain=domain,
        declared_codomain=codomain,
        domain=typed.whole,
        codomain=codomain if returned is None else returned.codomain,
        sort=sort,
        steps=steps,
        returns=items,
        tupled=returned is not None and returned.tupled,
        data=data,
        uses_input=typed.uses_input,
        effects=done or frozenset(("Pure",)),
        density=program_density(steps, [name for _, name in items]) if sort is Sort.SAMPLED else DETERMINISTIC,
        origin=scope.origin(header.name.span),
    )


def _memory(statement: Statement, scope: Scope) -> Memory:
    try:
        return _memories.setdefault(scope.globals, {}).setdefault(statement.uid, {})
    except TypeError:
        return {}


# ---------------------------------------------------------------- steps


@dataclass(frozen=True, slots=True)
class Reading:
    """All steps, typed: what they bind, and the `return` line."""

    results: tuple[StepResult, ...]
    bindings: dict[str, Binding]
    inner: dict[str, Binding]
    whole: Named
    uses_input: bool
    final: Placed[Item] | None
    damaged_return: bool


def _read(
    statement: Statement,
    factors: tuple[InputFactor, ...],
    parameters: Mapping[str, Binding],
    memory: Memory,
    scope: Scope,
) -> Reading:
    """Type the steps; once more with some inputs as sequences where an arrow wants them so."""
    lifted: frozenset[str] = frozenset()
    visited: set[frozenset[str]] = set()
    while True:
        visited.add(lifted)
        one = memory.setdefault(lifted, Pass())
        fresh, whole = input_bindings(factors, lifted, scope)
        fresh.update(parameters)
        one.bindings = {name: _kept(one.bindings.get(name), binding) for name, binding in fresh.items()}
        results = _steps(statement, one, flat_names(factors), scope)
        wanted = lifted.union(*(result.lifts for _, result in results))
        if wanted == lifted:
            break
        lifted = wanted
    for key in [key for key in memory if key not in visited]:
        del memory[key]
    return _assemble(statement, results, one, whole, scope)


def _kept(before: Binding | None, now: Binding) -> Binding:
    """The earlier binding where both say the same, so that what has read it stays valid."""
    return before if before is not None and _key(before) == _key(now) else now


def _key(binding: Binding) -> tuple[object, ...]:
    space = binding.named.space
    forms = tuple(size if isinstance(size, Linear) else getattr(size, "form", None) for size in sizes(space))
    return binding, binding.named.written, forms


def _steps(
    statement: Statement, one: Pass, names: tuple[str, ...], scope: Scope
) -> list[tuple[Placed[Item], StepResult]]:
    bindings = dict(one.bindings)
    found: list[tuple[Placed[Item], StepResult]] = []
    kept: dict[int, StepResult] = {}
    for placed in statement.header.children:
        if isinstance(placed.unit.node, ReturnStep):
            continue
        units = units_of(placed)
        result = one.results.get(placed.uid)
        if result is None or not result.holds(units, bindings, scope.globals):
            result = _check(placed, units, bindings, names, result, scope)
        kept[placed.uid] = result
        bindings.update(result.binds)
        found.append((placed, result))
    one.results = kept
    return found


def _check(
    placed: Placed[Item],
    units: tuple[Any, ...],
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
    old = dict(before.binds) if before is not None else {}
    inner = {name for name, _ in nested}
    return StepResult(
        units=units,
        model=model,
        binds=tuple((name, _kept(old.get(name), binding)) for name, binding in binds),
        nested=nested,
        reads=tuple((name, binding) for name, binding in ctx.reads.items() if name not in inner),
        entries=tuple(file.entries.items()),
        sizes=tuple(file.sizes.items()),
        diagnostics=tuple(own.diagnostics),
        equations=tuple(own.equations),
        unknown_names=tuple(own.unknown_names),
        size_places=own.size_places,
        size_values=own.size_values,
        holes=own.holes,
        free=tuple(ctx.free),
        data=tuple(ctx.data.items()),
        lifts=frozenset(ctx.lifts),
        uses_input=ctx.uses_input,
        effects=frozenset(ctx.effects),
    )


def _assemble(
    statement: Statement, found: Sequence[tuple[Placed[Item], StepResult]], one: Pass, whole: Named, scope: Scope
) -> Reading:
    bindings = dict(one.bindings)
    inner: dict[str, Binding] = {}
    for placed, result in found:
        result.write_to(scope)
        for name, binding in result.binds:
            scope.unit = placed.uid
            bind(name, binding, bindings, scope)
        if result.nested:
            block = dict(bindings)
            for name, binding in result.nested:
                bind(name, binding, block, scope)
                inner[name] = binding
    returns = [p for p in statement.header.children if isinstance(p.unit.node, ReturnStep)]
    return Reading(
        results=tuple(result for _, result in found),
        bindings=bindings,
        inner=inner,
        whole=whole,
        uses_input=any(result.uses_input for _, result in found) or _returns_input(returns, one.bindings),
        final=returns[0] if returns else None,
        damaged_return=any(p.unit.node is None and p.unit.keyword == "return" for p in statement.header.children),
    )


def _returns_input(returns: Sequence[Placed[Item]], inputs: Mapping[str, Binding]) -> bool:
    names = {item.name.text for p in returns if isinstance(p.unit.node, ReturnStep) for item in p.unit.node.items}
    return any(name in names and binding.kind == "input" for name, binding in inputs.items())


# ---------------------------------------------------------------- the whole


def _returned(statement: Statement, typed: Reading, codomain: Named, scope: Scope) -> Returned | None:
    if typed.final is not None:
        node = typed.final.unit.node
        assert isinstance(node, ReturnStep)
        scope.unit = typed.final.uid
        return check_return(node, typed.bindings, typed.inner, codomain, typed.uses_input, scope)
    if not typed.damaged_return:
        _missing_return(statement, typed, scope)
    return None


def _missing_return(statement: Statement, typed: Reading, scope: Scope) -> None:
    header = statement.header
    node = header.unit.node
    assert isinstance(node, ProgramHeader)
    fixes: tuple[Fix, ...] = ()
    last = next((names[-1] for r in reversed(typed.results) if (names := [n for n, _ in r.binds])), None)
    if last is not None and header.children:
        place, column = _last_line(header.children[-1]), header.children[0].column
        edit = Edit(place, f"\n{' ' * column}return {last}", "after")
        fixes = (Fix(f"Add `return {last}`", (edit,), True),)
    scope.unit = statement.uid
    scope.report(MISSING_RETURN, f"`{node.name.text}` does not say what it returns", node.name.span, fixes=fixes)


def _last_line(placed: Placed[Item]) -> Origin:
    while placed.children:
        placed = placed.children[-1]
    return Origin(placed.uid, Span(0, len(placed.unit.text)))


def _check_whole(typed: Reading, returned: Returned | None, scope: Scope) -> None:
    """Hints about what nothing uses; a program with mistakes is left alone, they may be why."""
    wrong = scope.unknown_names or any(d.code.severity is Severity.ERROR for d in scope.diagnostics)
    if wrong or returned is None:
        return
    names = [name for _, name in returned.items]
    check_unused(typed.results, typed.bindings, names, scope)
    check_paths(typed.results, names, scope)


def _check_effects(declared: frozenset[str], span: Span, done: frozenset[str], scope: Scope) -> None:
    missing = sorted(done - declared)
    if missing:
        words = ", ".join(f"`{name}`" for name in missing)
        body = "has the effect" if len(missing) == 1 else "has the effects"
        scope.report(EFFECT_MISMATCH, f"the body {body} {words}, which `effects=` does not list", span)
        return
    surplus = sorted(declared - done - {"Pure"})
    if "Pure" in declared and done:
        surplus.append("Pure")
    if surplus:
        words = ", ".join(f"`{name}`" for name in surplus)
        scope.report(UNUSED_EFFECT, f"the body does not have the effect {words}", span)
