"""Which expression made a number that is not finite first: what was computed is kept while a step is run once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.values.cells import Cell, align
from qvr_core.runtime.values.expression_text import text
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Constant, Expr
from qvr_core.semantics.types.walk import operands


@dataclass(frozen=True, slots=True)
class Cause:
    """What made a number that is not finite: in words, the name of the `let` around it, and its operand's place."""

    words: str
    step: str | None
    origin: Origin


@dataclass(slots=True)
class Computed:
    """What expressions gave in one execution, by the expression, and what the names of `let` stand for."""

    values: dict[int, tuple[Sequence[Cell], Cell]] = field(default_factory=dict[int, tuple[Sequence[Cell], Cell]])
    lets: dict[str, Expr] = field(default_factory=dict[str, Expr])

    def cause(self, expr: Expr, step: str | None = None) -> Cause | None:
        """The innermost expression below `expr` that is not finite though its operands are."""
        if isinstance(expr, Bound):
            behind = self.lets.get(expr.name)
            return None if behind is None else self.cause(behind, expr.name)
        if id(expr) not in self.values:
            return next(filter(None, (self.cause(part, step) for part in operands(expr))), None)
        given, result = self.values[id(expr)]
        if _finite(result):
            return None
        assert isinstance(expr, Builtin)
        for part, operand in zip(expr.args, given, strict=False):
            if not _finite(operand) and (found := self.cause(part, step)) is not None:
                return found
        if not all(map(_finite, given)):
            return None
        blamed = next((part for part in expr.args if not isinstance(part, Constant)), expr)
        return Cause(_words(expr, given, result), step, blamed.origin)


def _finite(cell: Cell) -> bool:
    value = cell.value
    return not is_tensor(value) or not value.is_floating_point() or bool(arrays.isfinite(value).all())


# ---------------------------------------------------------------- words


def _words(expr: Builtin, operands: Sequence[Cell], result: Cell) -> str:
    wrong = ~arrays.isfinite(result.value)
    kind = "NaN" if bool(arrays.isnan(result.value).any()) else "infinite"
    said = [
        f"`{text(part)}` {between}"
        for part, operand in zip(expr.args, operands, strict=False)
        if not isinstance(part, Constant) and (between := _between(operand, result, wrong))
    ]
    return f"`{text(expr)}` is {kind}{_where(result, wrong)}" + (f": {', '.join(said)} there" if said else "")


def _where(result: Cell, wrong: Tensor) -> str:
    """` in 3 of 60 rows, the first in row 17, counted from 1`, where there is more than one number."""
    if wrong.numel() == 1:
        return ""
    axes = wrong.any(0) if result.rows and wrong.ndim > 1 else wrong
    if axes.ndim == 0:
        return ""
    rows = axes.flatten(1).any(1) if axes.ndim > 1 else axes
    count = int(rows.sum())
    first = "" if count == len(rows) else f", the first in {row_words(int(rows.nonzero()[0]))}"
    return f" in {count} of {len(rows)} rows{first}"


def first_true(mask: Tensor) -> list[int]:
    """Where the first true entry of a mask stands; there is one."""
    return [int(place) for place in mask.nonzero()[0]]


def row_words(place: int) -> str:
    """The row at a place counted from 0, as tables and their messages count."""
    return f"row {place + 1}, counted from 1"


def _between(operand: Cell, result: Cell, wrong: Tensor) -> str | None:
    """The range of an operand where the result is not finite."""
    if not is_tensor(operand.value):
        return None
    try:
        (value, _), _ = align([operand, result])
        value = value.expand(wrong.shape)[wrong]
    except RuntimeError:
        value = operand.value
    low, high = float(value.min()), float(value.max())
    return f"is {low:.4g}" if low == high else f"is between {low:.4g} and {high:.4g}"
