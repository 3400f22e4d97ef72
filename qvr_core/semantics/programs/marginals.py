"""`marginalize`: what is summed or integrated out, over which rows or groups, and the block below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.broadcasting import with_axes
from qvr_core.semantics.arithmetic.mixture_draws import family_of
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.arrows.uncounted import refuse_steps
from qvr_core.semantics.language.family import Family, support_words
from qvr_core.semantics.language.family_heads import landing_problem
from qvr_core.semantics.language.options import STEP_KEYS
from qvr_core.semantics.programs.ascriptions import is_value_set
from qvr_core.semantics.programs.chains.ragged import no_lengths
from qvr_core.semantics.programs.data_steps import check_data
from qvr_core.semantics.programs.families.narrowed import beyond, without_bounds
from qvr_core.semantics.programs.family_draws import TypedFamily, check_family
from qvr_core.semantics.programs.hidden.rows import Summed, check_rows, check_within, is_indexed
from qvr_core.semantics.programs.hidden_chains import check_hidden
from qvr_core.semantics.programs.sites import check_site
from qvr_core.semantics.programs.step_options import StepOptions, read_step_options
from qvr_core.semantics.programs.steps import Bindings, check_step, site_binding
from qvr_core.semantics.programs.typed_sites import Ascription, TypedSite, plate_and_element
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.predictions import report_predict_inside
from qvr_core.semantics.scope.scope import UNKNOWN
from qvr_core.semantics.types.codes import FAMILY_ARGUMENTS, FAMILY_MISMATCH
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.expressions import Constant, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    MarginalizeModel,
    ObserveModel,
    SampleModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.program_codes import (
    ASCRIPTION_MISMATCH,
    CANNOT_MARGINALIZE,
    DATA_DECLARATION,
    MISSING_VIA,
)
from qvr_core.semantics.types.spaces import (
    Finite,
    Named,
    Real,
    Seq,
    Space,
    Unknown,
    factors_of,
    has_terms,
    is_finite,
    is_real,
    item_of,
)
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, Gather, Variable
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


@immutable
class Block:
    """A typed block: its model and everything bound inside it, the summed name first."""

    model: MarginalizeModel
    nested: tuple[tuple[str, Binding], ...]


def check_marginalize(placed: Placed[Item], step: MarginalizeStep, ctx: StepContext) -> Block:
    """The block, typed; the bindings of `ctx` are left as they were."""
    if step.binders or _is_one_place(placed, step, ctx):
        outer = ctx.bindings
        model, nested = check_hidden(placed, step, ctx)
        ctx.bindings = outer
        return Block(model, tuple(nested))
    options = read_step_options("marginalize", step.options, ctx)
    no_lengths(step.name.text, options, ctx)
    family = family_of(step.draw, ctx)
    typed, over, rows = _drawn(step, family, options, ctx)
    binding = site_binding("marginalize", typed, ctx)
    site = replace(typed.site, bound=((step.name.text, typed.named),))
    outer, ctx.marginal = (ctx.bindings, ctx.marginal, ctx.summed), True
    ctx.bindings = {**outer[0], step.name.text: binding}
    nested: Bindings = [(step.name.text, binding)]
    summed = Summed(step.name.text, rows, _values(typed.type), over)
    ctx.summed = {**outer[2], summed.name: summed.sets}
    body, axes = _body(placed.children, over, summed, nested, ctx)
    ctx.bindings, ctx.marginal, ctx.summed = outer
    ctx.scope.unit, ctx.text = placed.uid, placed.unit.text
    model = MarginalizeModel(
        site=site, over=over, rows=rows, body=tuple(body), indexed=is_indexed(placed), axes=tuple(axes.items())
    )
    return Block(model, tuple(nested))


def _is_one_place(placed: Placed[Item], step: MarginalizeStep, ctx: StepContext) -> bool:
    """Whether a block without indices of its own is a hidden state with one place: all that it holds is observed in
    index notation, and reads the state without an index."""
    nodes = [child.unit.node for child in placed.children]
    observed = [isinstance(node, ObserveStep) and bool(node.binders) for node in nodes]
    if not any(observed) or step.options is not None:
        return False
    rest = [node for node, own in zip(nodes, observed, strict=True) if not own]
    gathered = [part for node in nodes if node is not None for part in walk(node) if isinstance(part, Gather)]
    picked = any(_is_named(part.base, step.name) for part in gathered)
    if picked or not all(node is None or isinstance(node, LetStep | PredictStep) for node in rest):
        return False
    index = any(_is_named(index, step.name) for part in gathered for index in part.indices)
    return not (index or any(isinstance(node, LetStep) for node in rest)) or _names_values(step, ctx)


def _is_named(tree: Arith, name: Name) -> bool:
    return isinstance(tree, Variable) and tree.name.text == name.text


def _names_values(step: MarginalizeStep, ctx: StepContext) -> bool:
    """Whether what stands behind the name is the set of its values, if anything does, not that of rows."""
    family = family_of(step.draw, ctx)
    if step.space is None or family is None:
        return True
    scope, kept = ctx.scope, (dict(ctx.data), list(ctx.free))
    told, unknown, equations = len(scope.diagnostics), len(scope.unknown_names), len(scope.equations)
    drawn, space = check_family(step.draw, family, None, ctx), check_object_expr(step.space, scope)
    ctx.data, ctx.free = kept
    del scope.diagnostics[told:], scope.unknown_names[unknown:], scope.equations[equations:]
    return is_value_set(drawn, space)


def _values(kind: ValueType) -> str:
    """The set of what is summed out, as an indexed block names it."""
    space = kind.space
    if not isinstance(space, Finite):
        return "…"
    return space.nominal or (f"FinSet {int(space.size)}" if isinstance(space.size, int) else "…")


# ---------------------------------------------------------------- what is summed out


def _drawn(
    step: MarginalizeStep, family: Family | None, options: StepOptions, ctx: StepContext
) -> tuple[TypedSite, Named | None, Named | None]:
    if family is None:
        quiet = replace(step, options=None)
        typed = check_site("marginalize", step.name, quiet, ctx)
        if typed.site.plate is not None:
            plate, name = typed.site.plate.written, step.draw.name.text
            message = f"`{name}` draws for each element of {plate} here, and one value of an arrow can be summed out: "
            message += f"write the probabilities, `marginalize {step.name.text}[i : {plate}] <- Categorical(…)`"
            ctx.scope.report(CANNOT_MARGINALIZE, message, step.draw.name.span)
            typed = replace(typed, type=ValueType(Unknown()), named=UNKNOWN)
        elif isinstance(typed.type.space, Real):
            message = f"`{step.draw.name.text}` gives real values; only finite ones can be summed out"
            ctx.scope.report(CANNOT_MARGINALIZE, message, step.draw.name.span)
        elif typed.type.space is not None and has_terms(typed.type.space):
            message = f"`{step.draw.name.text}` gives terms; only the elements of finite sets can be summed out"
            ctx.scope.report(CANNOT_MARGINALIZE, message, step.draw.name.span)
        return typed, options.over, None
    before = len(ctx.scope.diagnostics)
    drawn = check_family(step.draw, family, None, ctx)
    summable = _check_summable(drawn, before, step, ctx)
    space = None if step.space is None else check_object_expr(step.space, ctx.scope)
    ascription, kind, rows = _ascribe(drawn, space, step, options, ctx)
    if rows is not None and len(factors_of(rows.space)) > 1 and len(ctx.scope.diagnostics) == before:
        plates = [(one.size, one.nominal) for one in factors_of(rows.space) if isinstance(one, Finite)]
        drawn = check_family(step.draw, family, None, ctx, plates)
    named = Named(Unknown(), "?") if kind.space is None else Named(kind.space, structure(kind.space))
    if ascription in (Ascription.VALUE, Ascription.VALUE_SET) and space is not None:
        named = Named(named.space, space.written)
    kind = kind if summable else ValueType(Unknown())
    plate, element = plate_and_element(ascription, space, options.iid_over)
    site = Site(
        name=step.name.text,
        bound=(),
        plate=plate,
        element=element,
        draw=drawn.model,
        density=EXACT,
        over=None,
        via=options.via,
        mask=options.mask,
        weight=options.weight,
        at=options.at,
        row_local=False,
        origin=ctx.scope.origin(step.name.span),
    )
    return TypedSite(site, kind, named, drawn), options.over, rows


def _check_summable(drawn: TypedFamily, before: int, step: MarginalizeStep, ctx: StepContext) -> bool:
    """Report a family whose values cannot be counted off or integrated."""
    family = drawn.family
    reason = None
    if family.event > 0:
        reason = "draws a vector or a matrix"
    elif family.support.kind == "count" and family.counts_to is None:
        reason = f"draws {support_words(family)} without end"
    elif family.discrete and family.bounded_by is not None and _below_zero(drawn.model, family.bounded_by[0]):
        reason = "draws numbers below 0 here, and only those from 0 are counted off"
    elif family.support.kind == "real" and not _bounded(drawn.model, family):
        reason = "is not bounded to an interval"
    if reason is not None:
        # another family is meant: these arguments need not be right for this one
        found = ctx.scope.diagnostics[before:]
        ctx.scope.diagnostics[before:] = [item for item in found if item.code is not FAMILY_ARGUMENTS]
        message = f"`{family.name}` {reason}; only finite sets and bounded intervals can be summed out"
        ctx.scope.report(CANNOT_MARGINALIZE, message, step.draw.name.span)
    return reason is None


def _bounded(draw: FamilyDraw, family: Family) -> bool:
    if family.bounded_by is None:
        return family.support.low is not None and family.support.high is not None
    given = dict(draw.args)
    infinite = [
        isinstance(value, Constant) and value.value in (float("inf"), float("-inf"))
        for value in (given.get(name) for name in family.bounded_by)
    ]
    return all(name in given for name in family.bounded_by) and not any(infinite)


def _ascribe(
    drawn: TypedFamily, space: Named | None, step: MarginalizeStep, options: StepOptions, ctx: StepContext
) -> tuple[Ascription, ValueType, Named | None]:
    if space is None or step.space is None:
        return Ascription.NONE, drawn.type, None
    if isinstance(space.space, Unknown):
        return Ascription.NONE, ValueType(Unknown(), rows=drawn.rows), None
    if is_real(item_of(space.space)):
        problem = landing_problem(drawn.family, without_bounds(item_of(space.space)))
        if problem is None and beyond(drawn, space) is not None:
            problem = f"`marginalize` goes over all that {drawn.family.name} draws, which may lie outside the codomain"
        if problem is not None:
            message = problem.replace("the codomain", f"`{space.written}`")
            ctx.scope.report(FAMILY_MISMATCH, message, step.space.span)
        return Ascription.VALUE, ValueType(space.space, rows=drawn.rows), None
    finite_draw = drawn.family.support.kind == "finite"
    if finite_draw and (options.over is not None or drawn.rows or is_value_set(drawn, space)):
        _check_set(drawn, space, step, ctx)
        return Ascription.VALUE_SET, ValueType(space.space, rows=drawn.rows), None
    element: Space = Unknown() if drawn.type.space is None else drawn.type.space
    if not is_finite(space.space) or isinstance(drawn.type.space, Seq):
        return Ascription.PLATE, ValueType(Unknown(), rows=drawn.rows), space
    plates = [(f.size, f.nominal) for f in factors_of(space.space) if isinstance(f, Finite)]
    ctx.plates.update(name for _, name in plates if name is not None)
    if drawn.type.space is None:
        return Ascription.PLATE, ValueType(None, rows=drawn.rows), space
    scalar = element if isinstance(element, Finite | Unknown) else Real((1,))
    return Ascription.PLATE, with_axes(plates, scalar, like=[drawn.type]), space


def _check_set(drawn: TypedFamily, space: Named, step: MarginalizeStep, ctx: StepContext) -> None:
    """The set of values beside the draw must be the one that the family draws from."""
    own = drawn.type.space
    assert step.space is not None
    if not isinstance(own, Finite) or not isinstance(space.space, Finite):
        return
    said = own.nominal or (f"{int(own.size)} values" if isinstance(own.size, int) else "_ values")
    ctx.scope.require_fit(
        Named(own, said),
        space,
        step.space.span,
        ASCRIPTION_MISMATCH,
        f"{drawn.family.name} draws from",
        "the values are",
    )


# ---------------------------------------------------------------- the block


def _body(
    children: Sequence[Placed[Item]], over: Named | None, summed: Summed, nested: Bindings, ctx: StepContext
) -> tuple[list[StepModel], dict[str, tuple[int, ...]]]:
    """The steps of the block, and of the sites with indices where those of the rows stand among them."""
    body: list[StepModel] = []
    axes: dict[str, tuple[int, ...]] = {}
    for child in children:
        ctx.scope.unit, ctx.text = child.uid, child.unit.text
        node = child.unit.node
        bound: Bindings = []
        if isinstance(node, PredictStep):
            report_predict_inside(node, ctx)
            bound = [(node.name.text, damaged_binding(ctx, node.name.span))]
        elif isinstance(node, MarginalizeStep):
            block = check_marginalize(child, node, ctx)
            if block.model.reads is not None:
                check_within(node.name, summed, ctx)
            body.append(block.model)
            nested.extend(block.nested)
            ctx.effects.add("Marginal")
        elif isinstance(node, DataStep):
            bound = check_data(node, ctx)
            message = "data are declared for the whole program: move this line up, out of `marginalize`"
            ctx.scope.report(DATA_DECLARATION, message, Span(node.span.start, node.span.start + len("data")))
        elif node is None:
            bound = [(name.text, damaged_binding(ctx, name.span)) for name in child.unit.declares]
        elif isinstance(node, SampleStep | ObserveStep | LetStep | ScoreStep):
            told = len(ctx.scope.diagnostics)
            model, bound = check_step(node, ctx)
            if isinstance(model, SampleModel | ObserveModel) and isinstance(model.site.draw, ArrowDraw):
                _refuse_steps(node, model.site.draw, ctx)
            body.append(model)
            places = check_rows(node, model, summed, told, ctx)
            if places and isinstance(model, SampleModel | ObserveModel):
                axes[model.site.name] = places
            if isinstance(model, ObserveModel) and isinstance(node, ObserveStep):
                _check_via(model, over, node, ctx)
        ctx.bindings.update(bound)
        nested.extend(bound)
    return body, axes


def _refuse_steps(node: Item, draw: ArrowDraw, ctx: StepContext) -> None:
    """A step of the block that draws from a program with such steps: there would be a term for each hidden value."""
    if isinstance(node, SampleStep | ObserveStep):
        name, where = node.draw.name, "inside `marginalize`"
        remedy = "write that step in the block, and draw from an arrow without it"
        refuse_steps(draw.arrow, name.text, name.span, ctx.scope, where, remedy)


def _below_zero(draw: FamilyDraw, name: str) -> bool:
    low = dict(draw.args).get(name)
    return isinstance(low, Constant) and not isinstance(low.value, str) and low.value < 0


def damaged_binding(ctx: StepContext, span: Span) -> Binding:
    """What a step that could not be read binds."""
    return Binding("damaged", ValueType(Unknown()), Named(Unknown(), "?"), ctx.scope.origin(span))


def _check_via(model: ObserveModel, over: Named | None, step: ObserveStep, ctx: StepContext) -> None:
    """With groups, every observe says its rows' group, unless its rows are the groups themselves."""
    site = model.site
    known = step.options is None or not any(
        option.key.text not in STEP_KEYS["observe"] for option in step.options.items
    )
    if over is None or site.via is not None or not known:
        return
    rows = site.element or site.plate
    if rows is not None and rows.space == over.space:
        return
    if site.indices and site.indices[0].space == over.space:
        return
    fixes: tuple[Fix, ...] = ()
    if step.options is None:
        fixes = (Fix("Add `via=`", (Edit(ctx.scope.origin(step.draw.span), " [via=group]", "after"),)),)
    message = f"`{site.name}` must say which `{over.written}` each row belongs to: `[via=…]`"
    ctx.scope.report(MISSING_VIA, message, step.name.span, fixes=fixes)
