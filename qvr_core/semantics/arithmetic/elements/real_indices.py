"""Real numbers where the place of an element is wanted."""

from __future__ import annotations

from qvr_core.semantics.arithmetic.elementwise import words
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Expr, Index, Window
from qvr_core.semantics.types.program_codes import INDEX_NOT_INTEGER
from qvr_core.syntax.tree.arithmetic import Arith

_REAL = frozenset({"add", "sub", "mul", "neg", "div", "pow", "exp", "log", "sqrt", "sigmoid", "tanh"})
"""Functions that a real number stays real under."""


def is_real(value: Expr, ctx: StepContext) -> bool:
    """Whether a value is a real-valued draw, or computed of one such that it is no whole number."""
    if isinstance(value, Builtin) and value.function in _REAL:
        return any(is_real(arg, ctx) for arg in value.args)
    if isinstance(value, Index | Window):
        return is_real(value.base, ctx)
    binding = ctx.find(value.name) if isinstance(value, Bound) else None
    return binding is not None and binding.real_site


def check_index(index: Expr, tree: Arith, ctx: StepContext) -> None:
    """A real-valued draw, or what is computed of one, is no index."""
    if is_real(index, ctx):
        message = f"{words(tree, 'the index')} is a real number, not an index; it is cut off to a whole number"
        ctx.scope.report(INDEX_NOT_INTEGER, message, tree.span)
