"""Which expression made a number that is not finite first: what was computed is kept while a step is run once more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.values.cells import Cell, align
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import (
    Arrange,
    Bound,
    Builtin,
    Constant,
    Data,
    Expr,
    FieldOf,
    Index,
    ListOf,
)
from qvr_core.semantics.types.walk import operands

_SIGNS: Mapping[str, tuple[str, int]] = {
    "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1), "eq": ("==", 1), "ne": ("!=", 1),
    "add": ("+", 2), "sub": ("-", 2), "mul": ("*", 3), "div": ("/", 3), "pow": ("^", 5),
}  # fmt: skip
"""Operators by the function that they stand for, and how tightly they bind."""
_NEGATION, _ATOM = 4, 6


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
    """` in 3 of 60 rows, the first in row 17`, where there is more than one number."""
    if wrong.numel() == 1:
        return ""
    axes = wrong.any(0) if result.rows and wrong.ndim > 1 else wrong
    if axes.ndim == 0:
        return ""
    rows = axes.flatten(1).any(1) if axes.ndim > 1 else axes
    count = int(rows.sum())
    first = "" if count == len(rows) else f", the first in row {int(rows.nonzero()[0])}"
    return f" in {count} of {len(rows)} rows{first}"


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


def text(expr: Expr) -> str:
    """An expression as a user would write it."""
    return _text(expr)[0]


def _text(expr: Expr) -> tuple[str, int]:
    match expr:
        case Constant(value=value):
            return str(value), _ATOM
        case Bound(name=name) | Data(name=name):
            return name, _ATOM
        case Builtin(function="neg", args=(operand,)):
            return f"-{_inside(operand, _NEGATION)}", _NEGATION
        case Builtin(function=function, args=(left, right)) if function in _SIGNS:
            sign, tight = _SIGNS[function]
            # `^` binds to the right, all others to the left
            near, far = (tight + 1, tight) if function == "pow" else (tight, tight + 1)
            return f"{_inside(left, near)} {sign} {_inside(right, far)}", tight
        case Arrange(base=operand):
            return _text(operand)
        case Builtin(function=function, args=args, keywords=keywords):
            given = [*map(text, args), *(f"{key}={text(value)}" for key, value in keywords)]
            return f"{function}({', '.join(given)})", _ATOM
        case Index(base=base, indices=indices):
            return f"{_inside(base, _ATOM)}[{', '.join(map(text, indices))}]", _ATOM
        case FieldOf(base=base, field=name):
            return f"{_inside(base, _ATOM)}.{name}", _ATOM
        case ListOf(items=items):
            return f"[{', '.join(map(text, items))}]", _ATOM
        case _:
            return "…", _ATOM


def _inside(expr: Expr, tight: int) -> str:
    words, own = _text(expr)
    return words if own >= tight else f"({words})"
