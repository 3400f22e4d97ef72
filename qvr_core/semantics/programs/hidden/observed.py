"""What is observed, or scored, below a hidden chain: each element reads one place of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.alignment import arrange
from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import axes, with_axes
from qvr_core.semantics.arithmetic.indices import lags, running
from qvr_core.semantics.arithmetic.mixture_draws import family_of
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.language.family_heads import landing_problem
from qvr_core.semantics.language.truncated import family_words
from qvr_core.semantics.programs.chains.along import Along, along_of, laid_out, outside_of
from qvr_core.semantics.programs.chains.ragged import checked_lengths
from qvr_core.semantics.programs.data_agreement import agreed
from qvr_core.semantics.programs.families.narrowed import family_on, narrowed, without_bounds
from qvr_core.semantics.programs.family_draws import TypedFamily, check_family
from qvr_core.semantics.programs.hidden.lets import Lets, expanded
from qvr_core.semantics.programs.hidden.nested import Nest, taken_from_element
from qvr_core.semantics.programs.hidden.states import element_text, refuse_whole, state_axis
from qvr_core.semantics.programs.indexed_steps import product_of
from qvr_core.semantics.programs.observed.censoring_and_truncation import check_limits, check_option_axes
from qvr_core.semantics.programs.observed.missing_cells import missing_cells
from qvr_core.semantics.programs.step_options import read_step_options
from qvr_core.semantics.programs.typed_sites import Ascription, TypedSite, made_site
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.codes import FAMILY_MISMATCH
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.steps import Chain, ObserveModel, ScoreModel
from qvr_core.semantics.types.program_codes import ASCRIPTION_MISMATCH, CANNOT_MARGINALIZE, INDEX_MISMATCH, STEP_OPTION
from qvr_core.semantics.types.spaces import Finite, Named, Real, Unknown, is_real, item_of, width
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ArithCall, Binder, Comprehension, Literal, ParenArith
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.options import Options
from qvr_core.syntax.tree.steps import ObserveStep, ScoreStep

_ELSEWHERE = ("over", "iid_over", "via", "at")
"""Options that say of elements what the indices say."""

Read = tuple[Expr, ...]
"""The place of the chain that each element of a step reads, an index for each of the chain's sets."""


def refuse_options(options: Options | None, keys: Sequence[str] | None, ctx: StepContext) -> None:
    """Report an option that says what belongs where; `keys` are those, None for all."""
    for option in options.items if options is not None else ():
        if keys is None or option.key.text in keys:
            message = f"`{option.key.text}` has no meaning in a hidden chain; its indices say what belongs where"
            ctx.scope.report(STEP_OPTION, message, option.key.span)
            return


# ---------------------------------------------------------------- observed steps


def check_observed(
    step: ObserveStep, hidden: Name, states: Named, ctx: StepContext, nest: Nest | None = None
) -> tuple[ObserveModel, Read] | None:
    """An observed step of the block, and the place of the chain that each of its elements reads; `nest` is known of a
    block in a block."""
    ctx.effects.add("Score")
    family = family_of(step.draw, ctx)
    if (problem := _problem(step, family is None)) is not None:
        ctx.scope.report(CANNOT_MARGINALIZE, problem, step.name.span)
        return None
    assert family is not None
    named = None if step.space is None else check_object_expr(step.space, ctx.scope)
    family = family_on(family, named)
    trees = [arg.value for arg in step.draw.args or ()]
    behind = dict(list(lags(trees, step.binders, ctx).items())[:1])
    ctx.hidden_reads = []
    before = len(ctx.scope.diagnostics)
    with running(step.binders, behind, ctx) as indices:
        along = along_of(indices)
        refuse_options(step.options, _ELSEWHERE, ctx)
        kept = step.options and replace(
            step.options, items=tuple(one for one in step.options.items if one.key.text not in _ELSEWHERE)
        )
        options = read_step_options("observe", kept, ctx)
        plates = [*along.axes, state_axis(hidden, states, 1), state_axis(hidden, states, 0)]
        inside = check_family(step.draw, family, None, ctx, plates)
        inside = narrowed(inside, named, None if step.space is None else step.space.span, options, ctx)
        drawn = outside_of(inside)
        refuse_whole(inside, states, _read_text(hidden, along, ctx), ctx)
        laid = _place(step.name, hidden, along, before, ctx)
        if nest is not None:
            taken_from_element(nest, step.name, along, ctx)
        outer, ctx.marginal = ctx.marginal, True
        missing = missing_cells(step.name, family, options, ctx, trees, indices)
        ctx.marginal = outer
        lengths = checked_lengths(step.name, indices, options, ctx)
    space = _element(step, named, drawn, ctx)
    over, origin = product_of(along.indices), ctx.scope.origin(step.name.span)
    kind = with_axes(along.plates, space.space, like=(), event=drawn.type.event)
    check_limits(family, options, ctx)
    check_option_axes(step.name.text, options, kind, ctx)
    options = replace(options, over=drawn.event_set(ctx))
    site = made_site(step.name, Ascription.PLATE, over, drawn.model, EXACT, options, False, origin)
    agreed(step.name, TypedSite(site, kind, space, drawn), ctx)
    if step.name.text not in ctx.bindings and not isinstance(space.space, Unknown):
        ctx.data[step.name.text] = (kind, origin)  # the steps below read it as data
    chain = None
    if along.chain is not None:
        chain = Chain(indices=along.model, at=along.indices.index(along.chain), start=None)
    site = replace(site, bound=((step.name.text, space),), chain=chain, missing=missing, lengths=lengths)
    site = replace(site, indices=along.model) if lengths is not None else site
    return ObserveModel(site=site), laid


def _problem(step: ObserveStep, arrow: bool) -> str | None:
    name = step.name.text
    if arrow:
        return f"`{step.draw.name.text}` is an arrow; what is observed of a hidden chain is drawn from a family"
    if not step.binders:
        return f"`{name}` does not say which place of the chain its elements read: write it with indices, `{name}[…]`"
    if step.start is not None:
        return f"the first elements of `{name}` are given: below a hidden chain nothing draws them, so leave out `from`"
    return None


def _element(step: ObserveStep, named: Named | None, drawn: TypedFamily, ctx: StepContext) -> Named:
    """The space of one element, which the step may ascribe."""
    own = drawn.type.space or Unknown()
    if step.space is None or named is None:
        return Named(own, structure(own))
    if isinstance(named.space, Unknown) or (isinstance(own, Unknown) and not is_real(named.space)):
        return named
    if drawn.family.event == 0 and isinstance(named.space, Real) and width(named.space) != 1:
        message = f"`{family_words(drawn.family.name)}` draws single numbers"
        message += f": give `{step.name.text}` an index for its entries"
        ctx.scope.report(ASCRIPTION_MISMATCH, message, step.space.span)
    elif isinstance(own, Finite) or (drawn.family.event and not isinstance(own, Unknown)):
        given = Named(own, f"{drawn.family.name}'s")
        ctx.scope.require_fit(given, named, step.space.span, ASCRIPTION_MISMATCH, "the values are", "ascribed is")
    elif (problem := landing_problem(drawn.family, without_bounds(item_of(named.space)))) is not None:
        message = problem.replace("the codomain", f"`{named.written}`")
        ctx.scope.report(FAMILY_MISMATCH, message, step.space.span)
    return named


def _read_text(hidden: Name, along: Along, ctx: StepContext) -> str:
    places = list(dict.fromkeys(text for text, _ in ctx.hidden_reads))
    return f"{hidden.text}[{places[0]}]" if places and places[0] else element_text(hidden, along, 0)


def _place(name: Name, hidden: Name, along: Along, before: int, ctx: StepContext) -> Read:
    """The one place that each element reads; reports others, and none."""
    places = list(dict.fromkeys(text for text, _ in ctx.hidden_reads))
    if len(places) > 1:
        first, second, *_ = places
        message = f"each element of `{name.text}` reads one place of the chain, here "
        message += f"`{hidden.text}[{first}]` and `{hidden.text}[{second}]`"
        ctx.scope.report(INDEX_MISMATCH, message, name.span)
    reads = () if not ctx.hidden_reads else ctx.hidden_reads[0][1]
    own = {one.axis for one in along.indices}
    if any(axis not in own for place in reads for _, axis in axes(place.type) or []):
        message = f"each element of `{name.text}` reads one place of the chain, "
        message += f"and this reads all of `{hidden.text}[{places[0]}]`"
        ctx.scope.report(INDEX_MISMATCH, message, name.span)
        return ()
    if not ctx.hidden_reads and len(ctx.scope.diagnostics) == before:
        message = f"`{name.text}` does not read `{hidden.text}`: move it out of the block"
        ctx.scope.report(INDEX_MISMATCH, message, name.span)
    return tuple(laid_out(place, along, ctx) for place in reads)


# ---------------------------------------------------------------- scores


def check_score(
    step: ScoreStep, hidden: Name, states: Named, lets: Lets, ctx: StepContext, nest: Nest | None = None
) -> tuple[ScoreModel, Read] | None:
    """`score s = sum(e for t : Time)`: a term for each element, which reads one place of the chain."""
    ctx.effects.add("Score")
    binders, written = _summed(step.value)
    before = len(ctx.scope.diagnostics)
    tree = expanded(written, lets, binders, ctx)
    if tree is None:
        return None
    if (lag := next(iter(lags([tree], binders, ctx).values()), None)) is not None:
        message = "the first element has none before it; what depends on two states is the chain's own draw"
        ctx.scope.report(INDEX_MISMATCH, message, lag.place)
    ctx.hidden_reads = []
    with running(binders, {}, ctx) as indices:
        along = along_of(indices)
        value = check_arith(tree, ctx)
        laid = _place(step.name, hidden, along, before, ctx)
        if nest is not None:
            taken_from_element(nest, step.name, along, ctx)
    if len(ctx.scope.diagnostics) > before:
        return None
    names = [axis for _, axis in axes(value.type) or []]
    wanted = [*(one.axis for one in along.indices), state_axis(hidden, states, 1)[1], state_axis(hidden, states, 0)[1]]
    if axes(value.type) is None or any(axis not in wanted for axis in names) or len(set(names)) < len(names):
        message = f"`{step.name.text}` is not one number for each element: sum over what is left, `sum(… for i : I)`"
        ctx.scope.report(INDEX_MISMATCH, message, step.name.span)
        return None
    put = arrange(value, [names.index(axis) if axis in names else None for axis in wanted])
    origin = ctx.scope.origin(step.name.span)
    return ScoreModel(name=step.name.text, value=put, origin=origin, indices=along.model), laid


def _summed(tree: Arith) -> tuple[tuple[Binder, ...], Arith]:
    """The indices that a score sums over, and what it sums."""
    while isinstance(tree, ParenArith):
        tree = tree.inner
    if not isinstance(tree, Comprehension) or tree.function.text != "sum":
        return (), tree
    if tree.condition is None:
        return tuple(tree.binders), tree.body
    parts: list[Arith] = [tree.condition, tree.body, Literal(0.0, "0.0", tree.span)]
    call = ArithCall(Name("where", tree.span), tuple(ArithArg(None, part, part.span) for part in parts), tree.span)
    return tuple(tree.binders), call
