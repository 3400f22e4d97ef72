"""A value over the whole of a set whose index runs, `b` where `b[i]` is meant: told at the name, with the fix."""

from __future__ import annotations

from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.scope.environment import Running, StepContext
from qvr_core.semantics.types.axes import indexed, set_of
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin
from qvr_core.semantics.types.model.expressions import Bound, Data, Expr, Index, Window
from qvr_core.semantics.types.program_codes import AXES_MISMATCH
from qvr_core.semantics.types.walk import operands


def report_bare(value: Expr, text: str, index: Running, where: Origin, ctx: StepContext) -> None:
    """A value over the set of an index that runs, without that index.

    It is `where` and called `text`, unless a name in it can be blamed.
    """
    report_whole(value, text, set_of(index.axis), index.name, where, ctx)


def report_whole(value: Expr, text: str, over: str, index: str, where: Origin, ctx: StepContext) -> None:
    """A value over all of a set, where `index` is the element that is wanted."""
    blamed = _blamed(value, over)
    put = None
    if isinstance(blamed, Bound | Data):
        text, put = f"`{blamed.name}`", f"{blamed.name}[{index}]"
    elif isinstance(blamed, Window | Index):
        written = ctx.text[blamed.origin.span.start : blamed.origin.span.end]
        if written.endswith("]"):
            text, put = f"`{written}`", f"{written[:-1]}, {index}]"
    message = f"{text} runs over all of {over} here, beside `{index}`"
    if put is None:
        ctx.scope.report(AXES_MISMATCH, message, where)
        return
    fix = Fix(f"Change to `{put}`", (Edit(blamed.origin, put),), True)
    ctx.scope.report(AXES_MISMATCH, f"{message}; did you mean `{put}`?", blamed.origin, fixes=(fix,))


def _blamed(value: Expr, over: str) -> Expr:
    """The innermost part that brings the set in: a name, or a name with too few indices."""
    while True:
        part = next((part for part in operands(value) if over in plain_sets(part)), None)
        if part is None or (isinstance(value, Window | Index) and part is value.base):
            return value
        value = part


def plain_sets(value: Expr) -> list[str]:
    """The sets that a value runs over without an index."""
    return [name for _, name in axes(value.type) or [] if name is not None and not indexed(name)]
