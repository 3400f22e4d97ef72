"""What `from` says: the first elements of a recursion or a chain, and what an element is like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import (
    SCALAR,
    Axis,
    axes,
    event_axes,
    from_axes,
    plate_axes,
    with_axes,
)
from qvr_core.semantics.arithmetic.indices import Lag, length, open_shift, without
from qvr_core.semantics.arithmetic.mixture_draws import family_of
from qvr_core.semantics.arithmetic.own_reads import check_elements
from qvr_core.semantics.language.family import Family, support_words
from qvr_core.semantics.programs.chains.along import Along, laid_out, outside_of
from qvr_core.semantics.programs.family_draws import TypedFamily, check_family
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.scope import ObjectEntry
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.chain_starts import values_of
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.expressions import Constant, Expr, Index, ValueType
from qvr_core.semantics.types.model.steps import Start
from qvr_core.semantics.types.program_codes import (
    AXES_MISMATCH,
    INDEX_MISMATCH,
    MISSING_FROM,
    PATTERN_MISMATCH,
    SAMPLED_IN_LET,
    UNSIZED_DRAW,
)
from qvr_core.semantics.types.spaces import REAL_LINE, Finite, Linear, Named, Space, Unknown
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.tree.arithmetic import Arith, ArithCall, TupleArith
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.steps import Draw, DrawStep, LetStep, MarginalizeStep, ObserveStep, PredictStep, SampleStep

Indexed = SampleStep | ObserveStep | PredictStep


def report_missing_start(lag: Lag, ctx: StepContext) -> None:
    """A shift without `from`."""
    elements = "the first element is" if lag.count == 1 else f"the first {lag.count} elements are"
    message = f"nothing says what {elements}: end the step with `from …`"
    ctx.scope.report(MISSING_FROM, message, lag.place)


def check_start(step: LetStep | DrawStep, behind: Mapping[str, Lag], told: int, ctx: StepContext) -> None:
    """Report a `from` in a step that looks back at nothing, where that is no consequence of another mistake.

    `told` is how many mistakes had been told before the step.
    """
    if step.start is None or behind or len(ctx.scope.diagnostics) != told:
        return
    trees = [step.value] if isinstance(step, LetStep) else [arg.value for arg in step.draw.args or ()]
    shift = open_shift(trees, step.binders, ctx)
    if shift is None:
        report_idle_start(step.start.span, ctx)
        return
    message = f"how far back `{shift.written}` looks is not known before the data say how many elements "
    message += f"`{shift.set_name}` has: give it a size, `object {shift.set_name} : FinSet 2`"
    ctx.scope.report(INDEX_MISMATCH, message, shift.place)


def report_idle_start(place: Span, ctx: StepContext) -> None:
    """A `from` in a step that looks back at nothing."""
    message = "no element of this step reads an earlier one, so `from` starts nothing"
    ctx.scope.report(INDEX_MISMATCH, message, place)


def entries_of(tree: Arith, names: Sequence[Name], ctx: StepContext) -> Sequence[Arith]:
    """One expression for each name of a pattern."""
    entries: Sequence[Arith] = tree.items if isinstance(tree, TupleArith) else (tree,)
    if len(entries) == len(names):
        return entries
    counted = f"{len(entries)} {'value' if len(entries) == 1 else 'values'}"
    message = f"there are {len(names)} names here and {counted}: write `(…, …)` with one for each"
    ctx.scope.report(PATTERN_MISMATCH, message, tree.span)
    return [entries[min(at, len(entries) - 1)] for at in range(len(names))]


def named(kind: ValueType) -> Named:
    space: Space = Unknown() if kind.space is None else kind.space
    return Named(space, structure(space))


def unknown_binding(name: Name, ctx: StepContext) -> Binding:
    """A name of which a mistake was told already."""
    kind = ValueType(Unknown())
    return Binding("let", kind, named(kind), ctx.scope.origin(name.span))


def own_binding(start: Sequence[Expr], along: Along, name: Name, ctx: StepContext) -> Binding:
    """What a name stands for inside its own recursion: elements like those that it starts from."""
    element = start[0].type if start else SCALAR
    plates = plate_axes(element)[len(along.indices) - 1 :]
    kind = with_axes([*along.plates, *plates], element.space or REAL_LINE, like=(), event=element.event)
    return Binding("let", kind, named(kind), ctx.scope.origin(name.span))


def starts_of(step: LetStep, counts: Sequence[int], along: Along, ctx: StepContext) -> list[list[Expr]]:
    """The first elements of each name, so many of each."""
    if step.start is None or along.chain is None:
        return []
    names = step.pattern.names
    entries = [step.start] if len(names) == 1 else entries_of(step.start, names, ctx)
    with without(along.chain, ctx):
        return [
            first_values(entry, replace(along, count=count), ctx, name)
            for entry, count, name in zip(entries, counts, names, strict=True)
        ]


def first_values(tree: Arith, along: Along, ctx: StepContext, name: Name | None = None) -> list[Expr]:
    """One value for each of the first elements, or one for all of them; `name` is that of a recursion's name."""
    if isinstance(tree, TupleArith):
        _check_count(tree, along, ctx, name)
        return [laid_out(check_arith(item, ctx), along, ctx, leave=along.chain) for item in tree.items]
    value = check_arith(tree, ctx)
    found = axes(value.type) or []
    if along.count > 1 and found and found[0][0] == along.count and not indexed(found[0][1] or ""):
        ctx.plates.update(name for _, name in found[:1] if name is not None)
        return [laid_out(_element(value, at), along, ctx, leave=along.chain) for at in range(along.count)]
    return [laid_out(value, along, ctx, leave=along.chain)]


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"


def _element(value: Expr, at: int) -> Expr:
    shape = axes(value.type) or []
    rest = shape[1:]
    plates = max(0, len(value.type.indexed) - 1)
    kind = with_axes(rest[:plates], value.type.space or REAL_LINE, like=[value.type])
    if not value.type.indexed:
        kind = from_axes(rest, 0, like=[value.type])
    index = Constant(type=SCALAR, origin=value.origin, value=at)
    return Index(type=kind, origin=value.origin, base=value, indices=(index,))


def first_vector(
    name: Name, step: Indexed, family: Family, space: Named | None, along: Along, ctx: StepContext, *, reads: bool
) -> tuple[Start | None, ValueType]:
    """What the first elements of a chain of vectors are drawn from, or their values, and the type of an element, which
    must be known where later ones read it (`reads`)."""
    drawn: list[TypedFamily] = []

    def check(one: TypedFamily, place: Span) -> None:
        if one.family.event == family.event:
            check_first(name.text, family, ctx, one, place)
        drawn.append(outside_of(one))
        sizes = [event_axes(each.type) for each in (drawn[0], drawn[-1])]
        if sizes[0] is not None and sizes[1] is not None:
            check_elements(name, sizes[1], sizes[0], ctx.scope.origin(place), ctx)

    start = first_draw(step, along, ctx, check=check)
    if space is not None:
        return start, ValueType(space.space)
    if start is None and step.start is not None:
        return None, ValueType(Unknown())
    own, place = None, name.span if step.start is None else step.start.span
    declared = ctx.bindings.get(name.text)
    if drawn:
        own = event_axes(drawn[0].type)
        own = [(drawn[0].size, None)] if own is None and drawn[0].size is not None else own
    elif values := values_of(start):
        found = axes(values[0].type)
        own = None if found is None else found[len(along.indices) - 1 :]
    elif declared is not None:
        found = axes(declared.type)
        own = None if found is None else found[len(along.indices) :]
    if own:
        return start, from_axes(own, 0, like=())
    if own is None and reads:
        message = f"nothing says how many numbers an element of `{name.text}` is: write `: Real …` behind its indices"
        ctx.scope.report(UNSIZED_DRAW, message, name.span)
    elif own is not None:
        message = f"`{name.text}` starts as a single number, but {family.name} draws vectors"
        ctx.scope.report(AXES_MISMATCH, message, place)
    return start, ValueType(Unknown())


def first_draw(
    step: Indexed | MarginalizeStep,
    along: Along,
    ctx: StepContext,
    behind: Sequence[Axis] = (),
    check: Callable[[TypedFamily, Span], None] | None = None,
    on: Callable[[TypedFamily], TypedFamily] = lambda drawn: drawn,
) -> Start | None:
    """What the first elements are drawn from, or their values; `behind` are further axes of a draw.

    `check` sees the draw and where its family stands; `on` gives the draw on the space of the step.
    """
    tree = step.start
    if tree is None or along.chain is None:
        return None
    with without(along.chain, ctx):
        draw = Draw(tree.func, tree.args, None, tree.span) if isinstance(tree, ArithCall) else None
        family = None if draw is None else family_of(draw, ctx)
        if draw is not None and family is not None:
            drawn = check_family(draw, family, None, ctx, [*_other_axes(along), *behind])
            if check is not None:
                check(drawn, draw.name.span)
            return on(drawn).model
        if isinstance(tree, TupleArith) and (calls := _family_calls(tree, ctx)):
            if isinstance(step, MarginalizeStep) or along.count == 1 or len(calls) < len(tree.items):
                _report_calls(tree, calls, along.count, ctx)
                return None
            _check_count(tree, along, ctx)
            made = [check_family(draw, family, None, ctx, [*_other_axes(along), *behind]) for draw, family in calls]
            for (draw, _), drawn in zip(calls, made, strict=True):
                if check is not None:
                    check(drawn, draw.name.span)
            return tuple(on(drawn).model for drawn in made) if len(made) == along.count else None
        return tuple(first_values(tree, along, ctx))


def check_first(name: str, family: Family, ctx: StepContext, drawn: TypedFamily, place: Span) -> None:
    """Report a first element that is no such number as later ones are: a chain has one set of values."""
    first, own, later = drawn.family, drawn.family.support, family.support
    whole = later.kind in ("count", "finite")
    bounded = any(one.bounded_by is not None or one.above is not None for one in (first, family))
    inside = bounded or (
        (later.low is None or (own.low is not None and own.low >= later.low))
        and (later.high is None or (own.high is not None and own.high <= later.high))
    )
    alike = first.event == family.event and (own.kind in ("count", "finite") if whole else own.kind == later.kind)
    if alike and (inside or (whole and (own.categories or later.categories))):
        return
    message = (
        f"`{name}` starts from {first.name} ({support_words(first)}), but its later elements are drawn from "
        f"{family.name} ({support_words(family)})"
    )
    ctx.scope.report(MISSING_FROM, message, place)


def _family_calls(tree: TupleArith, ctx: StepContext) -> list[tuple[Draw, Family]]:
    calls = [Draw(one.func, one.args, None, one.span) for one in tree.items if isinstance(one, ArithCall)]
    return [(draw, family) for draw in calls if (family := family_of(draw, ctx)) is not None]


def _check_count(tree: TupleArith, along: Along, ctx: StepContext, name: Name | None = None) -> None:
    """Report another number of first elements than are read; `name` is that of a recursion's name."""
    given, count = len(tree.items), along.count
    if given == count or _symbolic(ctx):
        return
    message = f"the step reads {_elements(count)} back, and `from` gives {given}"
    if name is not None:
        message = f"`{name.text}` begins behind its first {_elements(count)}, and `from` gives {given} of it"
    fixes: tuple[Fix, ...] = ()
    if given > count:
        kept = [ctx.text[item.span.start : item.span.end] for item in tree.items[:count]]
        put = kept[0] if count == 1 else f"({', '.join(kept)})"
        fixes = (Fix(f"Change to `{put}`", (Edit(ctx.scope.origin(tree.span), put),), preferred=True),)
    ctx.scope.report(MISSING_FROM, message, tree.span, fixes=fixes)


def _symbolic(ctx: StepContext) -> bool:
    """Whether sizes of sets are a template's parameters: each call says how far its steps look back."""
    sets = (entry.space.space for entry in ctx.scope.local.values() if isinstance(entry, ObjectEntry))
    return any(isinstance(space, Finite) and isinstance(space.size, Linear) for space in sets)


def _report_calls(tree: TupleArith, calls: Sequence[tuple[Draw, Family]], lag: int, ctx: StepContext) -> None:
    """`from (Normal(…), Normal(…))` where there is one first element, and `from (Normal(…), 0.0)`."""
    written = {ctx.text[item.span.start : item.span.end] for item in tree.items}
    name = calls[0][0].name
    message = f"one family call says what the first element is drawn from: `from {name.text}(…)`"
    if lag > 1:
        message = f"{_elements(lag)} come first, and each of them is drawn from a family, or each has a value"
    fixes = [Fix("Write it once", (Edit(ctx.scope.origin(tree.span), next(iter(written))),), preferred=True)]
    ctx.scope.report(SAMPLED_IN_LET, message, name.span, fixes=fixes if len(written) == 1 else ())


def _other_axes(along: Along) -> list[Axis]:
    """The axes of one element of a chain: the first ones come last."""
    return [(length(one), one.axis) for one in along.indices if one is not along.chain]
