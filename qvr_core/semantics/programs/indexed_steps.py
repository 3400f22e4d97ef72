"""Steps written with indices: `let v[t : Time] = … from …`, `observe y[i : Row] <- …` (docs/reference.md#indices)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from qvr_core.operations.intervals import ANYTHING
from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import (
    event_axes,
    is_data,
    with_axes,
)
from qvr_core.semantics.arithmetic.elements.real_indices import is_real
from qvr_core.semantics.arithmetic.indices import Lag, beginning, lags, lags_by_name, mentions, running
from qvr_core.semantics.arithmetic.labels import only_as_label
from qvr_core.semantics.arithmetic.mixture_draws import family_of
from qvr_core.semantics.arithmetic.own_reads import check_alike, check_elements, reads_itself
from qvr_core.semantics.arithmetic.ranges import range_of
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.programs.ascriptions import ascribe, ascribe_elements, plates_over
from qvr_core.semantics.programs.chains.along import Along, along_of, laid_out, outside, outside_of
from qvr_core.semantics.programs.chains.entries import by_entry, other_count, start_by_entry
from qvr_core.semantics.programs.chains.equations import check_solve, solve_call
from qvr_core.semantics.programs.chains.first_elements import (
    check_first,
    check_start,
    entries_of,
    first_draw,
    first_vector,
    named,
    own_binding,
    report_missing_start,
    starts_of,
    unknown_binding,
)
from qvr_core.semantics.programs.chains.ragged import checked_lengths
from qvr_core.semantics.programs.families.narrowed import family_on, narrowed
from qvr_core.semantics.programs.family_draws import check_family
from qvr_core.semantics.programs.observed.censoring_and_truncation import check_limits, check_option_axes
from qvr_core.semantics.programs.observed.missing_cells import missing_cells
from qvr_core.semantics.programs.step_options import StepOptions, check_noncentred, read_step_options
from qvr_core.semantics.programs.typed_sites import TypedSite, drawn_as, made_site, named_type
from qvr_core.semantics.scope.environment import Begun, Binding, Running, StepContext
from qvr_core.semantics.scope.unsupported import refuse_matrices, refuse_matrix_entries, refuse_tied_entries
from qvr_core.semantics.types.chain_starts import draws_of
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.model.steps import Chain, IndexedValue, LetModel, Start
from qvr_core.semantics.types.program_codes import (
    AXES_MISMATCH,
    INDEX_MISMATCH,
    STEP_OPTION,
)
from qvr_core.semantics.types.spaces import REAL_LINE, Constrained, Finite, Named, Real, Unknown, is_finite, product
from qvr_core.syntax.tree.arithmetic import Arith
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.steps import LetStep, ObserveStep, PredictStep, SampleStep

Bindings = list[tuple[str, Binding]]
Indexed = SampleStep | ObserveStep | PredictStep


def _behind(trees: Sequence[Arith], step: LetStep | Indexed, ctx: StepContext) -> Mapping[str, Lag]:
    """What lags behind; reports a shift that has no start, and one of a second index."""
    found = lags(trees, step.binders, ctx)
    ctx.looks_back = step.start is not None or isinstance(step, ObserveStep)
    for name in list(found)[1:]:
        message = f"`{next(iter(found))}` lags behind already, and only one index of a step can"
        ctx.scope.report(INDEX_MISMATCH, message, found[name].place)
    if found and step.start is None and not isinstance(step, ObserveStep):
        (first, *_) = found.values()
        report_missing_start(first, ctx)
    return dict(list(found.items())[:1])


# ---------------------------------------------------------------- let


def indexed_let(step: LetStep, ctx: StepContext) -> tuple[LetModel, Bindings]:
    """`let name[i : I] = e`, several names by a pattern, recursions with `from`."""
    names, told = step.pattern.names, len(ctx.scope.diagnostics)
    trees = entries_of(step.value, names, ctx)
    own = {name.text: name for name in names if not only_as_label(name.text, trees, ctx)}
    behind = _behind(trees, step, ctx)
    recursive = any(mentions(tree, own) - _above(at, names) for at, tree in enumerate(trees))
    chain = next(iter(behind), None)
    lags = [] if chain is None else lags_by_name(trees, [name.text for name in names], step.binders, chain, ctx)
    if lags and all(name.text in ctx.begins for name in names):
        lags = [Lag(ctx.begins[name.text].lag, lag.place) for name, lag in zip(names, lags, strict=True)]
    if chain is not None:
        behind = {chain: max(lags, key=lambda lag: lag.count)}
    later = [{name.text for name in names[at:]} & own.keys() for at in range(len(names))]
    started = step.start is not None
    circle = any(
        reads_itself([tree], rest, step.binders, chain, ctx, started=started)
        for tree, rest in zip(trees, later, strict=True)
    )
    with running(step.binders, behind, ctx) as indices:
        along = along_of(indices)
        counts = [lag.count for lag in lags]
        begun = _begun(names, counts, along, ctx)
        starts = starts_of(step, counts, along, ctx)
        if recursive:
            for name, start, one in zip(names, starts or [()] * len(names), begun, strict=True):
                own_one = unknown_binding(name, ctx) if circle else own_binding(start, along, name, ctx)
                ctx.locals[name.text] = replace(own_one, begun=one)
        values: list[Expr] = []
        for at, (name, tree) in enumerate(zip(names, trees, strict=True)):
            with beginning(along.chain, counts[at] if counts else 0, ctx):
                value = laid_out(_value(tree, along, ctx), along, ctx)
            values.append(value)
            if starts:
                check_alike(name, starts[len(values) - 1], value, len(along.indices), recursive, ctx)
            ctx.locals[name.text] = Binding(
                "let", outside(value.type, along), named(value.type), ctx.scope.origin(name.span), begun=begun[at]
            )
        check_start(step, behind, told, ctx)
        ranges = [ANYTHING if recursive or starts else range_of(value, ctx) for value in values]
    apart = len(set(counts)) > 1
    model = IndexedValue(
        indices=tuple(replace(one, lag=min(counts)) if one.lag else one for one in along.model),
        values=tuple(values),
        starts=tuple(tuple(start) for start in starts),
        recursive=recursive,
        lags=tuple(counts) if apart else (),
    )
    bindings: Bindings = []
    for name, value, lies, one in zip(names, values, ranges, begun, strict=True):
        kind = outside(value.type, along)
        origin, reaches = ctx.scope.origin(name.span), frozenset(ctx.reaches)
        real = is_real(value, ctx)
        bound = Binding("let", kind, named(kind), origin, reaches, real_site=real, range=lies, begun=one)
        bindings.append((name.text, bound))
    origin = ctx.scope.origin(step.pattern.span)
    let = LetModel(names=tuple(name.text for name in names), value=values[0], origin=origin, indexed=model)
    return let, bindings


def _begun(names: Sequence[Name], counts: Sequence[int], along: Along, ctx: StepContext) -> Sequence[Begun | None]:
    """How each name of a recursion begins, where they, or those of other steps with them, begin at different ones."""
    if along.chain is not None and all(name.text in ctx.begins for name in names):
        return [ctx.begins[name.text] for name in names]
    if along.chain is None or len(set(counts)) < 2:
        return [None] * len(names)
    at = along.indices.index(along.chain)
    return [Begun(at, count, count - min(counts)) for count in counts]


def _value(tree: Arith, along: Along, ctx: StepContext) -> Expr:
    call = solve_call(tree, ctx)
    return check_arith(tree, ctx) if call is None else check_solve(call, along, ctx)


def _above(at: int, names: Sequence[Name]) -> set[str]:
    return {name.text for name in names[:at]}


# ---------------------------------------------------------------- draws


def indexed_site(kind: str, name: Name, step: Indexed, ctx: StepContext) -> TypedSite | None:
    """`sample u[p : Person] <- Family(…)`; None where what is drawn from is no family."""
    family = family_of(step.draw, ctx)
    if family is None:
        return None
    trees, told = [arg.value for arg in step.draw.args or ()], len(ctx.scope.diagnostics)
    behind = _behind(trees, step, ctx)
    space = None if step.space is None else check_object_expr(step.space, ctx.scope)
    family = family_on(family, space)
    place = None if step.space is None else step.space.span
    above = ctx.bindings.get(name.text)
    twice = above is not None and above.kind not in ("data", "let")  # told where names are bound
    own = set[str]() if twice or only_as_label(name.text, trees, ctx) else {name.text}
    started = step.start is not None
    circle = reads_itself(trees, own, step.binders, next(iter(behind), None), ctx, started=started)
    if behind and _unread(name, family, space, step, ctx):
        circle, space = True, None
    vectors = bool(behind) and family.event == 1 and not circle
    start: Start | None = None
    element = ValueType(REAL_LINE if space is None else space.space)
    used = frozenset(ctx.plates)
    with running(step.binders, behind, ctx) as indices:
        if kind == "sample":
            ctx.plates.intersection_update(used)  # a plate of its own is no use of a set
        along = along_of(indices)
        options = read_step_options(kind, step.options, ctx)
        for key, option in (("via", options.via), ("at", options.at)):
            if option is not None:
                message = f"an index looks this up: `x[group[i]]` in place of `{key}=`"
                ctx.scope.report(STEP_OPTION, message, option.origin)
        if circle:
            ctx.locals[name.text] = unknown_binding(name, ctx)
        elif along.chain is not None:
            if vectors:
                reads = any(mentions(tree, {name.text: name}) for tree in trees)
                start, element = first_vector(name, step, family, space, along, ctx, reads=reads)
            own = with_axes(along.plates, element.space or Unknown(), like=(), event=element.event)
            ctx.locals[name.text] = Binding(kind, own, named(own), ctx.scope.origin(name.span))
        elif step.start is not None:
            ctx.locals[name.text] = unknown_binding(name, ctx)
        over = _event_set(family, space, options) if along.chain is None else None
        inside = check_family(step.draw, family, over or options.over, ctx, along.axes)
        inside = narrowed(inside, space, place, options, ctx)
        entries = family.event == 0 and space is not None and _entries(space) > 1
        drawn = outside_of(by_entry(inside) if entries else inside)
        drawn = replace(drawn, own_factors=int(over is not None))
        if not vectors:
            start = first_draw(
                step,
                along,
                ctx,
                check=partial(check_first, name.text, family, ctx),
                on=lambda one: narrowed(one, space, place, None, ctx),
            )
            start = start_by_entry(start) if entries and start is not None else start
        elif is_data(drawn.type) and not is_data(element):
            whole = with_axes(along.plates, element.space or Unknown(), like=[drawn.type], event=element.event)
            drawn = replace(drawn, type=whole)
        elif (first := event_axes(element)) is not None and (later := event_axes(drawn.type)) is not None:
            where = step.draw.span if step.start is None else step.start.span
            check_elements(name, first, later, ctx.scope.origin(where), ctx)
        check_start(step, behind, told, ctx)
        missing = missing_cells(name, family, options, ctx, trees, indices)
        lengths = checked_lengths(name, indices, options, ctx)
    over = product_of(indices)
    if space is not None and step.space is not None:
        whole, at = replace(options, iid_over=over), step.draw.name.span
        if is_finite(space.space) and not family.event:
            decided = ascribe_elements(drawn_as(kind), drawn, space, over, step.space, whole, at, ctx)
        else:
            decided = ascribe(drawn_as(kind), drawn, space, step.space, whole, at, ctx)
        options = replace(whole, over=decided.over or drawn.event_set(ctx))
    else:
        decided = plates_over(drawn_as(kind), drawn, over, step.draw.name.span, options, ctx)
        options = replace(options, over=decided.over or drawn.event_set(ctx))
    if entries and along.chain is not None and space is not None:
        _check_entries(name, space, start, options, ctx)
    drawn_from = [family, *map(facts_of_draw, draws_of(start))]
    any(check_limits(one, options, ctx) for one in drawn_from)  # the first that is wrong
    check_option_axes(name.text, options, decided.type, ctx)
    row_local = kind != "observe" and not drawn.rows
    origin = ctx.scope.origin(name.span)
    site = made_site(name, decided.ascription, decided.space, drawn.model, EXACT, options, row_local, origin)
    moved = all(check_noncentred(step.options, options.noncentred, one, ctx) for one in drawn_from)
    site = replace(site, indices=along.model, missing=missing, noncentred=moved, lengths=lengths)
    if along.chain is not None:
        site = replace(site, chain=Chain(indices=along.model, at=along.indices.index(along.chain), start=start))
    return TypedSite(site, decided.type, named_type(decided.type, decided.ascription, decided.space), drawn)


def _unread(name: Name, family: Family, space: Named | None, step: Indexed, ctx: StepContext) -> bool:
    """Report elements that no later one reads: matrices, and vectors whose entries a condition ties together."""
    one = None if space is None else space.space
    if family.event > 1:
        refuse_matrices(family.name, step.draw.name.span, ctx.scope)
    elif step.space is not None and isinstance(one, Real) and len(one.shape) > 1:
        refuse_matrix_entries(name.text, step.space.span, ctx.scope)
    elif step.space is not None and isinstance(one, Constrained) and not family.event:
        refuse_tied_entries(one, step.space.span, ctx.scope)
    else:
        return False
    return True


def _entries(space: Named) -> int:
    """How many entries an element of a vector space has; 1 of anything else."""
    shape = space.space.shape if isinstance(space.space, Real) else ()
    return int(shape[0]) if len(shape) == 1 and isinstance(shape[0], int) else 1


def _check_entries(name: Name, space: Named, start: Start | None, options: StepOptions, ctx: StepContext) -> None:
    """Report first elements of another length, and an option that says something of single entries."""
    wrong = None if start is None else other_count(start, _entries(space))
    if wrong is not None:
        message = f"`{name.text}` starts with other vectors than `{space.written}`"
        ctx.scope.report(AXES_MISMATCH, message, wrong.origin)
    option = options.noncentred or options.missing
    if option is not None:
        message = f"`{option.key.text}` needs entries with an index of their own: `{name.text}[…, k : K]`, not `: "
        ctx.scope.report(STEP_OPTION, f"{message}{space.written}`", option.key.span)


def _event_set(family: Family, space: Named | None, options: StepOptions) -> Named | None:
    """The set that a vector runs over, which stands beside its indices."""
    if space is None or not isinstance(space.space, Finite) or family.event == 0:
        return None
    return space if options.over in (None, space) else None


def product_of(indices: Sequence[Running]) -> Named:
    """The sets of all indices together."""
    space = product((one.named.written, one.space or Unknown()) for one in indices)
    return Named(space, " * ".join(one.named.written for one in indices))
