"""Functions that give two values, each with a name: `let (values, vectors) = eigh(A)`, `let (…) = hsgp(x, m=, c=)`."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.arithmetic.broadcasting import Axis, axes, data_like, from_axes
from qvr_core.semantics.arithmetic.elements.matrices import not_square
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.model.expressions import Builtin, Expr, ValueType
from qvr_core.semantics.types.program_codes import FUNCTION_ARGUMENTS
from qvr_core.semantics.types.spaces import Unknown
from qvr_core.syntax.tree.arithmetic import Arith, ArithCall, ParenArith

PAIRS = {
    "hsgp": "`hsgp` gives two values, each with a name: `let (basis, frequencies) = hsgp(x, m=20, c=1.5)`",
    "eigh": "`eigh` gives two values, each with a name: `let (values, vectors) = eigh(A)`",
}
"""Functions that give two values, and what is said where one name has both."""


def pair_call(tree: Arith, ctx: StepContext) -> ArithCall | None:
    """The call of such a function that is all of a right side; one of this name of the file's own is another."""
    while isinstance(tree, ParenArith):
        tree = tree.inner
    if not isinstance(tree, ArithCall) or tree.func.text not in PAIRS:
        return None
    return tree if ctx.scope.lookup(tree.func.text) is None and ctx.find(tree.func.text) is None else None


def of_one_name(expr: ArithCall, args: Sequence[Expr], ctx: StepContext) -> Expr:
    """Such a call where one value is wanted, which is reported."""
    name, place = expr.func.text, ctx.scope.origin(expr.func.span)
    # a step with several names reads its right side for each
    if not any(one.message == PAIRS[name] and one.place == place for one in ctx.scope.diagnostics[-1:]):
        ctx.scope.report(FUNCTION_ARGUMENTS, PAIRS[name], place)
    return Builtin(type=ValueType(Unknown()), origin=ctx.scope.origin(expr.span), function=name, args=tuple(args))


def eigen(expr: ArithCall, value: Expr, ctx: StepContext) -> tuple[Expr, Expr] | None:
    """Both values of `eigh`; None where there is a mistake, which is reported at its token."""
    found, origin = axes(value.type), ctx.scope.origin(expr.span)
    if found is None:
        pair = tuple(
            Builtin(type=data_like([value.type]), origin=origin, function=name, args=(value,))
            for name in ("eigh", "eigenvectors")
        )
        return pair[0], pair[1]
    if (problem := not_square("eigh", value.type)) is not None:
        ctx.scope.report(FUNCTION_ARGUMENTS, problem, expr.args[0].span)
        return None
    *front, (rows, _), _ = found
    fresh: Axis = (rows, None)
    shapes = {"eigh": [*front, fresh], "eigenvectors": [*front, found[-2], fresh]}
    made = [
        Builtin(type=from_axes(shape, len(shape) - 1, like=[value.type]), origin=origin, function=name, args=(value,))
        for name, shape in shapes.items()
    ]
    return made[0], made[1]
