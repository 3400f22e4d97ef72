"""`h[g : Subject, t : Time] [lengths=n]`: only the first n[g] elements of each chain exist.

(docs/reference.md#ragged-data-chains-of-unequal-length)
"""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.programs.chains.ragged_data import counts_over, each_of, implied_lengths
from qvr_core.semantics.programs.step_options import StepOptions
from qvr_core.semantics.scope.environment import Running, StepContext
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import Constant, Data, Expr
from qvr_core.semantics.types.program_codes import AXES_MISMATCH, STEP_OPTION
from qvr_core.syntax.tree.names import Name


def no_lengths(name: str, options: StepOptions, ctx: StepContext) -> None:
    """Report lengths of a step that has no index to count along."""
    if options.lengths is not None:
        message = f"`lengths` counts the elements along the last index of a step: write `{name}[g : G, t : T]`"
        ctx.scope.report(STEP_OPTION, message, options.lengths.origin)


def checked_lengths(name: Name, indices: Sequence[Running], options: StepOptions, ctx: StepContext) -> Expr | None:
    """How many elements each chain of a step has, where its option says it; reports what cannot be such numbers."""
    if not indices:
        no_lengths(name.text, options, ctx)
        return None
    value = implied_lengths(name, indices, options.lengths, ctx)
    if value is None:
        return None
    lagging = next((one for one in indices[:-1] if one.lag), None)
    if lagging is not None:
        message = f"`lengths` counts along the last index, and `{lagging.name}` lags behind: write it last"
        ctx.scope.report(STEP_OPTION, message, value.origin)
        return None
    if isinstance(value, Constant) and len(indices) == 1 and isinstance(value.value, int) and value.value >= 0:
        return value
    leading = [one.named.written for one in indices[:-1]]
    wanted = counts_over(leading)
    declared = ctx.bindings.get(value.name) if isinstance(value, Data) else None
    if not isinstance(value, Data) or declared is None or declared.numbers != "count":
        called = value.name if isinstance(value, Data) else "n"
        message = f"`lengths` are whole numbers from 0 that come with the data: declare `data {called} : {wanted}`"
        ctx.scope.report(STEP_OPTION, message, value.origin)
        return None
    if any(one.space is None for one in indices):
        return None
    sets = [None if axis is None else set_of(axis) for axis in value.type.indexed]
    if sets != [set_of(one.axis) for one in indices[:-1]]:
        found = " * ".join(str(one) for one in sets)
        over = f"runs over {found}" if sets else "is one number"
        message = (
            f"`{name.text}` has a chain for {each_of(leading)}, and `{value.name}` {over}: declare "
            f"`data {value.name} : {wanted}`"
        )
        ctx.scope.report(AXES_MISMATCH, message, value.origin)
        return None
    return value
