"""`marginalize z[g : Subject, t : Time] : State <- Categorical(p[z[g, t - 1]]) from Categorical(p0)`: hidden chains.

Where the block reads the hidden state it stands for all of its values, along an axis of its own; each observed element
reads one place of one chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.indices import Lag, lags, running
from qvr_core.semantics.arithmetic.mixture_draws import family_of
from qvr_core.semantics.arithmetic.own_reads import reads_itself
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.language.options import STEP_KEYS
from qvr_core.semantics.programs.chains.along import Along, along_of
from qvr_core.semantics.programs.chains.first_elements import check_start, first_draw, report_missing_start
from qvr_core.semantics.programs.chains.ragged import checked_lengths
from qvr_core.semantics.programs.families.gates import with_gate
from qvr_core.semantics.programs.family_draws import TypedFamily, check_family
from qvr_core.semantics.programs.hidden.counts import check_bounds, is_summable_count, refuse_endless, refuse_past
from qvr_core.semantics.programs.hidden.lets import Lets, check_let, depends, with_lets
from qvr_core.semantics.programs.hidden.nested import Nest, check_nest, taken_from_draw
from qvr_core.semantics.programs.hidden.observed import Read, check_observed, check_score, refuse_options
from qvr_core.semantics.programs.hidden.states import element_text, refuse_single, refuse_whole, state_axis, state_label
from qvr_core.semantics.programs.indexed_steps import product_of
from qvr_core.semantics.programs.observed.computed import as_computed
from qvr_core.semantics.programs.observed.data_lets import IN_BLOCK, check_let_options, is_let, observed_let
from qvr_core.semantics.programs.step_options import read_step_options
from qvr_core.semantics.programs.steps import check_step
from qvr_core.semantics.scope.environment import Binding, Hidden, Running, StepContext
from qvr_core.semantics.scope.predictions import report_predict_inside
from qvr_core.semantics.scope.scope import ArrowEntry
from qvr_core.semantics.types.axes import axis_of, set_of
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.hidden_counts import counts_of, is_counts
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Chain, MarginalizeModel, ObserveModel, Site, StepModel
from qvr_core.semantics.types.program_codes import CANNOT_MARGINALIZE, COMPUTED_OUTCOME, INDEX_MISMATCH, UNSIZED_DRAW
from qvr_core.semantics.types.spaces import Finite, Named, Unknown
from qvr_core.syntax.tree.arithmetic import Variable
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.steps import (
    DataStep,
    LetStep,
    MarginalizeStep,
    ObserveStep,
    PredictStep,
    SampleStep,
    ScoreStep,
)
from qvr_core.syntax.tree.units import Placed
from qvr_core.syntax.walk import walk

Bindings = list[tuple[str, Binding]]

_BUT_LENGTHS = tuple(key for key in STEP_KEYS["marginalize"] if key != "lengths")


def check_hidden(
    placed: Placed[Item], step: MarginalizeStep, ctx: StepContext, within: _Block | None = None
) -> tuple[MarginalizeModel, Bindings]:
    """The block, typed, and what it binds; nothing of the hidden state is seen below it.  `within` is the block that it
    stands in."""
    states = _states(step, ctx)
    if is_counts(states.space) and refuse_past(step, ctx):
        states = Named(Unknown(), "?")
    refuse_options(step.options, _BUT_LENGTHS, ctx)
    told = len(ctx.scope.diagnostics)
    ctx.looks_back = step.start is not None
    behind = _behind(step, ctx)
    outer = ctx.hidden
    nest = None
    if within is not None:
        nest = Nest(within.hidden, step.name, tuple(binder.name.text for binder in step.binders))
        ctx.outer_reads = []
    with running(step.binders, {}, ctx) as whole:
        above = {name: replace(one, outer=True) for name, one in outer.items()}
        ctx.hidden = {**above, step.name.text: _hidden(step.name, states, whole)}
    with running(step.binders, behind, ctx) as indices:
        along = along_of(indices or [_alone(step.name)])
        draw = _transition(step, along, states, ctx)
        start = _first(step, along, states, ctx)
        check_start(step, behind, told, ctx)
        if nest is not None:
            taken_from_draw(nest, along, step.name, ctx)
        lengths = _lengths(step, indices, ctx)
    over = product_of(along.indices) if step.binders else None
    binding = Binding("marginalize", ValueType(Unknown()), states, ctx.scope.origin(step.name.span))
    nested: Bindings = [(step.name.text, binding)]
    ctx.bindings = {**ctx.bindings, step.name.text: binding}
    block = _Block(step.name, states, within, nest)
    for child in placed.children:
        ctx.scope.unit, ctx.text = child.uid, child.unit.text
        kind = _KINDS.get(type(child.unit.node), "damaged")
        again = isinstance(child.unit.node, ObserveStep) and is_let(child.unit.node, ctx)
        unseen: Bindings = [(name.text, _unseen(kind, name, ctx)) for name in child.unit.declares if not again]
        inner = block.nested(child, ctx)
        nested += inner if inner is not None else block.add(child.unit.node, ctx) or unseen
    ctx.hidden = outer
    ctx.scope.unit, ctx.text = placed.uid, placed.unit.text
    at = len(along.indices) - 1
    site = Site(
        name=step.name.text,
        bound=((step.name.text, states),),
        plate=over,
        element=None,
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
        lengths=lengths,
    )
    model = MarginalizeModel(site=site, over=None, rows=None, body=tuple(block.body), reads=tuple(block.reads))
    if nest is not None and within is not None:
        check_nest(nest, within.states, states, told, ctx)
        within.body.append(model)
        within.reads.append(nest.place or ())
    return model, nested


def _lengths(step: MarginalizeStep, indices: Sequence[Running], ctx: StepContext) -> Expr | None:
    """How many elements each chain has; another option has been reported."""
    given = step.options
    if given is not None and any(option.key.text != "lengths" for option in given.items):
        return None
    return checked_lengths(step.name, indices, read_step_options("marginalize", given, ctx), ctx)


def _alone(name: Name) -> Running:
    """What stands for the indices of a state that has none: one place, which every element reads."""
    one = Finite(1)
    return Running("", one, Named(one, "1"), axis_of(None, ""), 0, name.span)


_KINDS: Mapping[type, str] = {ObserveStep: "observe", LetStep: "let", ScoreStep: "score"}


class _Block:
    """The steps of a block as they are typed: its model, and for each step the place that its elements read."""

    def __init__(self, hidden: Name, states: Named, within: _Block | None, nest: Nest | None) -> None:
        self.hidden = hidden
        self.states = states
        self.nest = nest
        self.body: list[StepModel] = []
        self.reads: list[Read] = []
        self.lets: Lets = {} if within is None else within.lets

    def nested(self, child: Placed[Item], ctx: StepContext) -> Bindings | None:
        """Type a block in this one, and what it binds; None of any other step, and where a block cannot stand here."""
        step = child.unit.node
        if not isinstance(step, MarginalizeStep) or not step.binders or self.nest is not None:
            return None
        outer, hidden = ctx.bindings, ctx.hidden
        _, found = check_hidden(child, step, ctx, self)
        ctx.bindings, ctx.hidden = outer, hidden
        return found

    def add(self, node: Item | None, ctx: StepContext) -> Bindings:
        """Type a step; what it binds where that does not depend on the hidden state."""
        found: tuple[StepModel, Read] | None = None
        match node:
            case ObserveStep():
                read = with_lets(with_gate(node, ctx), self.lets, ctx)
                found = None if read is None else self._observed(read, ctx)
            case ScoreStep():
                found = check_score(node, self.hidden, self.states, self.lets, ctx, self.nest)
            case LetStep() if not depends(node, {*ctx.hidden, *self.lets}):
                model, bound = check_step(node, ctx)
                bound = [(name, replace(one, drawn=IN_BLOCK)) for name, one in bound]
                ctx.bindings = {**ctx.bindings, **dict(bound)}
                self.body.append(model)
                self.reads.append(())
                return bound
            case LetStep():
                self.lets = {**self.lets, **check_let(node, self.lets, ctx)}
            case PredictStep():
                report_predict_inside(node, ctx)
            case MarginalizeStep() if self.nest is not None:
                message = (
                    f"`{self.hidden.text}` stands in the block of `{self.nest.outer.text}`, and blocks stand in one "
                )
                message += "another once: let one state stand for two of them"
                ctx.scope.report(CANNOT_MARGINALIZE, message, _head(node))
            case SampleStep() | MarginalizeStep() | DataStep():
                ctx.scope.report(CANNOT_MARGINALIZE, _ABOVE[type(node)].format(self.hidden.text), _head(node))
            case _:
                pass
        if found is not None:
            self.body.append(found[0])
            self.reads.append(found[1])
        return []

    def _observed(self, node: ObserveStep, ctx: StepContext) -> tuple[StepModel, Read] | None:
        let = observed_let(node, ctx)
        if let is not None or node.outcome is None:
            found = check_observed(replace(node, outcome=None), self.hidden, self.states, ctx, self.nest)
            if let is None or found is None:
                return found
            check_let_options(node.name, found[0].site, ctx)
            return ObserveModel(site=replace(found[0].site, of_let=True)), found[1]
        named = [part.name for part in walk(node.outcome) if isinstance(part, Variable)]
        if (let := next((name for name in named if name.text in self.lets), None)) is not None:
            message = f"`{let.text}` is a let of this block: write here what it stands for"
            ctx.scope.report(COMPUTED_OUTCOME, message, let.span)
            return None
        whole = as_computed(node, ctx)
        return None if whole is None else check_observed(whole, self.hidden, self.states, ctx, self.nest)


_ABOVE = {
    SampleStep: "what is drawn below a hidden chain would have a value for each of its paths: draw it above `{}`",
    MarginalizeStep: "below `{}` one more state may be summed out, with indices of its own: `marginalize …[i : Row]`",
    DataStep: "data are declared for the whole program: move this line up, out of `marginalize {}`",
}


def _head(node: SampleStep | MarginalizeStep | DataStep) -> Span:
    match node:
        case SampleStep(pattern=pattern):
            return pattern.span
        case MarginalizeStep(name=name):
            return name.span
        case DataStep(span=span):
            return Span(span.start, span.start + len("data"))


def _unseen(kind: str, name: Name, ctx: StepContext) -> Binding:
    """What a step of the block binds, where nothing can read it."""
    return Binding(kind, ValueType(Unknown()), Named(Unknown(), "?"), ctx.scope.origin(name.span))


def _states(step: MarginalizeStep, ctx: StepContext) -> Named:
    """The set of the hidden state's values."""
    unknown = Named(Unknown(), "?")
    family = family_of(step.draw, ctx)
    if step.space is None and family is not None and is_summable_count(family):
        return Named(counts_of(step.name.text), "counts")
    if step.space is None and family is not None and refuse_endless(step.draw.name, family, ctx):
        return unknown
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
        trees = [arg.value for arg in step.draw.args or ()]
        reads_itself(trees, {step.name.text}, step.binders, last, ctx, started=step.start is not None)
    return found


def _hidden(name: Name, states: Named, indices: Sequence[Running]) -> Hidden:
    space = states.space if isinstance(states.space, Finite) else None
    now, before = (state_label(name, states, back) for back in (0, 1))
    return Hidden(name.text, space, (now, before), tuple(indices))


def _transition(step: MarginalizeStep, along: Along, states: Named, ctx: StepContext) -> FamilyDraw:
    family = family_of(step.draw, ctx)
    counts = is_counts(states.space)
    if family is None or (family.support.kind != "finite" and not counts):
        _refuse_family(step.draw.name, states, ctx)
        return FamilyDraw(family=step.draw.name.text, args=(), origin=ctx.scope.origin(step.draw.span))
    plates = [*along.axes, state_axis(step.name, states, 1), state_axis(step.name, states, 0)]
    ctx.hidden_reads = []
    told = len(ctx.scope.diagnostics)
    drawn = check_family(step.draw, family, None, ctx, plates)
    if len(ctx.scope.diagnostics) == told:
        _check_own_past(step, along, ctx)
    element = element_text(step.name, along, 1)
    refuse_whole(drawn, states, element, ctx)
    refuse_single(drawn, step.name, states, element, ctx)
    if counts and len(ctx.scope.diagnostics) == told:
        check_bounds(step.name, drawn, ctx)
    if step.space is not None:
        _check_values(drawn, states, step.space.span, ctx)
    return drawn.model


def _check_own_past(step: MarginalizeStep, along: Along, ctx: StepContext) -> None:
    """Report a draw that reads the state of another chain, or at another place than the one before."""
    own = ", ".join(binder.name.text for binder in step.binders)
    other = next((values for text, values in ctx.hidden_reads if text != own), None)
    if other is None:
        return
    put = element_text(step.name, along, 1)
    message = f"each chain of `{step.name.text}` reads its own past, `{put}`, and this is another element"
    ctx.scope.report(CANNOT_MARGINALIZE, message, other[0].origin)


def _first(step: MarginalizeStep, along: Along, states: Named, ctx: StepContext) -> FamilyDraw | None:
    """What the first state of each chain is drawn from."""

    def check(drawn: TypedFamily, place: Span) -> None:
        if drawn.family.support.kind == "finite":
            _check_values(drawn, states, place, ctx)
        else:
            _refuse_family(Name(drawn.family.name, place), states, ctx)

    start = first_draw(step, along, ctx, [state_axis(step.name, states, 0)], check)
    if isinstance(start, FamilyDraw) or start is None:
        return start
    if step.start is not None:
        message = f"a hidden chain starts from a family: `from Categorical(…)` of {states.written}"
        ctx.scope.report(CANNOT_MARGINALIZE, message, step.start.span)
    return None


def _refuse_family(name: Name, states: Named, ctx: StepContext) -> None:
    if isinstance(states.space, Unknown):
        return  # of a state without a set nobody knows what draws it
    if isinstance(ctx.scope.lookup(name.text), ArrowEntry):
        message = (
            f"`{name.text}` is an arrow, and a hidden state is drawn from a family: `Categorical(logits=…)` of "
            "numbers, which a network may compute"
        )
    else:
        message = f"`{name.text}` does not draw from a finite set; a hidden state is drawn from Categorical"
    ctx.scope.report(CANNOT_MARGINALIZE, message, name.span)


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
