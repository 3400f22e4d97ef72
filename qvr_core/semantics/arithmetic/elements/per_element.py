"""Functions that look at a whole value, in a step with indices: there, each element of an index is a value of its own.

The axes that indices run along stand in front.  So axes are counted from the end, and values over several indices are
laid out to have the same ones in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.operations.operation import BuiltinFunction
from qvr_core.semantics.arithmetic.alignment import align, arrange
from qvr_core.semantics.arithmetic.broadcasting import SCALAR, Axis, axes, with_axes
from qvr_core.semantics.arithmetic.elements.matrices import own_rank
from qvr_core.semantics.arithmetic.elementwise import elementwise
from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import Arrange, Builtin, Constant, Expr, ListOf
from qvr_core.semantics.types.program_codes import FUNCTION_ARGUMENTS
from qvr_core.semantics.types.spaces import REAL_LINE
from qvr_core.syntax.tree.arithmetic import ArithCall

Keywords = tuple[tuple[str, Expr], ...]
Call = tuple[BuiltinFunction, tuple[Expr, ...], Keywords]


def runs_along(args: Sequence[Expr]) -> bool:
    """Whether an index runs along one of the values."""
    return any(_indices(value) for value in _listed(args))


def per_element(
    function: BuiltinFunction,
    args: Sequence[Expr],
    keywords: Keywords,
    texts: Sequence[str],
    expr: ArithCall,
    ctx: StepContext,
) -> Call | None:
    """The call so that it works on each element by itself; None (reported) where it cannot."""
    name = canonical(function.name)
    if _refused(function, name, args[0], texts[0], expr, ctx):
        return None
    if "together" in function.traits:
        together = _together(name, _listed(args), texts, expr, ctx)
        args = args if together is None else together
        if together is None:
            return None
    first, counted = args[0], "dim" in function.parameters or "counts axes" in function.traits
    found = [_from_the_end(value, first, name, texts[0], expr, ctx) if counted else value for value in args[1:]]
    named = [
        (key, _from_the_end(value, first, name, texts[0], expr, ctx) if key == "dim" else value)
        for key, value in keywords
    ]
    if name == "diag" and _own_rank(first) == 1:
        function = replace(function, name="diag_embed")
    return function, (first, *found), tuple(named)


def listed(items: Sequence[Expr], origin: Origin, ctx: StepContext) -> Expr:
    """A list of values along which indices run: one list for each element of these."""
    texts = [f"entry {at}" for at in range(1, len(items) + 1)]
    arranged, kind = elementwise(items, texts, origin, ctx)
    shape = axes(kind)
    if shape is None:
        return ListOf(type=kind, origin=origin, items=tuple(arranged))
    front: Axis = (len(items), None)
    whole = ListOf(type=with_axes([front, *shape], REAL_LINE, like=[kind]), origin=origin, items=tuple(arranged))
    count = len(shape) - own_rank(shape)
    return arrange(whole, [*range(1, count + 1), 0, *range(count + 1, len(shape) + 1)])


def _indices(value: Expr) -> list[str]:
    """The names of the indices that run along a value."""
    return [name.partition("#")[2] for _, name in axes(value.type) or [] if name is not None and indexed(name)]


def _own_rank(value: Expr) -> int | None:
    shape = axes(value.type)
    return None if shape is None else own_rank(shape)


def _listed(args: Sequence[Expr]) -> Sequence[Expr]:
    only = args[0] if len(args) == 1 else None
    whole = only.base if isinstance(only, Arrange) else only
    return whole.items if isinstance(whole, ListOf) else args


def _refused(function: BuiltinFunction, name: str, first: Expr, text: str, expr: ArithCall, ctx: StepContext) -> bool:
    runs, rank = _indices(first), _own_rank(first)
    if not runs or rank is None:
        return False
    each = f"for each `{'`, `'.join(runs)}`"
    if "all axes" in function.traits or (name == "squeeze" and len(expr.args) == 1):
        message = f"`{name}` takes all axes of a value, and {text} is one {each}: call it in a step without an index"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.func.span)
        return True
    least = function.rank or int(function.rule in ("reduce", "keep") and "dim" in function.keywords)
    if rank < least:
        wants = "a matrix" if least > 1 else "a vector"
        message = f"`{name}` wants {wants}, and {text} is {'a vector' if rank else 'one number'} {each}"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.func.span)
    return rank < least


def _from_the_end(value: Expr, first: Expr, name: str, text: str, expr: ArithCall, ctx: StepContext) -> Expr:
    rank = _own_rank(first)
    if rank is None or not isinstance(value, Constant) or not isinstance(value.value, int) or value.value < 0:
        return value
    count = rank + (name == "unsqueeze")
    if value.value < count:
        return replace(value, value=value.value - count)
    message = f"{text} has {rank} {'axis' if rank == 1 else 'axes'} here, so there is no axis {value.value}"
    ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.span)
    return value


def _together(
    name: str, values: Sequence[Expr], texts: Sequence[str], expr: ArithCall, ctx: StepContext
) -> list[Expr] | None:
    """Several values, each with the same indices in front; a number to be joined to a vector is one of length 1."""
    where = ctx.scope.origin(expr.func.span)
    if name == "concat":
        values = [_lengthened(value) if _indices(value) and not _own_rank(value) else value for value in values]
    words = [*texts, *[f"entry {at}" for at in range(len(texts) + 1, len(values) + 1)]]
    ranks = [0 if name in ("clamp", "dot") else _own_rank(value) or 0 for value in values]
    aligned = align(values, words[: len(values)], where, ctx, ranks=ranks)
    return None if aligned.failed else list(aligned.values)


def _lengthened(value: Expr) -> Expr:
    kind = with_axes([*(axes(value.type) or []), (1, None)], REAL_LINE, like=[value.type])
    last = Constant(type=SCALAR, origin=value.origin, value=-1)
    return Builtin(type=kind, origin=value.origin, function="unsqueeze", args=(value, last))
