"""Calls of builtin functions: arity, keywords and the shape of the result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from qvr_core.operations.intervals import ANYTHING, Interval
from qvr_core.operations.operation import BuiltinFunction
from qvr_core.operations.table import OPERATIONS, having
from qvr_core.semantics.arithmetic.broadcasting import (
    SCALAR,
    Axis,
    Clash,
    axes,
    broadcast,
    data_like,
    drop_last,
    from_axes,
    is_data,
    met_apart,
    tail,
    with_axes,
    with_last,
)
from qvr_core.semantics.arithmetic.charts.parsing import chart_type
from qvr_core.semantics.arithmetic.elements.bases import basis_of_process, check_basis
from qvr_core.semantics.arithmetic.elements.matrices import matrix_type, not_square, outer_type, own_rank
from qvr_core.semantics.arithmetic.elements.per_element import per_element, runs_along
from qvr_core.semantics.arithmetic.elements.two_valued_functions import PAIRS, eigen, of_one_name
from qvr_core.semantics.arithmetic.elementwise import Check, broadcast_shape, elementwise, words
from qvr_core.semantics.arithmetic.function_domains import check_argument
from qvr_core.semantics.arithmetic.reductions import (
    check_over,
    for_each_element,
    multiplied,
    over_of,
    sized_by_sets,
    solved,
    unbound_set,
)
from qvr_core.semantics.language.builtins import BUILTINS, arity_words, canonical
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.bounds import MOST_FACTORS, bounded_product
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.expressions import Builtin, Constant, Expr, ListOf, ValueType
from qvr_core.semantics.types.program_codes import ARITHMETIC_MISMATCH, AXES_MISMATCH, FUNCTION_ARGUMENTS
from qvr_core.semantics.types.spaces import (
    Constrained,
    Dim,
    Known,
    Linear,
    Named,
    Real,
    Seq,
    Unknown,
    add,
    linear,
    multiply,
)
from qvr_core.syntax.tree.arithmetic import ArithArg, ArithCall
from qvr_core.syntax.tree.names import Span


def _values(name: str) -> tuple[float, float]:
    """Between which numbers the values of a function lie, whatever it is given."""
    interval = OPERATIONS[name].interval
    assert interval is not None
    found = interval if isinstance(interval, Interval) else interval(ANYTHING)
    return found.low, found.high


_BOUNDED = {name: _values(name) for name in having("bounds")}


def check_builtin(
    function: BuiltinFunction, expr: ArithCall, ctx: StepContext, check: Check, first: Expr | None = None
) -> Expr:
    """The typed call; `first` is the receiver where it is written as a method."""
    given = [arg for arg in expr.args if arg.key is None or not _is_keyword(function, arg)]
    if function.name == "size" and len(given) == len(expr.args) == 1 and unbound_set(given[0].value, ctx) is not None:
        return check(given[0].value, ctx)
    guarded = ctx.guarded
    ctx.guarded = guarded or function.name == "where"
    positional = [check(arg.value, ctx) for arg in given]
    ctx.guarded = guarded
    args = tuple(positional) if first is None else (first, *positional)
    over = over_of(function, expr.args)
    keywords = tuple(
        (arg.key.text, check(arg.value, ctx))
        for arg in expr.args
        if arg.key is not None and arg is not over and _is_keyword(function, arg)
    )
    _check_keywords(function, expr, ctx)
    origin = ctx.scope.origin(expr.span)
    texts = [words(arg.value, f"argument {index}") for index, arg in enumerate(given, 1)]
    texts = texts if first is None else ["the value", *texts]
    if not _check_arity(function, expr, given, len(args), len(keywords), ctx):
        return Builtin(type=data_like([a.type for a in args]), origin=origin, function=function.name, args=args)
    if not _check_axis(function, args, dict(keywords), texts, expr, ctx):
        return Builtin(type=ValueType(Unknown()), origin=origin, function=function.name, args=args)
    if function.name in PAIRS:
        return of_one_name(expr, args, ctx)
    if function.name == "bspline":
        return check_basis(function, expr, args, dict(keywords), ctx)
    if over is not None:
        return check_over(function, args, over, expr, partial(_same_shape, canonical(function.name)), ctx)
    if function.rule == "matmul":
        where = ctx.scope.origin(expr.func.span)
        each = for_each_element(function.name, args, texts, where, origin, ctx)
        if each is not None:
            return each
    if function.rule not in ("pointwise", "matmul") and runs_along(args):
        called = per_element(function, args, keywords, texts, expr, ctx)
        if called is None:
            return Builtin(type=ValueType(Unknown()), origin=origin, function=function.name, args=args)
        function, args, keywords = called
    if function.rule == "pointwise":
        arranged, kind = elementwise(args, texts, ctx.scope.origin(expr.func.span), ctx)
        args, kind = tuple(arranged), _bounded(canonical(function.name), kind)
    else:
        kind = _shape(function, args, texts, keywords, expr, ctx)
    if function.name == "solve_triangular" and not any(is_data(arg.type) for arg in args):
        vector = own_rank(axes(args[1].type) or []) == 1
        keywords = (("vector", Constant(type=SCALAR, origin=origin, value=int(vector))),)
    if function.defined_from is not None and not guarded:
        place = given[0].value.span if given else expr.span
        check_argument(function.name, function.defined_from, args[0], place, ctx)
    return Builtin(type=kind, origin=origin, function=function.name, args=args, keywords=keywords)


def check_pair(expr: ArithCall, ctx: StepContext, check: Check) -> tuple[Expr, Expr] | None:
    """Both values of a function that gives two; None where there is a mistake."""
    function = BUILTINS[expr.func.text]
    given = [arg for arg in expr.args if arg.key is None or not _is_keyword(function, arg)]
    args = tuple(check(arg.value, ctx) for arg in given)
    keywords = {
        arg.key.text: check(arg.value, ctx) for arg in expr.args if arg.key is not None and _is_keyword(function, arg)
    }
    _check_keywords(function, expr, ctx)
    if not _check_arity(function, expr, given, len(args), len(keywords), ctx):
        return None
    if not args:
        ctx.scope.report(FUNCTION_ARGUMENTS, f"`{function.name}` needs `{function.parameters[0]}`", expr.func.span)
        return None
    if function.name == "eigh":
        return eigen(expr, args[0], ctx)
    return basis_of_process(function, expr, args, keywords, ctx)


def _is_keyword(function: BuiltinFunction, arg: ArithArg) -> bool:
    return arg.key is not None and (arg.key.text in function.keywords or arg.key.text not in function.parameters)


def _check_keywords(function: BuiltinFunction, expr: ArithCall, ctx: StepContext) -> None:
    for arg in expr.args:
        if arg.key is None or arg.key.text in function.keywords or arg.key.text in function.parameters:
            continue
        near = closest(arg.key.text, (*function.keywords, *function.parameters))
        message = f"`{function.name}` has no argument `{arg.key.text}`" + (f"; did you mean `{near}`?" if near else "")
        place = ctx.scope.origin(arg.key.span)
        fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(place, near),), True),)
        ctx.scope.report(FUNCTION_ARGUMENTS, message, place, fixes=fixes)


def _check_arity(
    function: BuiltinFunction, expr: ArithCall, given: list[ArithArg], count: int, keywords: int, ctx: StepContext
) -> bool:
    if count >= function.least and (function.most is None or count <= function.most):
        return True
    if count < function.least <= count + keywords:
        return True
    message = f"`{function.name}` takes {arity_words(function)}, but {count} {'is' if count == 1 else 'are'} given"
    surplus = 0 if function.most is None else count - function.most
    if 0 < surplus < len(given) and given == list(expr.args):
        place, fix = _surplus(expr.args, surplus, ctx)
        ctx.scope.report(FUNCTION_ARGUMENTS, message, place, fixes=(fix,))
    else:
        ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.span)
    return False


_OF_TWO = {"max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum"}


def _check_axis(
    function: BuiltinFunction,
    args: Sequence[Expr],
    keywords: Mapping[str, Expr],
    texts: Sequence[str],
    expr: ArithCall,
    ctx: StepContext,
) -> bool:
    """Whether `dim` is a whole number as written, one of the axes that there are: `max(a, b)` would be `a` along an
    axis `b`."""
    behind = args[1] if function.parameters[1:] == ("dim",) and len(args) > 1 else None
    given = keywords.get("dim", behind)
    if given is None or isinstance(given.type.space, Unknown):
        return True
    place = next((arg.value.span for arg in expr.args if arg.key is not None and arg.key.text == "dim"), None)
    place = place or expr.args[-1].value.span
    single = not is_data(args[0].type) and axes(args[0].type) == []
    name = _OF_TWO.get(function.name) if given is behind else None
    at = given.value if isinstance(given, Constant) and isinstance(given.value, int) else None
    if at is None or (single and name is not None and at not in (0, -1)):
        fixes: tuple[Fix, ...] = ()
        message = (
            f"`{function.name}` takes one value, and behind it the number of an axis, as in `{function.name}(x, -1)`"
        )
        if name is not None:
            message += f"; of two numbers it is `{name}`"
            fixes = (Fix(f"Change to `{name}`", (Edit(ctx.scope.origin(expr.func.span), name),), True),)
        ctx.scope.report(FUNCTION_ARGUMENTS, message, ctx.scope.origin(place), fixes=fixes)
        return False
    own = None if is_data(args[0].type) or function.rule not in ("reduce", "keep") else axes(args[0].type)
    rank = None if own is None else max(len(own), 1)
    if rank is None or -rank <= at < rank:
        return True
    has = f"has {len(own or ())} {'axis' if rank == 1 else 'axes'}, and" if own else "is one number and has"
    message = f"{texts[0]} {has} no axis {at}"
    ctx.scope.report(FUNCTION_ARGUMENTS, message, place)
    return False


def _surplus(args: Sequence[ArithArg], count: int, ctx: StepContext) -> tuple[Span, Fix]:
    """Where the last `count` arguments stand, and what removes them."""
    kept, first, last = args[-count - 1], args[-count], args[-1]
    gap = ctx.scope.origin(Span(kept.span.end, last.span.end))
    title = "Remove it" if count == 1 else "Remove them"
    return Span(first.span.start, last.span.end), Fix(title, (Edit(gap, ""),))


def _shape(
    function: BuiltinFunction,
    args: tuple[Expr, ...],
    texts: list[str],
    keywords: tuple[tuple[str, Expr], ...],
    expr: ArithCall,
    ctx: StepContext,
) -> ValueType:
    types = [arg.type for arg in args]
    where = ctx.scope.origin(expr.func.span)
    ctx.plates.update(name for kind in types for name in kind.indexed if name is not None)
    match function.rule:
        case "keep" if function.name == "clamp" and any(not is_data(kind) and axes(kind) for kind in types[1:]):
            return broadcast_shape(list(zip(args, texts, strict=False)), where, ctx)
        case "keep":
            return _same_shape(canonical(function.name), types[0])
        case "reduce":
            if function.name == "dot":
                return drop_last(broadcast_shape(list(zip(args, texts, strict=False)), where, ctx))
            if keywords or (len(args) > 1 and not _is_last(args[1])):
                return data_like(types)
            return drop_last(types[0])
        case "concat":
            return _concatenated(_listed(args), bool(keywords), expr, ctx)
        case "chunk":
            return _chunks(args, keywords, expr, ctx)
        case "matmul":
            return multiplied(function.name, args, texts, where, ctx)
        case "parse":
            return chart_type(args, expr, ctx)
        case "compose":
            return data_like(types)
        case _ if function.name == "cumulative_trapezoid":
            numbers = [text for kind, text in zip(types, texts, strict=False) if axes(kind) == []]
            if numbers:
                message = f"`{function.name}` is along an axis, and {numbers[0]} is one number"
                ctx.scope.report(FUNCTION_ARGUMENTS, message, where)
                return ValueType(Unknown())
            return broadcast_shape(list(zip(args, texts, strict=False)), where, ctx)
        case _ if function.name == "solve_triangular":
            return solved(function.name, args, texts, where, ctx)
        case _ if function.name == "outer" and (product := outer_type(types[0], types[1])) is not None:
            return product
        case _ if (problem := not_square(function.name, types[0])) is not None:
            ctx.scope.report(FUNCTION_ARGUMENTS, problem, expr.args[0].span)
            return ValueType(Unknown())
        case _ if (matrix := matrix_type(function.name, types[0])) is not None:
            return matrix
        case _:
            return sized_by_sets(function, args, [arg.value for arg in expr.args if arg.key is None], ctx)


def _is_last(arg: Expr) -> bool:
    return isinstance(arg, Constant) and arg.value == -1


def _bounded(name: str, kind: ValueType) -> ValueType:
    space = kind.space.item if isinstance(kind.space, Seq) else kind.space
    if name not in _BOUNDED or not isinstance(space, Real):
        return kind
    low, high = (None if math.isinf(end) else end for end in _BOUNDED[name])
    bounded = Real(space.shape, low, high)
    return replace(kind, space=Seq(bounded) if isinstance(kind.space, Seq) else bounded)


def _same_shape(name: str, kind: ValueType) -> ValueType:
    shape = axes(kind)
    if shape is None:
        return with_last(data_like([kind]), tail(kind, shape))
    size, event = shape[-1] if shape else (None, None)
    if name == "softmax" and size is not None:
        return with_axes(shape[:-1], Constrained("Simplex", size), like=[kind], event=event)
    joined = broadcast([kind])
    return data_like([kind]) if isinstance(joined, Clash) else _bounded(name, joined)


def _listed(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return args[0].items if len(args) == 1 and isinstance(args[0], ListOf) else args


def _concatenated(args: tuple[Expr, ...], along: bool, expr: ArithCall, ctx: StepContext) -> ValueType:
    types = [arg.type for arg in args]
    shapes = [axes(kind) for kind in types]
    if along or any(shape is None for shape in shapes) or any(shape and shape[-1][0] is None for shape in shapes):
        return data_like(types)
    known = [shape for shape in shapes if shape is not None]
    sizes: list[Dim] = [shape[-1][0] if shape and shape[-1][0] is not None else 1 for shape in known]
    fronts = [from_axes(shape[:-1], len(shape[:-1]), like=[kind]) for shape, kind in zip(known, types, strict=True)]
    if (sets := met_apart([shape[:-1] for shape in known])) is not None:
        message = f"values over {sets[0]} and values over {sets[1]} cannot be joined"
        ctx.scope.report(AXES_MISMATCH, message, expr.func.span)
        return data_like(types)
    front = broadcast(fronts)
    if isinstance(front, Clash):
        message = f"values over {front.left} and {front.right} elements cannot be joined"
        ctx.scope.report(ARITHMETIC_MISMATCH, message, expr.func.span)
        return data_like(types)
    plates: list[Axis] = axes(front) or []
    return with_axes(plates, Real((add(sizes),)), like=types)


def _chunks(
    args: tuple[Expr, ...], keywords: tuple[tuple[str, Expr], ...], expr: ArithCall, ctx: StepContext
) -> ValueType:
    """The pieces of `chunk(x, n)` as a product of n equal spaces."""
    kind = args[0].type
    given = args[1] if len(args) > 1 else dict(keywords).get("chunks")
    count = given.value if isinstance(given, Constant) else None
    if not isinstance(count, int) or count < 1:
        place = expr.args[-1].span if expr.args else expr.span
        ctx.scope.report(FUNCTION_ARGUMENTS, "`chunk` takes a number of pieces: chunk(x, 4)", place)
        return data_like([kind])
    shape = axes(kind)
    if not shape or shape[-1][0] is None:
        if shape is not None and not shape:
            ctx.scope.report(FUNCTION_ARGUMENTS, "a single number cannot be cut into pieces", expr.span)
        return data_like([kind])
    piece = _piece(shape[-1][0], count, expr, ctx)
    if piece is None:
        return data_like([kind])
    space = bounded_product([(None, Real((piece,)))] * min(count, MOST_FACTORS + 1), expr.span, ctx.scope)
    return with_axes(shape[:-1], Seq(space) if isinstance(kind.space, Seq) else space, like=[kind])


def _piece(size: Dim, count: int, expr: ArithCall, ctx: StepContext) -> Dim | None:
    """The width of one piece, tied to the whole by an equation where a declared size or a hole stands behind it."""
    if isinstance(size, int) and size % count:
        message = f"{words(expr.args[0].value, 'the value')} has width {int(size)}, which {count} does not divide"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.args[-1].span)
        return None
    form = linear(size)
    if isinstance(size, int) and not form.terms:
        return int(size) // count
    if form.constant % count == 0 and all(coefficient % count == 0 for _, coefficient in form.terms):
        part = Linear(form.constant // count, tuple((name, n // count) for name, n in form.terms))
        return Known(int(size) // count, part) if isinstance(size, int) else part
    piece = ctx.scope.fresh(expr.span, "piece")
    ctx.scope.require_fit(
        Named(Real((size,)), words(expr.args[0].value, "the value")),
        Named(Real((multiply(piece, count),)), f"{count} equal pieces"),
        expr.func.span,
        FUNCTION_ARGUMENTS,
        "`chunk` is given",
        "it makes",
    )
    return piece
