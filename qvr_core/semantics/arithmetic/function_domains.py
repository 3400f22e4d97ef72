"""Functions that not every number has: `log` and `sqrt` of what is negative."""

from __future__ import annotations

from qvr_core.operations.intervals import Interval
from qvr_core.semantics.arithmetic.ranges import range_of
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.diagnostics import Related
from qvr_core.semantics.types.model.expressions import Bound, Expr, Index
from qvr_core.semantics.types.program_codes import ARGUMENT_SUPPORT, FUNCTION_ARGUMENTS
from qvr_core.syntax.tree.names import Span


def check_argument(function: str, least: float, argument: Expr, place: Span, ctx: StepContext) -> None:
    """Tell of an argument that is always below `least`, from which on `function` is defined, or a draw that may be."""
    lies = range_of(argument, ctx)
    must = f"`{function}` is defined for numbers from {least:g}" if least else f"`{function}` has no value below 0"
    text = " ".join(ctx.text[place.start : place.end].split())
    if lies.low < lies.high <= least or lies.high < least:
        words = "always negative" if not least else f"always below {least:g}"
        ctx.scope.report(FUNCTION_ARGUMENTS, f"`{text}` is {words}, and {must}", place)
    elif (site := _site(argument)) is not None and _falls_below(lies, least):
        binding = ctx.find(site)
        if binding is not None and binding.family is not None:
            drawn = Related(f"`{site}` is drawn from `{binding.family}` here", binding.origin)
            words = "may be negative" if not least else f"may be below {least:g}"
            message = f"`{text}` {words}, and {must}: draw `{site}` from a family of positive numbers"
            ctx.scope.report(ARGUMENT_SUPPORT, message, place, (drawn,))


def _site(argument: Expr) -> str | None:
    """The name that a value, or an element of it, is written with."""
    argument = argument.base if isinstance(argument, Index) else argument
    return argument.name if isinstance(argument, Bound) else None


def _falls_below(lies: Interval, least: float) -> bool:
    return lies.exact and lies.low < least
