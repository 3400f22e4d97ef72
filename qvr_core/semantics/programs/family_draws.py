"""Draws from a family: arguments matched to parameters, and the type of one draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.alignment import align, arrange
from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import SCALAR, Axis, axes, data_along, data_like, from_axes, with_axes
from qvr_core.semantics.arithmetic.elementwise import broadcast_shape, words
from qvr_core.semantics.arithmetic.mixture_draws import Written, written
from qvr_core.semantics.arithmetic.unindexed_values import report_bare
from qvr_core.semantics.arrows.family_calls import (
    bounds_problem,
    filled_in,
    kept_arguments,
    missing_message,
    named_parameter,
    signature,
)
from qvr_core.semantics.language.family import Family, Parameter
from qvr_core.semantics.language.mixtures import MIXTURE, WEIGHTS, component_names, numbered
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.programs.argument_support import check_bounds, check_support
from qvr_core.semantics.programs.families.event_sets import check_over, event_set, event_sets, own_factors
from qvr_core.semantics.programs.families.lengths import check_lengths
from qvr_core.semantics.programs.families.literal_arguments import check_literals
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.families import declared_in, family_named
from qvr_core.semantics.types.axes import indexed, set_of
from qvr_core.semantics.types.codes import FAMILY_ARGUMENTS
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.expressions import Constant, Expr, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.spaces import Constrained, Dim, Finite, Named, Real, Seq, Space, Unknown, add
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.steps import Draw


@immutable
class FamilyArgument:
    """An argument under its canonical name (or that of another parametrisation)."""

    name: str
    parameter: Parameter
    value: Expr
    tree: Arith


@immutable
class TypedFamily:
    """A family with its arguments; `size` is the length of the drawn vector or set of values where it is known.

    `own_factors` is how many sets at the end of the type beside the draw are axes of one draw, and no plates.
    """

    family: Family
    arguments: tuple[FamilyArgument, ...]
    model: FamilyDraw
    type: ValueType
    rows: bool
    size: Dim | None
    own_factors: int = 0

    def event_set(self, ctx: StepContext) -> Named | None:
        """The set that one draw runs over as its arguments say."""
        return event_set(self.family, _typed(self.arguments), ctx)


def check_family(
    draw: Draw,
    family: Family,
    over: Named | None,
    ctx: StepContext,
    plates: Sequence[Axis] = (),
    *,
    picked: bool = False,
    kind: str = "",
) -> TypedFamily:
    """The typed draw; reports missing, surplus, unknown and impossible arguments.

    `plates` are those of the type beside the draw: arguments are laid along them.  `picked` says that rows pick their
    element of each argument.  With the `kind` of a step, the last of the plates may be axes of the draw itself.
    """
    given = _arguments(draw, family, ctx)
    check_over(family, [(one.parameter, one.value, one.tree) for one in given], over, ctx)
    own = _own_factors(family, given, over, plates, kind)
    plates = plates[: len(plates) - own]
    arguments = _aligned(given, plates, picked, draw, ctx)
    for argument in arguments:
        ctx.plates.update(name for name in _own_axes(argument) if name is not None)
    model = FamilyDraw(
        family=family.name,
        args=tuple((argument.name, argument.value) for argument in arguments),
        origin=ctx.scope.origin(draw.span),
        declared=tuple(declared_in(family.name, ctx.scope)),
    )
    size = _event_size(family, arguments, over)
    one = _draw_type(family, arguments, over, size, draw, ctx)
    rows = any(argument.value.type.rows for argument in arguments)
    return TypedFamily(family, tuple(arguments), model, replace(one, rows=rows), rows, size, own)


def _own_factors(
    family: Family, arguments: Sequence[FamilyArgument], over: Named | None, plates: Sequence[Axis], kind: str
) -> int:
    # the length of what is observed is that of its data
    sized = kind != "sample" or _event_size(family, arguments, over) is not None
    return own_factors(family, _typed(arguments), over, plates, sized=sized) if kind else 0


def _typed(arguments: Sequence[FamilyArgument]) -> list[tuple[Parameter, Expr]]:
    return [(argument.parameter, argument.value) for argument in arguments]


def _own_axes(argument: FamilyArgument) -> list[str | None]:
    """The sets that the vector or matrix itself runs over, behind the plates."""
    rank, shape = argument.parameter.rank, axes(argument.value.type)
    return [name for _, name in shape[-rank:]] if shape and rank else []


def _aligned(
    arguments: list[FamilyArgument], plates: Sequence[Axis], picked: bool, draw: Draw, ctx: StepContext
) -> list[FamilyArgument]:
    """The arguments with their plates in the order of the draw's, or arranged to go together."""
    if any([_is_bare(argument, ctx) for argument in arguments]):
        return [replace(one, value=replace(one.value, type=_UNKNOWN)) for one in arguments]
    aligned = align(
        [argument.value for argument in arguments],
        [words(argument.tree, f"`{argument.name}`") for argument in arguments],
        ctx.scope.origin(draw.name.span),
        ctx,
        ranks=[argument.parameter.rank for argument in arguments],
        plates=plates,
        apart=picked or bool(plates),
    )
    found = [replace(argument, value=value) for argument, value in zip(arguments, aligned.values, strict=True)]
    return [replace(one, value=replace(one.value, type=_UNKNOWN)) for one in found] if aligned.failed else found


_UNKNOWN = ValueType(Unknown())


def _is_bare(argument: FamilyArgument, ctx: StepContext) -> bool:
    """Whether an argument runs over the set of an index without that index, which is reported."""
    shape = axes(argument.value.type) or []
    own = {name for _, name in shape[: max(0, len(shape) - argument.parameter.rank)]}
    index = next((one for one in ctx.indices.values() if one.space is not None and set_of(one.axis) in own), None)
    if index is not None:
        where = ctx.scope.origin(argument.tree.span)
        report_bare(argument.value, words(argument.tree, f"`{argument.name}`"), index, where, ctx)
    return index is not None


# ---------------------------------------------------------------- arguments


def _arguments(draw: Draw, family: Family, ctx: StepContext) -> list[FamilyArgument]:
    mixture = written(draw, ctx.scope) if component_names(family.name) is not None else None
    return _own_arguments(draw, family, ctx) if mixture is None else _mixed_arguments(mixture, draw, family, ctx)


def _mixed_arguments(mixture: Written, draw: Draw, family: Family, ctx: StepContext) -> list[FamilyArgument]:
    """The weights, then what each component is given, read as if it were drawn from alone."""
    alone = replace(family, name=MIXTURE, parameters=(WEIGHTS,))
    found = _own_arguments(replace(draw, args=(mixture.weights,)), alone, ctx)
    _check_weights(found, len(mixture.components), ctx)
    for at, call in enumerate(mixture.components, 1):
        inner, own = Draw(call.func, call.args, None, call.span), family_named(call.func.text, ctx.scope)
        assert own is not None
        for one in _own_arguments(inner, own, ctx):
            parameter = numbered(one.parameter, at)
            found.append(replace(one, name=f"{one.name}_{at}", parameter=parameter))
    return found


def _check_weights(found: Sequence[FamilyArgument], count: int, ctx: StepContext) -> None:
    shape = axes(found[0].value.type) if found else None
    size = shape[-1][0] if shape else None
    if isinstance(size, int) and int(size) != count:
        message = f"{int(size)} weights for {count} components"
        ctx.scope.report(FAMILY_ARGUMENTS, message, found[0].tree.span)


def _own_arguments(draw: Draw, family: Family, ctx: StepContext) -> list[FamilyArgument]:
    found: dict[str, FamilyArgument] = {}
    good = True
    args = draw.args or ()
    most = len(family.parameters)
    counted = f"{most} argument" if most == 1 else f"{most} arguments"
    message = f"`{family.name}` takes at most {counted}, {signature(family)}"
    values = [check_arith(arg.value, ctx) for arg in args]
    kept = kept_arguments(family, args, ctx.scope, message)
    surplus = len(kept) < len(args)
    for index, at in enumerate(kept):
        arg, value = args[at], values[at]
        matched = _match(family, arg, index, ctx)
        if matched is None:
            good = False
            continue
        parameter, name, constraint = matched
        if parameter.name in found:
            ctx.scope.report(FAMILY_ARGUMENTS, f"`{parameter.name}` is given twice", arg.span)
            good = False
            continue
        value = _running_first(value, parameter.rank)
        found[parameter.name] = FamilyArgument(name, parameter, value, arg.value)
        if surplus:  # another family may be meant
            continue
        check_literals(family, parameter, name, constraint, value, arg, ctx)
        check_support(family, name, constraint, value, arg.value, ctx)
    check_lengths(family, [(one.parameter, one.value, one.tree) for one in found.values()], ctx)
    _check_bounds(family, found, ctx)
    missing = [p.name for p in family.parameters if p.default is None and p.name not in found]
    if missing and good:
        fixes = filled_in(family, missing, args, draw.name.span, draw.span, ctx.scope)
        ctx.scope.report(FAMILY_ARGUMENTS, missing_message(family, missing), draw.name.span, fixes=fixes)
    return [found[parameter.name] for parameter in family.parameters if parameter.name in found]


def _running_first(value: Expr, rank: int) -> Expr:
    """A value of which one draw reads the last `rank` axes: indices run in front of them where others are left."""
    names = [name for _, name in axes(value.type) or []]
    runs = [at for at, name in enumerate(names) if name is not None and indexed(name)]
    rest = [at for at in range(len(names)) if at not in runs]
    inside = any(at >= len(names) - rank for at in runs)
    return arrange(value, [*runs, *rest]) if inside and len(rest) >= rank else value


MOMENTS = {
    "mean": ("mean", "loc"),
    **dict.fromkeys(("sd", "std", "stddev"), ("standard deviation", "scale")),
}
"""What names say, and the parameter that it is of a Normal."""


def _match(family: Family, arg: ArithArg, index: int, ctx: StepContext) -> tuple[Parameter, str, str] | None:
    parameters = family.parameters
    if arg.key is None:
        return parameters[index], parameters[index].name, parameters[index].constraint
    key = arg.key.text
    if (named := named_parameter(family, key)) is not None:
        owner = next(p for p in parameters if p.name == named[0] or named[0] in dict(p.alternatives))
        return owner, *named
    near = closest(key, [parameter.name for parameter in parameters])
    moment, alike = MOMENTS.get(key, ("", ""))
    if any(parameter.name == alike for parameter in parameters):
        place = ctx.scope.origin(arg.key.span)
        message = f"the `{alike}` of `{family.name}` is not its {moment}: write `{alike}=` if that is meant"
        fix = Fix(f"Change to `{alike}`", (Edit(place, alike),))
        ctx.scope.report(FAMILY_ARGUMENTS, message, place, fixes=(fix,))
        return None
    message = f"`{family.name}` has no parameter `{key}`; "
    message += f"did you mean `{near}`?" if near else f"it takes {signature(family)}"
    place = ctx.scope.origin(arg.key.span)
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(place, near),), True),)
    ctx.scope.report(FAMILY_ARGUMENTS, message, place, fixes=fixes)
    return None


def _check_bounds(family: Family, found: Mapping[str, FamilyArgument], ctx: StepContext) -> None:
    """Literal bounds of the support in the wrong order."""
    numbers = {
        name: float(argument.value.value)
        for name, argument in found.items()
        if isinstance(argument.value, Constant) and not isinstance(argument.value.value, str)
    }
    if (problem := bounds_problem(family, numbers)) is None:
        if family.bounded_by is not None and all(name in found for name in family.bounded_by):
            first, last = (found[name] for name in family.bounded_by)
            check_bounds(family, ((first.value, first.tree), (last.value, last.tree)), ctx)
        return
    assert family.bounded_by is not None
    low, high = sorted((found[name].tree.span for name in family.bounded_by), key=lambda span: span.start)
    edits = [
        Edit(ctx.scope.origin(span), ctx.text[other.start : other.end]) for span, other in ((low, high), (high, low))
    ]
    fixes = (Fix("Swap them", tuple(edits), True),) if numbers["low"] != numbers["high"] else ()
    ctx.scope.report(FAMILY_ARGUMENTS, problem, Span(low.start, high.end), fixes=fixes)


# ---------------------------------------------------------------- the type of one draw


def _event_size(family: Family, arguments: Sequence[FamilyArgument], over: Named | None) -> Dim | None:
    """The length of a drawn vector, the number of categories, the side of a drawn matrix; None where nothing says."""
    if isinstance(family.length, int):
        return family.length
    if over is not None and isinstance(over.space, Finite):
        return over.space.size
    for argument in arguments:
        shape = axes(argument.value.type)
        own = argument.parameter
        if own.shape == "element" or own.apart or own.raw == "components" or not shape:
            continue
        if not (family.event or family.support.categories):
            continue
        last = shape[-1][0]
        if last is not None:
            return add((last, argument.parameter.fewer)) if argument.parameter.fewer else last
    return _matrix_side(arguments)


def _matrix_side(arguments: Sequence[FamilyArgument]) -> Dim | None:
    for argument in arguments:
        if argument.parameter.sizes and isinstance(argument.value, Constant) and isinstance(argument.value.value, int):
            return argument.value.value
    return None


def _event_name(family: Family, arguments: Sequence[FamilyArgument], over: Named | None) -> str | None:
    sets = event_sets(family, _typed(arguments), over)
    return sets[0] if len(sets) == 1 else None


def _draw_type(
    family: Family,
    arguments: Sequence[FamilyArgument],
    over: Named | None,
    size: Dim | None,
    draw: Draw,
    ctx: StepContext,
) -> ValueType:
    operands = [(_leading(argument), words(argument.tree, f"`{argument.name}`")) for argument in arguments]
    where = ctx.scope.origin(draw.name.span)
    lead = broadcast_shape(operands, where, ctx) if operands else SCALAR
    shape = axes(lead)
    if shape is None or isinstance(lead.space, Unknown):
        return lead
    space = _event_space(family, {a.name: a.value for a in arguments}, size, _event_name(family, arguments, over))
    if space is None:
        return data_like([lead])
    event = _event_name(family, arguments, over)
    if isinstance(space, Real) and family.event == 0:
        scalar = lead.space.item if isinstance(lead.space, Seq) else lead.space
        inner = Real(scalar.shape if isinstance(scalar, Real) else (1,), space.low, space.high)
        return replace(lead, space=Seq(inner) if isinstance(lead.space, Seq) else inner)
    return with_axes(shape, space, like=[lead], event=event)


def _leading(argument: FamilyArgument) -> Expr:
    """The argument without the axes that belong to one draw, for broadcasting with the others."""
    drop = argument.parameter.rank
    if argument.parameter.apart:
        return replace(argument.value, type=SCALAR)
    kind = argument.value.type
    if drop == 0:
        return argument.value
    shape = axes(kind)
    if shape is None:
        lead = data_along([kind])
    else:
        kept = shape[: max(0, len(shape) - drop)]
        lead = from_axes(kept, len(kept), like=[kind])
    return replace(argument.value, type=lead)


def _event_space(family: Family, args: Mapping[str, Expr], size: Dim | None, event: str | None) -> Space | None:
    support = family.support
    if support.kind == "real":
        if family.event == 0:
            return Real((1,), *_bounds(family, args))
        return None if size is None or family.event == 2 else Real((size,), support.low, support.high)
    if support.kind == "count":
        if family.event == 0:
            return Real((1,), *(_bounds(family, args) if family.bounded_by else (support.low, None)))
        return None if size is None else Real((size,), low=support.low)
    if support.size is not None:
        return Finite(support.size)
    if size is None:
        return None
    return Finite(size, event) if support.kind == "finite" else Constrained(support.kind, size)


def _bounds(family: Family, args: Mapping[str, Expr]) -> tuple[float | None, float | None]:
    if family.bounded_by is None:
        return family.support.low, family.support.high
    found = [args.get(name) for name in family.bounded_by]
    low, high = (float(b.value) if isinstance(b, Constant) and not isinstance(b.value, str) else None for b in found)
    return low, high
