"""`marginalize z[g : Subject, t : Time] : State <- Categorical(p[z[g, t - 1]]) from Categorical(p0)`: hidden chains.

Where the block reads the hidden state it stands for all of its values, along an axis of its own; each observed element
reads one place of one chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.bare import report_whole
from qvr_core.semantics.arithmetic.broadcasting import axes, with_axes
from qvr_core.semantics.arithmetic.elementwise import words
from qvr_core.semantics.arithmetic.indices import Lag, lags, running
from qvr_core.semantics.arithmetic.mixture_draws import family_of
from qvr_core.semantics.arithmetic.own_reads import reads_itself
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.programs.chains.along import Along, along_of, laid_out, outside_of
from qvr_core.semantics.programs.chains.first_elements import check_start, first_draw, report_missing_start
from qvr_core.semantics.programs.data_agreement import agreed
from qvr_core.semantics.programs.family_draws import TypedFamily, check_family
from qvr_core.semantics.programs.hidden.lets import Lets, check_let, with_lets
from qvr_core.semantics.programs.indexed_steps import product_of
from qvr_core.semantics.programs.step_options import StepOptions
from qvr_core.semantics.programs.typed_sites import TypedSite, made_site
from qvr_core.semantics.scope.environment import Binding, Hidden, Running, StepContext
from qvr_core.semantics.scope.predictions import report_predict_inside
from qvr_core.semantics.scope.unsupported import refuse
from qvr_core.semantics.types.axes import axis_of, set_of
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.model import (
    Ascription,
    Chain,
    Expr,
    FamilyDraw,
    MarginalizeModel,
    ObserveModel,
    Site,
    StepModel,
    ValueType,
)
from qvr_core.semantics.types.program_codes import CANNOT_MARGINALIZE, INDEX_MISMATCH, STEP_OPTION, UNSIZED_DRAW
from qvr_core.semantics.types.spaces import Finite, Named, Unknown
from qvr_core.syntax.tree import Item, LetStep, MarginalizeStep, Name, ObserveStep, Options, Placed, PredictStep, Span

Bindings = list[tuple[str, Binding]]


def check_hidden(placed: Placed[Item], step: MarginalizeStep, ctx: StepContext) -> tuple[MarginalizeModel, Bindings]:
    """The block, typed, and what it binds; nothing of the hidden state is seen below it."""
    states = _states(step, ctx)
    _refuse_options(step.options, ctx)
    told = len(ctx.scope.diagnostics)
    ctx.looks_back = step.start is not None
    behind = _behind(step, ctx)
    outer = ctx.hidden
    with running(step.binders, {}, ctx) as whole:
        ctx.hidden = {**outer, step.name.text: _hidden(step.name, states, whole)}
    with running(step.binders, behind, ctx) as indices:
        along = along_of(indices or [_alone(step.name)])
        draw = _transition(step, along, states, ctx)
        start = _first(step, along, states, ctx)
        check_start(step, behind, told, ctx)
    over = product_of(along.indices) if step.binders else None
    binding = Binding("marginalize", ValueType(Unknown()), states, ctx.scope.origin(step.name.span))
    nested: Bindings = [(step.name.text, binding)]
    ctx.bindings = {**ctx.bindings, step.name.text: binding}
    body: list[StepModel] = []
    reads: list[tuple[Expr, ...]] = []
    lets: Lets = {}
    for child in placed.children:
        ctx.scope.unit, ctx.text = child.uid, child.unit.text
        node = child.unit.node
        kind = "observe" if isinstance(node, ObserveStep) else "let" if isinstance(node, LetStep) else "damaged"
        nested += [(name.text, _unseen(kind, name, ctx)) for name in child.unit.declares]
        if isinstance(node, ObserveStep):
            read = with_lets(node, lets, ctx)
            found = None if read is None else _observed(read, step.name, states, ctx)
            if found is not None:
                body.append(found[0])
                reads.append(found[1])
        elif isinstance(node, LetStep):
            lets = {**lets, **check_let(node, lets, ctx)}
        elif isinstance(node, PredictStep):
            report_predict_inside(node, ctx)
        elif node is not None:
            refuse("hidden chain body", node.span, ctx.scope)
    ctx.hidden = outer
    ctx.scope.unit, ctx.text = placed.uid, placed.unit.text
    at = len(along.indices) - 1
    site = Site(
        name=step.name.text,
        bound=((step.name.text, states),),
        ascription=Ascription.NONE if over is None else Ascription.PLATE,
        ascribed=over,
        draw=draw,
        density=EXACT,
        over=None,
        via=None,
        mask=None,
        weight=None,
        at=None,
        row_local=False,
        origin=ctx.scope.origin(step.name.span),
        chain=Chain(indices=along.model, at=at, start=start),
    )
    model = MarginalizeModel(site=site, over=None, rows=None, body=tuple(body), reads=tuple(reads))
    return model, nested


def _alone(name: Name) -> Running:
    """What stands for the indices of a state that has none: one place, which every element reads."""
    one = Finite(1)
    return Running("", one, Named(one, "1"), axis_of(None, ""), 0, name.span)


def _refuse_options(options: Options | None, ctx: StepContext) -> None:
    """No option changes how a hidden chain, or what is observed of it, is summed."""
    for option in options.items[:1] if options is not None else ():
        message = f"`{option.key.text}` has no meaning in a hidden chain; its indices say what belongs where"
        ctx.scope.report(STEP_OPTION, message, option.key.span)


def _unseen(kind: str, name: Name, ctx: StepContext) -> Binding:
    """What a step of the block binds, where nothing can read it."""
    return Binding(kind, ValueType(Unknown()), Named(Unknown(), "?"), ctx.scope.origin(name.span))


def _states(step: MarginalizeStep, ctx: StepContext) -> Named:
    """The set of the hidden state's values."""
    unknown = Named(Unknown(), "?")
    if step.space is None:
        message = f"nothing says what the values of `{step.name.text}` are: write `{step.name.text}[…] : State <- …`"
        ctx.scope.report(UNSIZED_DRAW, message, step.name.span)
        return unknown
    named = check_object_expr(step.space, ctx.scope)
    if not isinstance(named.space, Finite | Unknown):
        message = f"`{named.written}` is no finite set; only those can be summed out along an index"
        ctx.scope.report(CANNOT_MARGINALIZE, message, step.space.span)
        return unknown
    return named


def _behind(step: MarginalizeStep, ctx: StepContext) -> dict[str, Lag]:
    """The lag of the chain: one, along the last index."""
    found = lags([arg.value for arg in step.draw.args or ()], step.binders, ctx)
    last = step.binders[-1].name.text if step.binders else None
    wrong = next((lag for name, lag in found.items() if name != last or lag.count > 1), None)
    if wrong is not None:
        message = f"a hidden chain looks back by one, along its last index `{last}`"
        ctx.scope.report(INDEX_MISMATCH, message, wrong.place)
        return {}
    if found and last is not None and step.start is None:
        report_missing_start(found[last], ctx)
    if last is not None:
        reads_itself([arg.value for arg in step.draw.args or ()], {step.name.text}, step.binders, last, ctx)
    return found


def _hidden(name: Name, states: Named, indices: Sequence[Running]) -> Hidden:
    space = states.space if isinstance(states.space, Finite) else None
    now, before = (_label(name, states, back) for back in (0, 1))
    return Hidden(name.text, space, (now, before), tuple(indices))


def _label(name: Name, states: Named, back: int) -> str:
    nominal = states.space.nominal if isinstance(states.space, Finite) else None
    return axis_of(nominal, name.text + "'" * back)


def _axis(name: Name, states: Named, back: int) -> tuple[int | None, str]:
    size = states.space.size if isinstance(states.space, Finite) else None
    return (int(size) if isinstance(size, int) else None, _label(name, states, back))


def _transition(step: MarginalizeStep, along: Along, states: Named, ctx: StepContext) -> FamilyDraw:
    family = family_of(step.draw, ctx)
    if family is None or family.support.kind != "finite":
        _refuse_family(step.draw.name, ctx)
        return FamilyDraw(family=step.draw.name.text, args=(), origin=ctx.scope.origin(step.draw.span))
    plates = [*along.axes, _axis(step.name, states, 1), _axis(step.name, states, 0)]
    drawn = check_family(step.draw, family, None, ctx, plates)
    _refuse_whole(drawn, states, _element(step.name, along, 1), ctx)
    if step.space is not None:
        _check_values(drawn, states, step.space.span, ctx)
    return drawn.model


def _element(name: Name, along: Along, back: int) -> str:
    """The state at the element of a step, or one before it along the last index, as text."""
    places = [one.name for one in along.indices if one.name]
    places[-1:] = [f"{place} - {back}" if back else place for place in places[-1:]]
    return f"{name.text}[{', '.join(places)}]" if places else name.text


def _first(
    step: MarginalizeStep, along: Along, states: Named, ctx: StepContext
) -> FamilyDraw | tuple[Expr, ...] | None:
    """What the first state of each chain is drawn from."""

    def check(drawn: TypedFamily, place: Span) -> None:
        if drawn.family.support.kind == "finite":
            _check_values(drawn, states, place, ctx)
        else:
            _refuse_family(Name(drawn.family.name, place), ctx)

    start = first_draw(step, along, ctx, [_axis(step.name, states, 0)], check)
    if isinstance(start, tuple) and step.start is not None:
        message = f"a hidden chain starts from a family: `from Categorical(…)` of {states.written}"
        ctx.scope.report(CANNOT_MARGINALIZE, message, step.start.span)
        return None
    return start


def _refuse_family(name: Name, ctx: StepContext) -> None:
    message = f"`{name.text}` does not draw from a finite set; a hidden state is drawn from Categorical"
    ctx.scope.report(CANNOT_MARGINALIZE, message, name.span)


def _refuse_whole(drawn: TypedFamily, states: Named, element: str, ctx: StepContext) -> None:
    """Report an argument that runs over all states, of which each element has one, `element`."""
    own = states.space.nominal if isinstance(states.space, Finite) else None
    for argument in drawn.arguments:
        shape = axes(argument.value.type) or []
        given = [name for _, name in shape[: max(0, len(shape) - argument.parameter.rank)]]
        if own is not None and own in given:
            where = ctx.scope.origin(argument.tree.span)
            report_whole(argument.value, words(argument.tree, f"`{argument.name}`"), own, element, where, ctx)


def _check_values(drawn: TypedFamily, states: Named, place: Span, ctx: StepContext) -> None:
    """What a family draws from is the set of the hidden state's values."""
    own, space = drawn.type.space, states.space
    if not isinstance(own, Finite) or not isinstance(space, Finite):
        return
    name = None if own.nominal is None else set_of(own.nominal)
    ctx.scope.require_fit(
        Named(Finite(own.size, name), name or f"{own.size} values"),
        Named(space, states.written),
        place,
        CANNOT_MARGINALIZE,
        f"{drawn.family.name} draws from",
        "the values are",
    )


def _observed(
    step: ObserveStep, hidden: Name, states: Named, ctx: StepContext
) -> tuple[ObserveModel, tuple[Expr, ...]] | None:
    """An observed step of the block, and the place of the chain that each of its elements reads."""
    ctx.effects.add("Score")
    family = family_of(step.draw, ctx)
    if family is None or not step.binders or step.space is not None or step.start is not None or family.event:
        refuse("hidden chain observation", step.name.span, ctx.scope)
        return None
    behind = dict(list(lags([arg.value for arg in step.draw.args or ()], step.binders, ctx).items())[:1])
    ctx.hidden_reads = []
    before = len(ctx.scope.diagnostics)
    with running(step.binders, behind, ctx) as indices:
        along = along_of(indices)
        _refuse_options(step.options, ctx)
        plates = [*along.axes, _axis(hidden, states, 1), _axis(hidden, states, 0)]
        inside = check_family(step.draw, family, None, ctx, plates)
        drawn = outside_of(inside)
        places = list(dict.fromkeys(text for text, _ in ctx.hidden_reads))
        element = f"{hidden.text}[{places[0]}]" if places and places[0] else _element(hidden, along, 0)
        _refuse_whole(inside, states, element, ctx)
        if len(places) > 1:
            first, second, *_ = places
            message = f"each element of `{step.name.text}` reads one place of the chain, here `{first}` and `{second}`"
            ctx.scope.report(INDEX_MISMATCH, message, step.name.span)
        reads = () if not ctx.hidden_reads else ctx.hidden_reads[0][1]
        laid = tuple(laid_out(place, along, ctx) for place in reads)
    if not ctx.hidden_reads and len(ctx.scope.diagnostics) == before:
        message = f"`{step.name.text}` does not read `{hidden.text}`: move it out of the block"
        ctx.scope.report(INDEX_MISMATCH, message, step.name.span)
    site = made_site(
        step.name,
        Ascription.PLATE,
        product_of(along.indices),
        drawn.model,
        EXACT,
        StepOptions(),
        False,
        ctx.scope.origin(step.name.span),
    )
    kind = with_axes(along.plates, drawn.type.space or Unknown(), like=())
    agreed(step.name, TypedSite(site, kind, Named(kind.space or Unknown(), "?"), drawn), ctx)
    chain = None
    if along.chain is not None:
        chain = Chain(indices=along.model, at=along.indices.index(along.chain), start=None)
    site = replace(site, bound=((step.name.text, Named(Unknown(), "?")),), chain=chain)
    return ObserveModel(site=site), laid
