"""Vectors that a family wants as long as it says, or as long as each other."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.language.family import Family, Parameter
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.codes import FAMILY_ARGUMENTS
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.syntax.tree.arithmetic import Arith


def check_lengths(family: Family, arguments: Sequence[tuple[Parameter, Expr, Arith]], ctx: StepContext) -> None:
    """Report the first vector that has another length than the family says, or than one of the same letter."""
    letters: dict[str, tuple[str, int]] = {}
    for parameter, value, tree in arguments:
        found = _length(value)
        if parameter.length is None or found is None:
            continue
        wanted = parameter.length
        if isinstance(wanted, str):
            other, wanted = letters.setdefault(wanted, (parameter.name, found))
            why = f"`{other}` of `{family.name}` has {_numbers(wanted)}"
        else:
            why = f"`{parameter.name}` of `{family.name}` has {_numbers(wanted)}"
        if found != wanted:
            ctx.scope.report(FAMILY_ARGUMENTS, f"this has {_numbers(found)}, but {why}", tree.span)
            return


def _length(value: Expr) -> int | None:
    shape = axes(value.type)
    last = shape[-1][0] if shape else None
    return int(last) if isinstance(last, int) else None


def _numbers(count: int) -> str:
    return "1 number" if count == 1 else f"{count} numbers"
