"""What `: S` means: the value, its set, draws in each row, or a plate (docs/reference.md#plates-without-an-index)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.broadcasting import Axis, axes, by_place, plate_axes, with_axes
from qvr_core.semantics.arithmetic.elementwise import named_value, words
from qvr_core.semantics.language.family import support_words
from qvr_core.semantics.language.family_heads import landing_problem
from qvr_core.semantics.programs.families.narrowed import without_bounds
from qvr_core.semantics.programs.family_draws import FamilyArgument, TypedFamily
from qvr_core.semantics.programs.step_options import StepOptions
from qvr_core.semantics.programs.typed_sites import Ascription
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.codes import FAMILY_MISMATCH
from qvr_core.semantics.types.diagnostics import DeclarationSite, Related
from qvr_core.semantics.types.model.expressions import Bound, ValueType
from qvr_core.semantics.types.program_codes import (
    ASCRIPTION_MISMATCH,
    PLATE_MISMATCH,
    STEP_OPTION,
    UNNORMALISED,
    UNSIZED_DRAW,
)
from qvr_core.semantics.types.spaces import (
    Constrained,
    Dim,
    Finite,
    Named,
    Real,
    Seq,
    Space,
    Unknown,
    factors_of,
    is_finite,
    is_real,
    is_unknown,
    item_of,
    product,
    width,
)
from qvr_core.semantics.types.subspace import fit
from qvr_core.semantics.types.walk import operands, walk
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import ObjectExpr


@immutable
class Ascribed:
    """The decision, the space it is about, and the type of the bound value."""

    ascription: Ascription
    space: Named | None
    type: ValueType
    over: Named | None


def ascribe(
    kind: str,
    drawn: TypedFamily,
    space: Named | None,
    tree: ObjectExpr | None,
    options: StepOptions,
    place: Span,
    ctx: StepContext,
) -> Ascribed:
    """Decide what the ascription means, in the order of the language, and check it."""
    over = options.over
    if options.via is not None or options.at is not None:
        indexed = (name for argument in drawn.arguments for name in argument.value.type.indexed)
        ctx.plates.update(name for name in indexed if name is not None)
    if space is None or tree is None:
        if options.iid_over is not None:
            return plates_over(kind, drawn, options.iid_over, place, options, ctx)
        if not options.damaged:
            _check_sized(kind, drawn, place, ctx)
        return Ascribed(Ascription.NONE, None, drawn.type, over)
    if is_unknown(space.space) or any(map(is_unknown, factors_of(space.space))):
        return Ascribed(Ascription.NONE, None, ValueType(Unknown(), rows=drawn.rows), over)
    if isinstance(space.space, Seq) and kind != "observe" and not _long_as_another(drawn):
        name = drawn.family.name
        message = f"`{space.written}` does not say how long it is: {name} is as long as a sequence among its arguments"
        ctx.scope.report(UNSIZED_DRAW, message, tree.span)
        return Ascribed(Ascription.NONE, None, ValueType(Unknown(), rows=drawn.rows), over)
    if is_real(item_of(space.space)):
        return _value(drawn, space, tree.span, options, ctx)
    if not is_finite(item_of(space.space)):
        message = f"`{space.written}` mixes finite and real factors; {drawn.family.name} draws one kind"
        ctx.scope.report(ASCRIPTION_MISMATCH, message, tree.span)
        return Ascribed(Ascription.VALUE, space, ValueType(Unknown(), rows=drawn.rows), over)
    if drawn.own_factors and is_finite(space.space):
        return _event(kind, drawn, space, tree.span, options, ctx)
    if options.iid_over is not None and options.iid_over.space != space.space:
        _report_other_plate(space, tree.span, ctx)
    family = drawn.family
    if kind == "observe" and drawn.rows and _is_row_name(drawn, space):
        return Ascribed(Ascription.NONE, None, drawn.type, over)
    if family.support.kind == "finite" and (drawn.rows or _names_values(drawn, space, options)):
        return _value_set(drawn, space, tree.span, ctx)
    if drawn.rows and not family.discrete:
        return replace(plates_over(kind, drawn, space, tree.span, options, ctx), ascription=Ascription.ROW_DRAWS)
    return plates_over(kind, drawn, space, tree.span, options, ctx)


def ascribe_elements(
    kind: str,
    drawn: TypedFamily,
    space: Named,
    over: Named,
    tree: ObjectExpr,
    options: StepOptions,
    place: Span,
    ctx: StepContext,
) -> Ascribed:
    """What a finite set beside indices means: the set that each element is of; the indices run `over` the plate."""
    element = _value_set(drawn, space, tree.span, ctx).type.space
    decided = plates_over(kind, drawn, over, place, options, ctx)
    return replace(decided, type=replace(decided.type, space=element))


def _long_as_another(drawn: TypedFamily) -> bool:
    """Whether an argument is a sequence."""
    return any(isinstance(argument.value.type.space, Seq | Unknown) for argument in drawn.arguments)


# ---------------------------------------------------------------- the value


def _value(drawn: TypedFamily, space: Named, place: Span, options: StepOptions, ctx: StepContext) -> Ascribed:
    inner = item_of(space.space)
    if isinstance(inner, Constrained) and inner.kind == "Ordered":
        return _ordered(drawn, space, place, options, ctx)
    problem = landing_problem(drawn.family, without_bounds(inner))
    if problem is not None:
        ctx.scope.report(FAMILY_MISMATCH, problem.replace("the codomain", f"`{space.written}`"), place)
    elif drawn.family.event == 0:
        for argument in drawn.arguments:
            if not _is_wider(argument, space, inner, options, ctx):
                _check_width(argument, space, inner, ctx)
    elif drawn.size is not None and not isinstance(drawn.type.space, Unknown | None):
        wanted = inner.size if isinstance(inner, Constrained) else width(inner)
        _require_size(drawn, wanted, space, place, ctx)
    plates: list[Axis] = []
    if options.iid_over is not None:
        plates = axes_of(options.iid_over)
    bound = with_axes(plates, space.space, like=[ValueType(None, rows=drawn.rows)], event=drawn.type.event)
    return Ascribed(Ascription.VALUE, space, bound, options.over)


def _ordered(drawn: TypedFamily, space: Named, place: Span, options: StepOptions, ctx: StepContext) -> Ascribed:
    """Draws of one distribution in ascending order."""
    family = drawn.family
    plates = [] if options.iid_over is None else axes_of(options.iid_over)
    size = inner.size if isinstance(inner := item_of(space.space), Constrained) else None
    placed = [argument for argument in drawn.arguments if by_place(argument.value, argument.parameter.rank, size)]
    over = [one for one in drawn.arguments if one not in placed and _besides(one, plates)]
    if family.event or family.discrete:
        message = f"`{space.written}` orders draws of real numbers, and {family.name} draws {support_words(family)}"
        ctx.scope.report(FAMILY_MISMATCH, message, place)
    elif options.limits:
        key, limit = next(iter(options.limits.items()))
        ctx.scope.report(STEP_OPTION, f"`{key}` is of single numbers, not of `{space.written}`", limit.key)
    elif options.noncentred is not None:
        message = f"`noncentred` is of single draws: the entries of `{space.written}` move by what lies between them"
        ctx.scope.report(STEP_OPTION, message, options.noncentred.span)
    elif over:
        what = words(over[0].tree, f"`{over[0].name}`")
        message = f"`{space.written}` orders draws of one distribution, but {what} has a value for each of several"
        ctx.scope.report(ASCRIPTION_MISMATCH, message, over[0].tree.span)
    else:
        _check_normalised(placed, space, ctx)
    bound = with_axes(plates, space.space, like=[ValueType(None, rows=drawn.rows)])
    return Ascribed(Ascription.VALUE, space, bound, options.over)


def _check_normalised(placed: Sequence[FamilyArgument], space: Named, ctx: StepContext) -> None:
    """Warn of an argument by place that a latent decides: what the density lacks depends on it, too."""
    for argument in placed:
        names = [one.name for one in walk(argument.value, operands) if isinstance(one, Bound)]
        latent = next((name for name in names if _moves(name, ctx)), None)
        if latent is not None:
            message = (
                f"the density of `{space.written}` by place is not normalised, and what it lacks depends on "
                f"`{latent}`: the fit is drawn to where that is small"
            )
            ctx.scope.report(UNNORMALISED, message, argument.tree.span)
            return


def _moves(name: str, ctx: StepContext) -> bool:
    binding = ctx.bindings.get(name)
    return binding is not None and binding.kind in ("sample", "let")


def _besides(argument: FamilyArgument, plates: list[Axis]) -> bool:
    """True where an argument has axes that are neither its own nor the plate's."""
    shape = axes(argument.value.type) or []
    names = [name for _, name in shape[: max(0, len(shape) - argument.parameter.rank)]]
    return any(name not in [plate for _, plate in plates] for name in names)


def _is_wider(argument: FamilyArgument, space: Named, inner: Space, options: StepOptions, ctx: StepContext) -> bool:
    """Report an argument with more axes than a vector: one for each of several, for which the step has no index."""
    shape = axes(argument.value.type) or []
    own = len(inner.shape) if isinstance(inner, Real) else 1
    plates = set[str | None]() if options.iid_over is None else plate_names(options.iid_over)
    front = shape[: max(0, len(shape) - own)]
    picked = options.via is not None or options.at is not None
    if (
        width(inner) == 1
        or picked
        or argument.parameter.rank
        or all(size == 1 or (name is not None and name in plates) for size, name in front)
    ):
        return False
    over = " * ".join(name or f"{_number(size or 0)} rows" for size, name in front)
    message = (
        f"{words(argument.tree, 'the argument')} has one for each of {over}, and the draw is one `{space.written}`"
    )
    ctx.scope.report(ASCRIPTION_MISMATCH, message, argument.tree.span)
    return True


def _check_width(argument: FamilyArgument, space: Named, inner: Space, ctx: StepContext) -> None:
    if argument.parameter.shape != "element" or isinstance(argument.value.type.space, Finite):
        return
    shape = axes(argument.value.type)
    if not shape or shape[-1][0] is None or shape[-1][0] == 1 or (width(inner) == 1 and len(argument.value.type.sizes)):
        return
    if isinstance(inner, Real) and len(shape) == len(inner.shape) > 1:
        return
    given = named_value(argument.value, ctx)
    wide = Named(Real((shape[-1][0],)), shape[-1][1] or given.written)
    ctx.scope.require_fit(
        wide,
        Named(Real((width(inner),)), space.written),
        argument.tree.span,
        ASCRIPTION_MISMATCH,
        f"{words(argument.tree, 'the argument')} is",
        "the draw is",
    )


def _require_size(drawn: TypedFamily, wanted: Dim, space: Named, place: Span, ctx: StepContext) -> None:
    assert drawn.size is not None
    ctx.scope.require_fit(
        Named(Real((drawn.size,)), f"{_number(drawn.size)} entries"),
        Named(Real((wanted,)), space.written),
        place,
        ASCRIPTION_MISMATCH,
        f"{drawn.family.name} draws",
        "the ascription says",
    )


def _number(size: Dim) -> str:
    return str(int(size)) if isinstance(size, int) else "_"


# ---------------------------------------------------------------- the set of values


def _names_values(drawn: TypedFamily, space: Named, options: StepOptions) -> bool:
    """Where `via` or the arguments' own plate gives the rows, S names the values if it is the family's value set."""
    other_rows = any(name is not None and name not in plate_names(space) for _, name in plate_axes(drawn.type))
    return (options.via is not None or other_rows) and is_value_set(drawn, space)


def _is_row_name(drawn: TypedFamily, space: Named) -> bool:
    """True where S can only name the rows: 0 or 1 is drawn in each row, and S is a set of another size."""
    own = drawn.family.support.size
    if own is None or not isinstance(space.space, Finite):
        return False
    return space.space.labels is None and isinstance(space.space.size, int) and int(space.space.size) != own


def is_value_set(drawn: TypedFamily, space: Named) -> bool:
    """True where S is certainly the set that the family draws from."""
    own = drawn.type.space
    if not isinstance(own, Finite) or not isinstance(space.space, Finite):
        return False
    if own.nominal is not None:
        return own.nominal == space.space.nominal
    result = fit(own, space.space)
    return result.problem is None and result.widths not in ("wrong", "open")


def _value_set(drawn: TypedFamily, space: Named, place: Span, ctx: StepContext) -> Ascribed:
    own = None if drawn.type.space is None else item_of(drawn.type.space)
    values = space.space
    problem = landing_problem(drawn.family, item_of(space.space))
    if problem is not None:
        message = problem.replace("the codomain", f"`{space.written}`")
        ctx.scope.report(FAMILY_MISMATCH, message, place, _declared(space, ctx))
        values = Unknown()
    elif isinstance(own, Finite) and isinstance(space.space, Finite):
        fits = ctx.scope.require_fit(
            Named(own, own.nominal or f"{_number(own.size)} values"),
            space,
            place,
            ASCRIPTION_MISMATCH,
            f"{drawn.family.name} draws from",
            "the ascription says",
        )
        values = values if fits else Unknown()
    plates = plate_axes(drawn.type) if own is not None else []
    bound = with_axes(plates, values, like=[drawn.type, ValueType(None, rows=drawn.rows)])
    return Ascribed(Ascription.VALUE_SET, space, bound, None)


def _declared(space: Named, ctx: StepContext) -> list[Related]:
    nominal = space.space.nominal if isinstance(space.space, Finite) else None
    return [Related(f"`{nominal}` is declared here", DeclarationSite(nominal))] if nominal else []


# ---------------------------------------------------------------- plates


def _event(
    kind: str, drawn: TypedFamily, space: Named, place: Span, options: StepOptions, ctx: StepContext
) -> Ascribed:
    """The last sets are axes of one draw, which they may size; those in front of them are plates."""
    factors = factors_of(space.space)
    front, (*_, last) = factors[: -drawn.own_factors], factors
    assert isinstance(last, Finite)
    event = Named(last, last.nominal or space.written) if drawn.own_factors == 1 else options.over
    if drawn.size is None:
        drawn = replace(drawn, size=last.size, type=_sized(drawn, last))
    plate = _product(front) if front else options.iid_over
    if plate is not None and options.iid_over not in (None, plate):
        _report_other_plate(plate, place, ctx)
    if plate is None:
        return Ascribed(Ascription.NONE, None, drawn.type, event)
    return replace(plates_over(kind, drawn, plate, place, options, ctx), over=event)


def _sized(drawn: TypedFamily, last: Finite) -> ValueType:
    """The type of one draw that runs over a set which nothing but its name sizes."""
    kind = drawn.family.support.kind
    vector: Space = Real((last.size,)) if kind == "real" else Constrained(kind, last.size)
    return ValueType(vector, rows=drawn.rows, event=last.nominal)


def _product(factors: Sequence[Space]) -> Named:
    names = [factor.nominal if isinstance(factor, Finite) else None for factor in factors]
    return Named(product(zip(names, factors, strict=True)), " * ".join(name or "_" for name in names))


def _report_other_plate(plate: Named, place: Span, ctx: StepContext) -> None:
    ctx.scope.report(STEP_OPTION, f"`iid_over` is the plate of the draws, and that is `{plate.written}` here", place)


def _check_sized(kind: str, drawn: TypedFamily, place: Span, ctx: StepContext) -> None:
    if kind == "observe" or drawn.family.event == 0 or drawn.size is not None:
        return
    own = [argument for argument in drawn.arguments if not argument.parameter.apart]
    if any(argument.parameter.shape == "matrix" or axes(argument.value.type) is None for argument in own):
        return
    if not drawn.arguments and drawn.family.parameters[0].default is None:
        return
    message = f"nothing says how long the vector of {drawn.family.name} is: add `[over=…]` or a type"
    ctx.scope.report(UNSIZED_DRAW, message, place)


def plates_over(
    kind: str, drawn: TypedFamily, space: Named, place: Span, options: StepOptions, ctx: StepContext
) -> Ascribed:
    """Independent draws for each element of a plate."""
    plates = axes_of(space)
    own = drawn.type
    if kind != "sample":
        ctx.plates.update(name for _, name in plates if name is not None)
    for argument in drawn.arguments:
        ctx.plates.update(name for name in argument.value.type.indexed if name is not None)
    shape = axes(own)
    _check_sized(kind, drawn, place, ctx)
    if own.space is None or isinstance(own.space, Unknown) or shape is None:
        return Ascribed(Ascription.PLATE, space, ValueType(own.space, rows=own.rows), options.over)
    # `via` and `at` pick each row's element of the arguments
    for argument in () if options.via or options.at or options.damaged else drawn.arguments:
        _check_plate(kind, argument, plates, space, ctx)
    # a vector family's draw is one element, whatever its length
    element = _element(own, plates) if drawn.family.event == 0 else own.space
    event = None if isinstance(element, Real) and drawn.family.event == 0 else own.event
    return Ascribed(Ascription.PLATE, space, with_axes(plates, element, like=[own], event=event), options.over)


def _element(own: ValueType, plates: list[Axis]) -> Space:
    """One draw of the plate: arguments that run along the plate make scalars, others vectors."""
    space = own.space.item if isinstance(own.space, Seq) else own.space
    if space is None:
        return Unknown()
    size = width(space)
    along = own.event is not None or any(isinstance(p, int) and isinstance(size, int) and p == size for p, _ in plates)
    return Real((1,), space.low, space.high) if isinstance(space, Real) and along else space


def _check_plate(kind: str, argument: FamilyArgument, plates: list[Axis], space: Named, ctx: StepContext) -> None:
    """An argument's own plates must be those of the draw."""
    shape = axes(argument.value.type) or []
    given = shape[: max(0, len(shape) - argument.parameter.rank)]
    names = [name for _, name in plates]
    wrong = next((axis for axis in given if axis[1] is not None and axis[1] not in names), None)
    if wrong is None or None in names or wrong[0] == 1:
        return
    what = words(argument.tree, f"`{argument.name}`")
    rows = "rows are" if kind == "observe" else "plate is"
    (size, name), wanted = wrong, plates[-1][0]
    message = f"{what} runs over `{name}`{_counted(size)}, but the {rows} `{space.written}`{_counted(wanted)}"
    message += f"; pick one for each with an index: `{what.strip('`')}[…]`"
    ctx.scope.report(PLATE_MISMATCH, message, argument.tree.span, _declared(space, ctx))


def _counted(size: Dim | None) -> str:
    return f" ({int(size)})" if isinstance(size, int) else ""


def plate_names(space: Named) -> set[str | None]:
    """What the axes of a plate are called."""
    return {name for _, name in axes_of(space)}


def axes_of(space: Named) -> list[Axis]:
    """The axes of a plate over a finite set, or over a product of such."""
    found: list[Axis] = []
    for factor in factors_of(item_of(space.space)):
        found.append((factor.size, factor.nominal) if isinstance(factor, Finite) else (None, None))
    return found
