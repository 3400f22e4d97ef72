"""Functions of whole values that Stan's elements are summed or picked from, as the nodes that say so."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.types.model.expressions import Arrange, Builtin, Contract, Expr, ListOf

PRODUCTS = ("matmul", "mv", "mm", "bmm", "dot")


def spelled(expr: Builtin, ranks: Sequence[int]) -> Expr | None:
    """A product of matrices as a sum over an axis, a transposed matrix as other axes, joined numbers as a list; None of
    any other function.  `ranks` are how many axes each argument has."""
    function = canonical(expr.function)
    if expr.keywords:
        return None
    if function in PRODUCTS:
        return _product(expr, *ranks)
    if function == "transpose" and len(expr.args) == 1 and ranks[0] >= 2:
        last = ranks[0] - 1
        axes = (*range(last - 1), last, last - 1)
        return Arrange(type=expr.type, origin=expr.origin, base=expr.args[0], axes=axes)
    if function == "concat" and not any(ranks):
        return ListOf(type=expr.type, origin=expr.origin, items=expr.args)
    return None


def _product(expr: Builtin, left: int, right: int) -> Expr | None:
    """Σ a[…, i, k] b[…, k, j]; a vector lacks i, or j."""
    if not left or not right:
        return Builtin(type=expr.type, origin=expr.origin, function="mul", args=expr.args)
    a, b = ("k",), ("k",)
    if canonical(expr.function) == "dot":
        lead = tuple(f"i{at}" for at in range(max(left, right) - 1))
        a, b = ((*lead[len(lead) - count + 1 :], "k") for count in (left, right))
        return Contract(type=expr.type, origin=expr.origin, factors=expr.args, axes=(a, b), result=lead)
    outer = tuple(f"g{at}" for at in range(max(left, right) - 2))
    if left > 1:
        a = (*outer[len(outer) - left + 2 :], "i", "k")
    if right > 1:
        b = (*outer[len(outer) - right + 2 :], "k", "j")
    result = (*outer, *(("i",) if left > 1 else ()), *(("j",) if right > 1 else ()))
    return Contract(type=expr.type, origin=expr.origin, factors=expr.args, axes=(a, b), result=result)
