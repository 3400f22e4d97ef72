"""One step of a program: its place in the model, and the names that it binds (docs/reference.md#steps)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.ascribed_values import ascribed_value
from qvr_core.semantics.arithmetic.builtin_calls import check_pair
from qvr_core.semantics.arithmetic.elements.real_indices import is_real
from qvr_core.semantics.arithmetic.elements.two_valued_functions import pair_call
from qvr_core.semantics.arithmetic.ranges import range_of
from qvr_core.semantics.programs.chains.first_elements import report_idle_start
from qvr_core.semantics.programs.chains.ragged_data import with_lengths
from qvr_core.semantics.programs.chains.ragged_reads import lengths_text
from qvr_core.semantics.programs.data_agreement import agreed
from qvr_core.semantics.programs.families.counts import on_counts
from qvr_core.semantics.programs.families.gates import with_gate
from qvr_core.semantics.programs.families.named_bounds import bounded_site, has_named_bounds
from qvr_core.semantics.programs.families.sum_to_zero import sum_to_zero_site, summing_to_zero
from qvr_core.semantics.programs.indexed_steps import indexed_let, indexed_site
from qvr_core.semantics.programs.inlining import inlined
from qvr_core.semantics.programs.observed.computed import checked_computed
from qvr_core.semantics.programs.observed.data_lets import as_data, check_let_options, observed_let
from qvr_core.semantics.programs.site_ranges import drawn_range, part_of
from qvr_core.semantics.programs.sites import arrow_site, check_site
from qvr_core.semantics.programs.typed_sites import TypedSite
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.predictions import report_undrawn
from qvr_core.semantics.types.model.expressions import Bound, Builtin, DeductionRef, Expr, Function, ValueType
from qvr_core.semantics.types.model.steps import (
    IndexedValue,
    LetModel,
    ObserveModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    StepModel,
)
from qvr_core.semantics.types.program_codes import NO_DRAWS, PATTERN_MISMATCH
from qvr_core.semantics.types.spaces import Named, Product, Seq, Space, Unknown
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.tree.arithmetic import ArithCall, Lambda, ParenArith
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.steps import LetStep, ObserveStep, Pattern, PredictStep, SampleStep, ScoreStep

Bindings = list[tuple[str, Binding]]


def check_step(
    step: SampleStep | ObserveStep | PredictStep | LetStep | ScoreStep, ctx: StepContext
) -> tuple[StepModel, Bindings]:
    """A step without a body, typed."""
    if not isinstance(step, ScoreStep) and step.start is not None and not step.binders:
        report_idle_start(step.start.span, ctx)
    match step:
        case SampleStep():
            ctx.effects.add("Sample")
            return _sample(with_gate(step, ctx), ctx)
        case ObserveStep():
            ctx.effects.add("Score")
            let = observed_let(step, ctx)
            plain = step if let is None else replace(step, outcome=None)
            typed = agreed(step.name, _site("observe", step.name, with_gate(plain, ctx), ctx), ctx)
            binding = site_binding("observe", typed, ctx)
            site = replace(typed.site, bound=((step.name.text, typed.named),), type=typed.type, range=binding.range)
            if let is not None:
                check_let_options(step.name, site, ctx)
                return ObserveModel(site=replace(site, of_let=True)), []
            return ObserveModel(site=site), [(step.name.text, binding)]
        case PredictStep():
            ctx.effects.add("Sample")
            typed = _site("predict", step.name, with_gate(step, ctx), ctx)
            if typed.family is not None:
                report_undrawn(step, typed.family.family, ctx)
            site = replace(typed.site, bound=((step.name.text, typed.named),))
            return PredictModel(site=site), [(step.name.text, site_binding("predict", typed, ctx))]
        case LetStep():
            made, bindings = indexed_let(step, ctx) if step.binders else _let(step, ctx)
            return made, as_data(made, with_lengths(made, bindings, ctx), ctx)
        case ScoreStep():
            ctx.effects.add("Score")
            value = check_arith(step.value, ctx)
            origin = ctx.scope.origin(step.name.span)
            named = _named(value.type)
            binding = Binding("score", value.type, named, origin, frozenset(ctx.reaches))
            return ScoreModel(name=step.name.text, value=value, origin=origin), [(step.name.text, binding)]


def _site(kind: str, name: Name, step: SampleStep | ObserveStep | PredictStep, ctx: StepContext) -> TypedSite:
    if isinstance(step, ObserveStep) and step.outcome is not None:
        return checked_computed(step, partial(_site, kind, name), ctx)
    if isinstance(step, SampleStep) and (option := summing_to_zero(step)) is not None:
        return sum_to_zero_site(step, option, partial(_site, kind, name), ctx)
    if (counted := on_counts(step, ctx)) is not step:
        return _site(kind, name, counted, ctx)
    if has_named_bounds(step):
        return bounded_site(step, partial(_site, kind, name), ctx)
    if not step.binders:
        return check_site(kind, name, replace(step, bracket=None, start=None), ctx)
    return indexed_site(kind, name, step, ctx) or arrow_site(kind, name, step, ctx)


def site_binding(kind: str, typed: TypedSite, ctx: StepContext) -> Binding:
    """What the name of a site stands for in the steps below."""
    family = typed.family
    real = family is not None and not family.family.discrete and family.family.event == 0
    drawn = family.family.name if family is not None and kind == "sample" else None
    return Binding(
        kind,
        typed.type,
        typed.named,
        typed.site.origin,
        frozenset(ctx.reaches),
        real_site=real,
        family=drawn,
        range=drawn_range(kind, typed, ctx),
        lengths="" if typed.site.lengths is None else lengths_text(typed.site.lengths),
    )


def _named(kind: ValueType) -> Named:
    space: Space = Unknown() if kind.space is None else kind.space
    return Named(space, structure(space))


# ---------------------------------------------------------------- sample


def _sample(step: SampleStep, ctx: StepContext) -> tuple[StepModel, Bindings]:
    placed = inlined(step, ctx)
    if placed is not None:
        return placed
    names = step.pattern.names
    typed = _site("sample", names[0], step, ctx)
    if typed.family is not None and typed.family.family.improper:
        message = f"`{step.draw.name.text}` has no draws: NUTS fits it, but svi and draws from the prior are refused"
        ctx.scope.report(NO_DRAWS, message, step.draw.name.span)
    if not step.pattern.brackets:
        binding = site_binding("sample", typed, ctx)
        site = replace(typed.site, bound=((names[0].text, typed.named),), type=typed.type, range=binding.range)
        return SampleModel(site=site), [(names[0].text, binding)]
    parts = _parts(step.pattern, typed.type, f"`{step.draw.name.text}` gives", ctx)
    whole = site_binding("sample", typed, ctx)
    bindings: Bindings = []
    for name, part in zip(names, parts, strict=True):
        named = _named(part)
        bindings.append(
            (
                name.text,
                replace(
                    whole,
                    type=part,
                    named=named,
                    origin=ctx.scope.origin(name.span),
                    family=None,
                    range=part_of(whole.range),
                ),
            )
        )
    bound = tuple((name, binding.named) for name, binding in bindings)
    label = "_".join(name.text for name in names)
    return SampleModel(site=replace(typed.site, name=label, bound=bound, type=typed.type, range=whole.range)), bindings


def _parts(pattern: Pattern, kind: ValueType, gives: str, ctx: StepContext) -> list[ValueType]:
    """The types of the names of a pattern: one per factor."""
    space = kind.space.item if isinstance(kind.space, Seq) else kind.space
    count = len(pattern.names)
    unknown = [ValueType(None if space is None else Unknown(), rows=kind.rows)] * count
    if space is None or isinstance(space, Unknown):
        return unknown
    factors = space.factors if isinstance(space, Product) else (space,)
    if len(factors) != count:
        have = f"{len(factors)} parts" if isinstance(space, Product) else "one part"
        names = f"{count} name" + ("s" if count > 1 else "")
        ctx.scope.report(PATTERN_MISMATCH, f"{gives} {have}, but there are {names} here", pattern.span)
        return unknown
    sequence = isinstance(kind.space, Seq)
    return [ValueType(Seq(factor) if sequence else factor, kind.indexed, kind.rows, kind.sizes) for factor in factors]


# ---------------------------------------------------------------- let


def _pair(step: LetStep, call: ArithCall, ctx: StepContext) -> tuple[LetModel, Bindings]:
    """`let (values, vectors) = eigh(A)`: two values, each with its own axes."""
    names, origin = step.pattern.names, ctx.scope.origin(step.pattern.span)
    values = check_pair(call, ctx, check_arith) or [
        Builtin(type=ValueType(Unknown()), origin=origin, function=call.func.text, args=()) for _ in names
    ]
    reaches = frozenset(ctx.reaches)
    model = IndexedValue(indices=(), values=tuple(values), starts=(), recursive=False)
    let = LetModel(names=tuple(name.text for name in names), value=values[0], origin=origin, indexed=model)
    return let, [
        (name.text, Binding("let", value.type, _named(value.type), ctx.scope.origin(name.span), reaches))
        for name, value in zip(names, values, strict=True)
    ]


def _let(step: LetStep, ctx: StepContext) -> tuple[LetModel, Bindings]:
    call = pair_call(step.value, ctx)
    if call is not None and step.space is None and step.pattern.brackets and len(step.pattern.names) == 2:
        return _pair(step, call, ctx)
    value = check_arith(step.value, ctx) if step.space is None else ascribed_value(step, step.space, ctx)
    names = step.pattern.names
    origin = ctx.scope.origin(step.pattern.span)
    reaches = frozenset(ctx.reaches)
    model = LetModel(names=tuple(name.text for name in names), value=value, origin=origin)
    lies = range_of(value, ctx)
    if step.pattern.brackets and not (len(names) == 1 and not isinstance(value.type.space, Product)):
        parts = _parts(step.pattern, value.type, "the value has", ctx)
        return model, [
            (name.text, Binding("let", part, _named(part), ctx.scope.origin(name.span), reaches, range=part_of(lies)))
            for name, part in zip(names, parts, strict=True)
        ]
    binding = Binding(
        _kind(value, ctx),
        value.type,
        _let_named(value, ctx),
        origin,
        reaches,
        function=_function(step, value),
        real_site=is_real(value, ctx),
        range=lies,
    )
    return model, [(names[0].text, binding)]


def _let_named(value: Expr, ctx: StepContext) -> Named:
    if isinstance(value, Bound) and (binding := ctx.find(value.name)) is not None:
        return binding.named
    codomain = getattr(getattr(value, "arrow", None), "codomain", None)
    if isinstance(codomain, Named) and codomain.space == value.type.space:
        return codomain
    return _named(value.type)


def _kind(value: Expr, ctx: StepContext) -> str:
    if isinstance(value, Function):
        return "function"
    if isinstance(value, DeductionRef) or (isinstance(value, Builtin) and value.function == "compose"):
        return "deduction"
    if isinstance(value, Builtin) and value.function == "parse":
        return "chart"
    if isinstance(value, Bound) and (binding := ctx.find(value.name)) is not None and binding.kind in _ALIASED:
        return binding.kind
    return "let"


_ALIASED = ("chart", "deduction", "function")


def _function(step: LetStep, value: Expr) -> Lambda | None:
    tree = step.value
    while isinstance(tree, ParenArith):
        tree = tree.inner
    return tree if isinstance(tree, Lambda) and isinstance(value, Function) else None
