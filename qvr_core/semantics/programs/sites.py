"""Sites: what `sample` and `observe` draw, and under which type they bind it."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.semantics.arithmetic.indices import lags, running
from qvr_core.semantics.arithmetic.mixture_draws import family_of
from qvr_core.semantics.arrows.combinators import damaged
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.arrows.uncounted import refuse_steps
from qvr_core.semantics.programs.arrow_draws import TypedArrow, check_arrow_draw
from qvr_core.semantics.programs.ascriptions import ascribe, axes_of
from qvr_core.semantics.programs.chains.along import along_of
from qvr_core.semantics.programs.chains.first_elements import report_idle_start
from qvr_core.semantics.programs.chains.ragged import no_lengths
from qvr_core.semantics.programs.families.narrowed import family_on, narrowed
from qvr_core.semantics.programs.family_draws import check_family
from qvr_core.semantics.programs.observed.censoring_and_truncation import (
    check_limits,
    check_no_limits,
    check_option_axes,
)
from qvr_core.semantics.programs.observed.missing_cells import missing_cells
from qvr_core.semantics.programs.step_options import StepOptions, check_noncentred, read_step_options
from qvr_core.semantics.programs.typed_sites import Ascription, TypedSite, drawn_as, made_site, named_type
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import UNKNOWN, ArrowEntry
from qvr_core.semantics.types.codes import UNSUPPORTED
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.model.arrows import Damaged
from qvr_core.semantics.types.model.expressions import Data, Expr, ValueType
from qvr_core.semantics.types.model.steps import ArrowDraw
from qvr_core.semantics.types.program_codes import ASCRIPTION_MISMATCH, NO_DENSITY, STEP_OPTION
from qvr_core.semantics.types.spaces import Named, Seq, Unknown, has_seq, has_terms, is_finite, item_of
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.objects import ObjectExpr
from qvr_core.syntax.tree.steps import Draw, DrawStep, MarginalizeStep, ObserveStep, PredictStep, SampleStep


def check_site(
    kind: str, name: Name, step: SampleStep | ObserveStep | PredictStep | MarginalizeStep, ctx: StepContext
) -> TypedSite:
    """The site of a step; `name` stands for it (the first name of a pattern)."""
    family = family_of(step.draw, ctx)
    if family is None:
        return arrow_site(kind, name, step, ctx)
    space = None if step.space is None else check_object_expr(step.space, ctx.scope)
    family = family_on(family, space)
    options = read_step_options(kind, step.options, ctx)
    origin = ctx.scope.origin(name.span)
    plates = axes_of(space) if space is not None and is_finite(space.space) else []
    picked = options.via is not None or options.at is not None
    drawn = check_family(step.draw, family, options.over, ctx, plates, picked=picked, kind=drawn_as(kind))
    drawn = narrowed(drawn, space, None if step.space is None else step.space.span, options, ctx)
    check_limits(family, options, ctx)
    missing = missing_cells(name, family, options, ctx)
    no_lengths(name.text, options, ctx)
    decided = ascribe(drawn_as(kind), drawn, space, step.space, options, step.draw.name.span, ctx)
    check_option_axes(name.text, options, decided.type, ctx)
    row_local = kind != "observe" and not drawn.rows
    options = replace(options, over=decided.over or drawn.event_set(ctx))
    site = made_site(name, decided.ascription, decided.space, drawn.model, EXACT, options, row_local, origin)
    moved = check_noncentred(step.options, options.noncentred, family, ctx)
    site = replace(site, noncentred=moved, missing=missing) if moved or missing else site
    return TypedSite(site, decided.type, named_type(decided.type, decided.ascription, decided.space), drawn)


# ---------------------------------------------------------------- named arrows


def arrow_site(
    kind: str, name: Name, step: SampleStep | ObserveStep | PredictStep | MarginalizeStep, ctx: StepContext
) -> TypedSite:
    """The site of a step that draws from a named arrow, once for each element of its indices."""
    space = None if step.space is None else check_object_expr(step.space, ctx.scope, terms=True)
    if _looks_back(step, ctx):
        origin = ctx.scope.origin(name.span)
        model = ArrowDraw(arrow=damaged(origin), args=None, origin=origin)
        site = made_site(name, Ascription.NONE, space, model, model.arrow.density, StepOptions(), False, origin)
        return TypedSite(site, ValueType(Unknown()), UNKNOWN, None)
    with running(step.binders, {}, ctx) as indices:
        options = read_step_options(kind, step.options, ctx)
        along = along_of(indices)
        front = along.axes if options.iid_over is None else [*axes_of(options.iid_over), *along.axes]
        typed = check_arrow_draw(step.draw, name.text, ctx, front)
    site = _from_arrow(kind, name, step, space, typed, options, ctx)
    return replace(site, site=replace(site.site, indices=along.model)) if step.binders else site


def _looks_back(step: DrawStep, ctx: StepContext) -> bool:
    """Whether a draw from an arrow reads an earlier element of anything, which is reported."""
    trees = [arg.value for arg in step.draw.args or ()]
    behind = next(iter(lags(trees, step.binders, ctx).values()), None)
    name = step.draw.name.text
    if behind is not None:
        message = (
            "a draw from an arrow cannot read an earlier element: compute it above, `let … = …[…] from …`, or run "
        )
        ctx.scope.report(UNSUPPORTED, message + f"`{name}` along the sequence with `scan`", behind.place)
    elif step.start is not None and step.binders:
        report_idle_start(step.start.span, ctx)
    return behind is not None


def _from_arrow(
    kind: str,
    name: Name,
    step: DrawStep,
    space: Named | None,
    typed: TypedArrow,
    options: StepOptions,
    ctx: StepContext,
) -> TypedSite:
    draw, model, value, origin = step.draw, typed.model, typed.type, ctx.scope.origin(name.span)
    if not isinstance(model.arrow, Damaged):
        check_noncentred(step.options, options.noncentred, None, ctx)
        check_no_limits(draw.name.text, options, ctx)
        if options.lengths is not None:
            message = f"`lengths` needs a family with its arguments behind `<-`; `{draw.name.text}` is an arrow"
            ctx.scope.report(STEP_OPTION, message, options.lengths.origin)
        missing_cells(draw.name, None, options, ctx)
    if isinstance(model.arrow, Damaged) and ctx.scope.lookup(draw.name.text) is None:
        # a misspelt family may have meant a plate or a value: nothing that follows is the user's mistake
        site = made_site(name, Ascription.NONE, space, model, model.arrow.density, options, False, origin)
        return TypedSite(site, ValueType(Unknown()), UNKNOWN, None)
    _check_steps_inside(kind, name.text, draw, model, options, ctx)
    if options.at is not None and (typed.plate is not None or not has_seq(model.arrow.domain.space)):
        _at_needs_sequence(draw, model, options.at, ctx)
    elif options.at is not None:
        for option in (options.at, options.mask, options.weight):
            if isinstance(option, Data):
                # positions, and what counts of them, differ from row to row
                ctx.data[option.name] = (ValueType(None, rows=True), option.origin)
    dense = kind in ("sample", "predict") or _check_density(kind, draw, model, ctx)
    codomain = model.arrow.codomain
    named = codomain if value.space is None else Named(value.space, codomain.written)
    if space is not None and step.space is not None:
        named = _ascribed(named, space, step.space, draw, ctx) if dense else space
    ascription = Ascription.NONE if space is None else Ascription.VALUE
    options = replace(options, iid_over=typed.plate)
    site = made_site(name, ascription, space, model, model.arrow.density, options, False, origin)
    kind_of = ValueType(named.space, value.indexed, value.rows, value.sizes)
    check_option_axes(name.text, options, kind_of, ctx)
    return TypedSite(site, kind_of, named, None)


def _check_steps_inside(
    kind: str, name: str, draw: Draw, model: ArrowDraw, options: StepOptions, ctx: StepContext
) -> None:
    """What a program in the arrow scores and observes counts once for each draw of the fit, and for all of it."""
    option = next((one for one in ("mask", "weight", "at") if getattr(options, one) is not None), None)
    if kind == "predict":
        where, remedy = "in a `predict`, which is drawn after the fit", f"draw `{name}` with `sample`"
    elif kind == "marginalize":
        where, remedy = "where its values are summed out", ""
    elif option is not None:
        where, remedy = f"beside `{option}`", ""
    else:
        return
    refuse_steps(model.arrow, draw.name.text, draw.name.span, ctx.scope, where, remedy)


def _at_needs_sequence(draw: Draw, model: ArrowDraw, at: Expr, ctx: StepContext) -> None:
    unknown = any(isinstance(arg.type.space, Unknown) for arg in model.args or ())
    if unknown or isinstance(model.arrow.domain.space, Unknown) or ctx.lifts:
        return
    message = f"`at` selects positions of a sequence, and `{draw.name.text}` reads one element in each row here"
    ctx.scope.report(STEP_OPTION, message, at.origin)


def _check_density(kind: str, draw: Draw, model: ArrowDraw, ctx: StepContext) -> bool:
    density = model.arrow.density.kind
    word = "observed" if kind == "observe" else "summed out"
    if density == "deterministic" and not isinstance(model.arrow.codomain.space, Unknown):
        message = f"`{draw.name.text}` is deterministic: what it gives has no density and cannot be {word}"
        ctx.scope.report(NO_DENSITY, message, draw.name.span)
        return False
    if density == "none":
        why = "ends in a deterministic arrow after its last draw"
        entry = ctx.scope.lookup(draw.name.text)
        if isinstance(entry, ArrowEntry) and entry.kind == "encoder":
            why = "has no case that ends in a draw"
        message = f"`{draw.name.text}` {why}: it has no density and cannot be {word}"
        ctx.scope.report(NO_DENSITY, message, draw.name.span)
        return False
    return True


def _ascribed(given: Named, space: Named, tree: ObjectExpr, draw: Draw, ctx: StepContext) -> Named:
    """The type after `:` read up to sequences; it must fit what the arrow gives."""
    if isinstance(space.space, Unknown):
        return given
    lifted = has_seq(given.space) and not has_seq(space.space)
    item = Named(item_of(given.space), given.written.removeprefix("Seq ")) if lifted else given
    fits = ctx.scope.require_fit(
        item, space, tree.span, ASCRIPTION_MISMATCH, f"`{draw.name.text}` gives", "the type here is"
    )
    if not fits:
        return UNKNOWN
    if has_terms(given.space):
        return given  # which says how deep they are
    return Named(Seq(space.space), f"Seq {space.written}") if lifted else space
