"""Steps written with indices: `let v[t : Time] = … from …`, `observe y[i : Row] <- …` (docs/reference.md#indices)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.alignment import arrange
from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.bare import report_bare
from qvr_core.semantics.arithmetic.broadcasting import SCALAR, Axis, axes, from_axes, plate_axes, with_axes
from qvr_core.semantics.arithmetic.indices import Lag, lags, length, mentions, running, without
from qvr_core.semantics.arithmetic.mixture_draws import family_of
from qvr_core.semantics.arithmetic.own_reads import check_alike, reads_itself
from qvr_core.semantics.arithmetic.ranges import range_of
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.programs.ascriptions import ascribe, plates_over
from qvr_core.semantics.programs.family_draws import TypedFamily, check_family
from qvr_core.semantics.programs.observed.limits import check_limits, check_option_axes
from qvr_core.semantics.programs.observed.missing_cells import missing_cells
from qvr_core.semantics.programs.step_options import check_noncentred, read_step_options
from qvr_core.semantics.programs.typed_sites import TypedSite, drawn_as, made_site, named_type
from qvr_core.semantics.scope.environment import Binding, Running, StepContext
from qvr_core.semantics.scope.unsupported import refuse
from qvr_core.semantics.types.axes import indexed, set_of
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.display import structure
from qvr_core.semantics.types.intervals import ANYTHING
from qvr_core.semantics.types.model import (
    Chain,
    Constant,
    Expr,
    FamilyDraw,
    Index,
    IndexedValue,
    LetModel,
    RunningIndex,
    ValueType,
)
from qvr_core.semantics.types.program_codes import (
    INDEX_MISMATCH,
    MISSING_FROM,
    PATTERN_MISMATCH,
    STEP_OPTION,
)
from qvr_core.semantics.types.spaces import REAL_LINE, Finite, Named, Space, Unknown, product
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree import (
    Arith,
    ArithCall,
    Draw,
    DrawStep,
    LetStep,
    MarginalizeStep,
    Name,
    ObserveStep,
    PredictStep,
    SampleStep,
    Span,
    TupleArith,
)

Bindings = list[tuple[str, Binding]]
Indexed = SampleStep | ObserveStep | PredictStep


@immutable
class Along:
    """The indices of a step; `chain` is the one that lags behind, `count` by how many elements."""

    indices: tuple[Running, ...]
    chain: Running | None
    count: int

    @property
    def model(self) -> tuple[RunningIndex, ...]:
        return tuple(RunningIndex(name=one.name, space=one.space or Unknown(), lag=one.lag) for one in self.indices)

    @property
    def plates(self) -> list[Axis]:
        """The axes that the step's name gets: all elements of every set."""
        return [(None, None) if one.space is None else (one.space.size, one.space.nominal) for one in self.indices]

    @property
    def axes(self) -> list[Axis]:
        """The axes inside the step."""
        return [(length(one), one.axis) for one in self.indices]


def along_of(indices: Sequence[Running]) -> Along:
    chain = next((one for one in indices if one.lag), None)
    return Along(tuple(indices), chain, 0 if chain is None else chain.lag)


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


def report_missing_start(lag: Lag, ctx: StepContext) -> None:
    """A shift without `from`."""
    elements = "the first element is" if lag.count == 1 else f"the first {lag.count} elements are"
    message = f"nothing says what {elements}: end the step with `from …`"
    ctx.scope.report(MISSING_FROM, message, lag.place)


def check_start(step: LetStep | DrawStep, behind: Mapping[str, Lag], told: int, ctx: StepContext) -> None:
    """Report a `from` in a step that looks back at nothing, where that is no consequence of another mistake.

    `told` is how many mistakes had been told before the step.
    """
    if step.start is not None and not behind and len(ctx.scope.diagnostics) == told:
        report_idle_start(step.start.span, ctx)


def report_idle_start(place: Span, ctx: StepContext) -> None:
    """A `from` in a step that looks back at nothing."""
    message = "no element of this step reads an earlier one, so `from` starts nothing"
    ctx.scope.report(INDEX_MISMATCH, message, place)


# ---------------------------------------------------------------- let


def indexed_let(step: LetStep, ctx: StepContext) -> tuple[LetModel, Bindings]:
    """`let name[i : I] = e`, several names by a pattern, recursions with `from`."""
    names, told = step.pattern.names, len(ctx.scope.diagnostics)
    trees = _entries(step.value, names, ctx)
    own = {name.text: name for name in names}
    behind = _behind(trees, step, ctx)
    recursive = any(mentions(tree, own) - _above(at, names) for at, tree in enumerate(trees))
    chain = next(iter(behind), None)
    later = [{name.text for name in names[at:]} for at in range(len(names))]
    circle = any(reads_itself([tree], rest, step.binders, chain, ctx) for tree, rest in zip(trees, later, strict=True))
    with running(step.binders, behind, ctx) as indices:
        along = along_of(indices)
        starts = _starts(step, trees, along, ctx)
        if recursive:
            for name, start in zip(names, starts or [()] * len(names), strict=True):
                ctx.locals[name.text] = _unknown(name, ctx) if circle else _own(start, along, name, ctx)
        values: list[Expr] = []
        for name, tree in zip(names, trees, strict=True):
            value = laid_out(check_arith(tree, ctx), along, ctx)
            values.append(value)
            if starts:
                check_alike(name, starts[len(values) - 1], value, len(along.indices), recursive, ctx)
            ctx.locals[name.text] = Binding(
                "let", outside(value.type, along), _named(value.type), ctx.scope.origin(name.span)
            )
        check_start(step, behind, told, ctx)
        ranges = [ANYTHING if recursive or starts else range_of(value, ctx) for value in values]
    model = IndexedValue(
        indices=along.model, values=tuple(values), starts=tuple(tuple(start) for start in starts), recursive=recursive
    )
    bindings: Bindings = []
    for name, value, lies in zip(names, values, ranges, strict=True):
        kind = outside(value.type, along)
        origin = ctx.scope.origin(name.span)
        bindings.append((name.text, Binding("let", kind, _named(kind), origin, frozenset(ctx.reaches), range=lies)))
    origin = ctx.scope.origin(step.pattern.span)
    let = LetModel(names=tuple(name.text for name in names), value=values[0], origin=origin, indexed=model)
    return let, bindings


def _entries(tree: Arith, names: Sequence[Name], ctx: StepContext) -> Sequence[Arith]:
    """One expression for each name of a pattern."""
    entries: Sequence[Arith] = tree.items if isinstance(tree, TupleArith) else (tree,)
    if len(entries) == len(names):
        return entries
    counted = f"{len(entries)} {'value' if len(entries) == 1 else 'values'}"
    message = f"there are {len(names)} names here and {counted}: write `(…, …)` with one for each"
    ctx.scope.report(PATTERN_MISMATCH, message, tree.span)
    return [entries[min(at, len(entries) - 1)] for at in range(len(names))]


def _above(at: int, names: Sequence[Name]) -> set[str]:
    return {name.text for name in names[:at]}


def _named(kind: ValueType) -> Named:
    space: Space = Unknown() if kind.space is None else kind.space
    return Named(space, structure(space))


def _unknown(name: Name, ctx: StepContext) -> Binding:
    """A name of which a mistake was told already."""
    kind = ValueType(Unknown())
    return Binding("let", kind, _named(kind), ctx.scope.origin(name.span))


def _own(start: Sequence[Expr], along: Along, name: Name, ctx: StepContext) -> Binding:
    """What a name stands for inside its own recursion: elements like those that it starts from."""
    element = start[0].type if start else SCALAR
    plates = plate_axes(element)[len(along.indices) - 1 :]
    kind = with_axes([*along.plates, *plates], element.space or REAL_LINE, like=(), event=element.event)
    return Binding("let", kind, _named(kind), ctx.scope.origin(name.span))


# ---------------------------------------------------------------- shapes


def laid_out(value: Expr, along: Along, ctx: StepContext, *, leave: Running | None = None) -> Expr:
    """`value` with the axes of the indices in front, in their order; those that it lacks have length 1."""
    found = axes(value.type)
    if found is None or value.type.space is None:
        return value
    names = [name for _, name in found]
    sets = {set_of(one.axis): one for one in along.indices}
    bare = next((sets[name] for name in names if name is not None and not indexed(name) and name in sets), None)
    if bare is not None:
        report_bare(value, "this", bare, value.origin, ctx)
        return replace(value, type=ValueType(Unknown(), rows=value.type.rows))
    front = [names.index(one.axis) if one.axis in names else None for one in along.indices if one is not leave]
    rest = [at for at in range(len(names)) if at not in front]
    return arrange(value, [*front, *rest])


def outside(kind: ValueType, along: Along) -> ValueType:
    """The type of a laid-out value once the step is left: axes by their sets, every element of them."""
    found = axes(kind)
    if found is None or isinstance(kind.space, Unknown):
        return kind
    behind = [(size, None if name is None else set_of(name)) for size, name in found[len(along.indices) :]]
    plates = max(len(kind.indexed), len(along.indices))
    whole = [*along.plates, *behind]
    if len(kind.indexed) >= len(along.indices):
        return with_axes(whole[:plates], kind.space or REAL_LINE, like=[kind], event=kind.event)
    return from_axes(whole, plates, like=[kind])


# ---------------------------------------------------------------- first elements


def _starts(step: LetStep, trees: Sequence[Arith], along: Along, ctx: StepContext) -> list[list[Expr]]:
    """The first elements of each name."""
    if step.start is None or along.chain is None:
        return []
    names = step.pattern.names
    entries = [step.start] if len(names) == 1 else _entries(step.start, names, ctx)
    with without(along.chain, ctx):
        return [first_values(entry, along, ctx) for entry in entries]


def first_values(tree: Arith, along: Along, ctx: StepContext) -> list[Expr]:
    """One value for each of the first elements, or one for all of them."""
    if isinstance(tree, TupleArith):
        if len(tree.items) != along.count:
            message = f"the step reads {_elements(along.count)} back, and `from` gives {len(tree.items)}"
            ctx.scope.report(MISSING_FROM, message, tree.span)
        return [laid_out(check_arith(item, ctx), along, ctx, leave=along.chain) for item in tree.items]
    value = check_arith(tree, ctx)
    found = axes(value.type) or []
    if along.count > 1 and found and found[0][0] == along.count and not indexed(found[0][1] or ""):
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


# ---------------------------------------------------------------- draws


def indexed_site(kind: str, name: Name, step: Indexed, ctx: StepContext) -> TypedSite | None:
    """`sample u[p : Person] <- Family(…)`; None where what is drawn from is no family."""
    family = family_of(step.draw, ctx)
    if family is None:
        return None
    trees, told = [arg.value for arg in step.draw.args or ()], len(ctx.scope.diagnostics)
    behind = _behind(trees, step, ctx)
    space = None if step.space is None else check_object_expr(step.space, ctx.scope)
    circle = reads_itself(trees, {name.text}, step.binders, next(iter(behind), None), ctx)
    if behind and _of_vectors(family, space):
        place = step.draw.name.span if step.space is None else step.space.span
        circle = refuse("chain of vectors", place, ctx.scope)
        space = None
    with running(step.binders, behind, ctx) as indices:
        along = along_of(indices)
        options = read_step_options(kind, step.options, ctx)
        for option in (options.via, options.at):
            if option is not None:
                ctx.scope.report(STEP_OPTION, "an index looks this up: `x[group[i]]` in place of `via=`", option.origin)
        if circle:
            ctx.locals[name.text] = _unknown(name, ctx)
        elif along.chain is not None:
            element = space.space if space is not None else REAL_LINE
            own = with_axes(along.plates, element, like=())
            ctx.locals[name.text] = Binding(kind, own, _named(own), ctx.scope.origin(name.span))
        elif step.start is not None:
            ctx.locals[name.text] = _unknown(name, ctx)
        drawn = outside_of(check_family(step.draw, family, options.over, ctx, along.axes))
        start = first_draw(step, along, ctx)
        check_start(step, behind, told, ctx)
        missing = missing_cells(name, family, options, ctx, trees, indices)
    over = product_of(indices)
    if space is not None and step.space is not None:
        whole = replace(options, iid_over=over)
        decided = ascribe(drawn_as(kind), drawn, space, step.space, whole, step.draw.name.span, ctx)
        options = replace(whole, over=decided.over)
    else:
        decided = plates_over(drawn_as(kind), drawn, over, step.draw.name.span, options, ctx)
        options = replace(options, over=decided.over)
    check_limits(family, options, ctx)
    check_option_axes(name.text, options, decided.type, ctx)
    if along.chain is not None and options.limits:
        key, limit = next(iter(options.limits.items()))
        ctx.scope.report(STEP_OPTION, f"`{key}` needs elements that do not depend on each other", limit.key)
    row_local = kind != "observe" and not drawn.rows
    origin = ctx.scope.origin(name.span)
    site = made_site(name, decided.ascription, decided.space, drawn.model, EXACT, options, row_local, origin)
    drawn_from = [family, *([facts_of_draw(start)] if isinstance(start, FamilyDraw) else [])]
    moved = all(check_noncentred(step.options, options.noncentred, one, ctx) for one in drawn_from)
    site = replace(site, indices=along.model, missing=missing, noncentred=moved)
    if along.chain is not None:
        site = replace(site, chain=Chain(indices=along.model, at=along.indices.index(along.chain), start=start))
    return TypedSite(site, decided.type, named_type(decided.type, decided.ascription, decided.space), drawn)


def _of_vectors(family: Family, space: Named | None) -> bool:
    """Whether one element of a site is more than a number."""
    single = space is None or space.space == REAL_LINE or isinstance(space.space, Finite | Unknown)
    return family.event > 0 or not single


def product_of(indices: Sequence[Running]) -> Named:
    """The sets of all indices together."""
    space = product((one.named.written, one.space or Unknown()) for one in indices)
    return Named(space, " * ".join(one.named.written for one in indices))


def outside_of(drawn: TypedFamily) -> TypedFamily:
    """A draw as it is seen outside of the step: axes by their sets."""
    arguments = tuple(replace(one, value=replace(one.value, type=_plain(one.value.type))) for one in drawn.arguments)
    return replace(drawn, arguments=arguments, type=_plain(drawn.type))


def _plain(kind: ValueType) -> ValueType:
    event = None if kind.event is None else set_of(kind.event)
    return replace(kind, indexed=tuple(None if name is None else set_of(name) for name in kind.indexed), event=event)


def first_draw(
    step: Indexed | MarginalizeStep,
    along: Along,
    ctx: StepContext,
    behind: Sequence[Axis] = (),
    check: Callable[[TypedFamily, Span], None] | None = None,
) -> FamilyDraw | tuple[Expr, ...] | None:
    """What the first elements are drawn from, or their values; `behind` are further axes of a draw.

    `check` sees the draw and where its family stands.
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
            return drawn.model
        return tuple(first_values(tree, along, ctx))


def _other_axes(along: Along) -> list[Axis]:
    """The axes of one element of a chain: the first ones come last."""
    return [(length(one), one.axis) for one in along.indices if one is not along.chain]
