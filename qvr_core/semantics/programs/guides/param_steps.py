"""`param` steps: numbers that a guide learns where no network gives them."""

from __future__ import annotations

from qvr_core.semantics.arithmetic.broadcasting import with_axes
from qvr_core.semantics.arithmetic.ranges import within
from qvr_core.semantics.arrows.options import removal
from qvr_core.semantics.programs.data_steps import declared_type
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.steps import ParamModel
from qvr_core.semantics.types.program_codes import PARAM_STEP, STEP_OPTION
from qvr_core.semantics.types.spaces import Constrained, Named, Real, Space, Unknown, width
from qvr_core.syntax.tree.options import ListValue, Number, Option, Options
from qvr_core.syntax.tree.steps import ParamStep

BOUNDS = ("low", "high")


def check_param(step: ParamStep, ctx: StepContext) -> tuple[ParamModel, list[tuple[str, Binding]]]:
    """The parameters of a line, typed, and what it binds; reports what cannot be learned."""
    init: Option | None = None
    for option in step.options.items if step.options is not None else ():
        if option.key.text == "init" and init is None:
            init = option
            continue
        assert step.options is not None
        if option.key.text in BOUNDS:
            if not any(one.key.text in BOUNDS for one in step.options.items[: step.options.items.index(option)]):
                _bounds_apart(step.options, option, ctx)
            continue
        given = f"`{option.key.text}` is given twice"
        message = given if option.key.text == "init" else f"`param` has no option `{option.key.text}`; it has `init`"
        ctx.scope.report(STEP_OPTION, message, option.key.span, fixes=(removal(step.options, option, ctx.scope),))
    over, element = declared_type(step, ctx)
    space = element.space
    if not isinstance(space, Real | Constrained | Unknown) or element.numbers:
        where = step.value or step.axes
        message = f"a parameter is a number or a vector that moves without jumps, and `{element.written}` holds none"
        ctx.scope.report(PARAM_STEP, message, where.span)
        space = Unknown()
    plates = [(each.size, each.nominal) for each in over or ()]
    kind = ValueType(Unknown()) if over is None else with_axes(plates, space, like=())
    start = None if init is None else _init(init, space, ctx)
    named = Named(space, element.written)
    names = tuple(name.text for name in step.names)
    origin = ctx.scope.origin(step.names[0].span)
    model = ParamModel(names=names, type=kind, named=named, init=start, origin=origin)
    return model, [
        (name.text, Binding("param", kind, named, ctx.scope.origin(name.span), range=within(space)))
        for name in step.names
    ]


def _bounds_apart(options: Options, first: Option, ctx: StepContext) -> None:
    """Bounds belong to the space, whose bracket holds nothing else."""

    def written(inside: bool) -> str:
        chosen = [one.span for one in options.items if (one.key.text in BOUNDS) == inside]
        return ", ".join(ctx.text[span.start : span.end] for span in chosen)

    text = f"[{written(True)}] [{written(False)}]" if written(False) else f"[{written(True)}]"
    message = f"`{first.key.text}` bounds the space, which has a bracket of its own: `{text}`"
    fix = Fix(f"Change to `{text}`", (Edit(ctx.scope.origin(options.span), text),), True)
    ctx.scope.report(STEP_OPTION, message, first.key.span, fixes=(fix,))


def _init(option: Option, space: Space, ctx: StepContext) -> tuple[float, ...] | None:
    """Where the numbers start; None (reported) where that cannot be."""
    value = option.value
    items = value.items if isinstance(value, ListValue) else () if value is None else (value,)
    numbers = tuple(float(item.value) for item in items if isinstance(item, Number))
    place = option.span if value is None else value.span
    if not items or len(numbers) != len(items):
        ctx.scope.report(STEP_OPTION, "`init` is a number, or a list of numbers: `init=0.0`", place)
        return None
    if isinstance(space, Constrained):
        message = f"`init` is for numbers: what lies in {space.kind} starts in the middle of it"
        ctx.scope.report(STEP_OPTION, message, place)
    if not isinstance(space, Real):
        return None
    wide = width(space)
    if isinstance(value, ListValue) and isinstance(wide, int) and len(numbers) != int(wide):
        has = "one number" if int(wide) == 1 else f"{int(wide)} numbers"
        message = f"`init` lists {len(numbers)}, and one element has {has}"
        ctx.scope.report(STEP_OPTION, message, place)
        return None
    outside = [number for number in numbers if not _inside(number, space)]
    if outside:
        low = "" if space.low is None else f" above {space.low:g}"
        high = "" if space.high is None else f" below {space.high:g}"
        message = f"the numbers lie{low}{' and' if low and high else ''}{high}, and `init` is {outside[0]:g}"
        ctx.scope.report(STEP_OPTION, message, place)
        return None
    return numbers


def _inside(number: float, space: Real) -> bool:
    return (space.low is None or number > space.low) and (space.high is None or number < space.high)
