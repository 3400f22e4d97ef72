"""`data` steps: the names that a program reads from outside, each with its axes and what one element is."""

from __future__ import annotations

from qvr_core.semantics.arithmetic.broadcasting import with_axes
from qvr_core.semantics.arithmetic.ranges import within
from qvr_core.semantics.arrows.objects import check_object_expr, written
from qvr_core.semantics.programs.chains.ragged_data import data_lengths
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.types.diagnostics import Code, Edit, Fix
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.program_codes import DATA_DECLARATION, PARAM_STEP
from qvr_core.semantics.types.spaces import (
    REAL_LINE,
    Constrained,
    Finite,
    Named,
    Product,
    Real,
    Seq,
    Space,
    Unknown,
)
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import ObjectExpr, ObjectRef, ParenObject, ProductExpr, SeqExpr, SpaceExpr
from qvr_core.syntax.tree.steps import DataStep, ParamStep

NUMBERS: dict[str, tuple[Space, str]] = {"Nat": (Real((1,), low=0.0), "count"), "Bool": (Finite(2), "bool")}
"""Kinds of numbers that only data have: their space, and how `DataName.numbers` calls them."""


@immutable
class Element:
    """What one element of a data name is."""

    space: Space
    written: str
    numbers: str = ""


@immutable
class Words:
    """What a line declares, in words, and the code of what is wrong with it."""

    many: str
    one: str
    code: Code


_DATA = Words("data run", "a data name", DATA_DECLARATION)
_PARAMETERS = Words("parameters run", "a parameter", PARAM_STEP)
_UNKNOWN = Element(Unknown(), "?")
_NUMBER = Element(REAL_LINE, "Real 1")


def check_data(step: DataStep, ctx: StepContext) -> list[tuple[str, Binding]]:
    """What a `data` step binds; reports what data cannot be."""
    over, element = declared_type(step, ctx)
    lengths = data_lengths(step, over, ctx)
    plates = [(space.size, space.nominal) for space in over or ()]
    kind = ValueType(Unknown()) if over is None else with_axes(plates, element.space, like=())
    named = Named(element.space, element.written)
    alone = len(step.names) == len(over or ()) == 1 and isinstance(_bare(step.axes), ObjectRef)
    place = ctx.scope.origin(step.axes.span) if alone else None
    return [
        (
            name.text,
            Binding(
                "data",
                kind,
                named,
                ctx.scope.origin(name.span),
                range=within(element.space),
                numbers=element.numbers,
                over=tuple(over or ()),
                over_place=place,
                lengths=lengths,
            ),
        )
        for name in step.names
    ]


def declared_type(step: DataStep | ParamStep, ctx: StepContext) -> tuple[list[Finite] | None, Element]:
    """The sets that what is declared runs over, None (reported) where they cannot be, and what one element is."""
    words = _DATA if isinstance(step, DataStep) else _PARAMETERS
    if step.value is not None:
        return _axes(step.axes, words, ctx), _element(step.value, words, ctx)
    if is_value(step.axes, ctx):
        return [], _element(step.axes, words, ctx)
    return _axes(step.axes, words, ctx), _NUMBER


def is_value(expr: ObjectExpr, ctx: StepContext) -> bool:
    """True where what stands behind the colon is no set: a single value is declared."""
    inner = _bare(expr)
    return isinstance(inner, SpaceExpr | SeqExpr) or _numbers(inner, ctx) is not None or _is_space(inner, ctx)


def _is_space(expr: ObjectExpr, ctx: StepContext) -> bool:
    if not isinstance(expr, ObjectRef):
        return False
    entry = ctx.scope.lookup(expr.name.text)
    space = getattr(getattr(entry, "space", None), "space", None)
    return isinstance(space, Real | Constrained | Seq)


def _bare(expr: ObjectExpr) -> ObjectExpr:
    while isinstance(expr, ParenObject):
        expr = expr.inner
    return expr


def _numbers(expr: ObjectExpr, ctx: StepContext) -> tuple[Space, str] | None:
    """The kind of numbers that a word names, unless the file declares an object of that name."""
    if not isinstance(expr, ObjectRef) or ctx.scope.lookup(expr.name.text) is not None:
        return None
    return NUMBERS.get(expr.name.text)


def _factors(expr: ObjectExpr) -> tuple[ObjectExpr, ...]:
    inner = _bare(expr)
    if not isinstance(inner, ProductExpr):
        return (inner,)
    return tuple(factor for each in inner.factors for factor in _factors(each))


def _axes(expr: ObjectExpr, words: Words, ctx: StepContext) -> list[Finite] | None:
    """The sets that data run over; None (reported) where one of them is none."""
    found: list[Finite] = []
    factors = _factors(expr)
    good = True
    for at, factor in enumerate(factors):
        if is_value(factor, ctx):
            _no_axis(factor, factors, at, words, ctx)
            good = False
            continue
        space = check_object_expr(factor, ctx.scope).space
        for each in space.factors if isinstance(space, Product) else (space,):
            good = good and _add_axis(each, factor, found, words, ctx)
    return found if good else None


def _add_axis(space: Space, factor: ObjectExpr, found: list[Finite], words: Words, ctx: StepContext) -> bool:
    if isinstance(space, Finite):
        found.append(space)
        if space.nominal is not None:
            ctx.plates.add(space.nominal)
        return True
    if not isinstance(space, Unknown):
        message = f"{words.many} over finite sets, and `{written(factor)}` is not one"
        ctx.scope.report(words.code, message, factor.span)
    return False


def _no_axis(factor: ObjectExpr, factors: tuple[ObjectExpr, ...], at: int, words: Words, ctx: StepContext) -> None:
    """A space of values among the sets: it belongs behind the arrow."""
    text = written(factor)
    message = f"{words.many} over finite sets, and `{text}` says what one element is"
    fixes: tuple[Fix, ...] = ()
    if at == len(factors) - 1 > 0:
        before = factors[at - 1]
        edit = Edit(ctx.scope.origin(Span(before.span.end, factor.span.start)), " -> ")
        message += f": write `{' * '.join(written(one) for one in factors[:at])} -> {text}`"
        fixes = (Fix(f"Write `-> {text}`", (edit,), True),)
    ctx.scope.report(words.code, message, factor.span, fixes=fixes)


def _element(expr: ObjectExpr, words: Words, ctx: StepContext) -> Element:
    """What stands behind the arrow."""
    inner = _bare(expr)
    kind = _numbers(inner, ctx)
    if kind is not None:
        return Element(kind[0], written(inner), kind[1])
    parts = _factors(inner)
    if len(parts) > 1 and all(_numbers(_bare(part), ctx) is not None for part in parts):
        message = f"{words.one} holds one kind of value, and `{written(inner)}` is {len(parts)} of them: a set of them "
        message += f"stands in front of the arrow, `… * {{a, b}} -> {written(parts[0])}`"
        ctx.scope.report(words.code, message, expr.span)
        return _UNKNOWN
    named = check_object_expr(expr, ctx.scope)
    match named.space:
        case Product():
            message = f"{words.one} holds one kind of value, and `{named.written}` is a product"
            if all(isinstance(factor, Finite) for factor in named.space.factors):
                message += ": axes stand in front of the arrow"
            ctx.scope.report(words.code, message, expr.span)
            return _UNKNOWN
        case space:
            return Element(space, named.written)
