"""Which element of a name of a recursion an expression reads."""

from __future__ import annotations

from qvr_core.semantics.arithmetic.broadcasting import axes as all_axes
from qvr_core.semantics.types.model.expressions import Bound, Expr, Window

State = tuple[str, int]
"""An earlier element: the name, and how many elements back."""


def element_read(expr: Window, axes: tuple[str | None, ...]) -> State | None:
    """The element of a name at its own place, or earlier; None where it is another one."""
    inner: Expr = expr
    back = 0
    while isinstance(inner, Window):
        back += inner.shift
        inner = inner.base
    if not isinstance(inner, Bound) or [name for _, name in all_axes(expr.type) or ()] != list(axes):
        return None
    return inner.name, back
