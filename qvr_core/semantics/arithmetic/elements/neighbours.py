"""`x[i, k + 1]` where nothing is computed in order along `k`: the element beside the one that the index is at.

The index runs over so small a set that its neighbours are there, or an `if` keeps it away from the ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from qvr_core.semantics.arithmetic.indices import Shift, elements_of, shift_of
from qvr_core.semantics.scope.environment import Running, StepContext
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Constant, Data, Expr, ValueType
from qvr_core.semantics.types.program_codes import OUT_OF_RANGE
from qvr_core.semantics.types.spaces import REAL_LINE, Dim
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, ArithCall, Binary, Gather, Literal, ParenArith, Variable
from qvr_core.syntax.tree.steps import ObserveStep
from qvr_core.syntax.tree_to_text import to_text
from qvr_core.syntax.walk import walk


@immutable
class Neighbour:
    """The element `by` places behind the one that an index is at; before it where `by` is negative."""

    one: Running
    by: int


def neighbour(tree: Arith, base: Expr | None, ctx: StepContext) -> Neighbour | None:
    """What `k + 1` and `k - 1` read where they are no shift: of data, where the step looks back along no index; of any
    value, where a reduction runs over the index."""
    found = _moved(tree)
    one = None if found is None else ctx.indices.get(found[0])
    if base is None or one is None or found is None or not found[1] or one.lag or _is_made(base, ctx):
        return None
    data = isinstance(base, Data) or (
        isinstance(base, Bound) and base.name in ctx.bindings and ctx.bindings[base.name].kind == "data"
    )
    return Neighbour(one, found[1]) if (data if found[1] > 0 else one.name in ctx.reducing) else None


def _is_made(base: Expr, ctx: StepContext) -> bool:
    """Whether the step draws the name: its later elements are none that an element may read."""
    return isinstance(base, Data) and isinstance(ctx.tree, ObserveStep) and base.name == ctx.tree.name.text


def _moved(tree: Arith) -> tuple[str, int] | None:
    """The index and the number that is added to it."""
    tree = _bare(tree)
    if isinstance(tree, Variable):
        return tree.name.text, 0
    if not isinstance(tree, Binary) or tree.operator not in "+-":
        return None
    left, right = _bare(tree.left), _bare(tree.right)
    if tree.operator == "+" and isinstance(left, Literal):
        left, right = right, left
    if not isinstance(left, Variable) or not isinstance(right, Literal) or not isinstance(right.value, int):
        return None
    return left.name.text, right.value if tree.operator == "+" else -right.value


def _bare(tree: Arith) -> Arith:
    while isinstance(tree, ParenArith):
        tree = tree.inner
    return tree


def beside_a_neighbour(expr: Gather, one: Running, size: Dim | None, ctx: StepContext) -> bool:
    """Whether an index over a smaller set stands where the step also reads a neighbour of it: `x[k + 1] - x[k]`."""
    own = None if one.space is None else elements_of(one.space)
    if (
        ctx.tree is None
        or not isinstance(expr.base, Variable)
        or own is None
        or not isinstance(size, int)
        or own > size
    ):
        return False
    return any(
        isinstance(node, Gather)
        and isinstance(node.base, Variable)
        and node.base.name.text == expr.base.name.text
        and any((found := _moved(index)) is not None and found[1] and found[0] == one.name for index in node.indices)
        for node in walk(ctx.tree)
    )


# ---------------------------------------------------------------- that it is there


def stays_inside(near: Neighbour, size: Dim | None, tree: Arith, base: str, ctx: StepContext) -> bool:
    """Whether the neighbour is there wherever the index goes; one that is not is told."""
    ends = _ends(near.one, ctx)
    if ends is None or not isinstance(size, int):
        return True
    first, last = ends[0] + near.by, ends[1] + near.by
    if first >= 0 and last < size:
        return True
    written, name = to_text(tree), near.one.name
    over = f"`{written}` goes from {first} to {last}, and {base} has the elements 0 to {int(size) - 1} there"
    remedy = f"let `{name}` run over a set of at most {max(int(size) - abs(near.by), 1)} elements"
    if near.by < 0:
        remedy = f"begin where there is one, as in `{name} + {-near.by}`"
    bound = f"{name} < {int(size) - near.by}" if near.by > 0 else f"{name} >= {-near.by}"
    ctx.scope.report(OUT_OF_RANGE, f"{over}; {remedy}, or reduce with `if {bound}`", tree.span)
    return False


def kept_inside(picked: Expr, near: Neighbour | None, size: Dim | None, ctx: StepContext) -> Expr:
    """The index of a neighbour; where a condition leaves elements out, theirs is some other one that is there."""
    if near is None or not ctx.conditions or not isinstance(size, int):
        return picked

    def number(value: int) -> Expr:
        return Constant(type=ValueType(REAL_LINE), origin=picked.origin, value=value)

    ends = (picked, number(0), number(int(size) - 1))
    return Builtin(type=picked.type, origin=picked.origin, function="clamp", args=ends)


def earlier(now: Expr, shift: Shift | None) -> Expr:
    """The index that a shift reads of a value whose axes nobody knows."""
    if shift is None or not shift.most:
        return now
    back = Constant(type=ValueType(REAL_LINE), origin=now.origin, value=shift.most)
    return Builtin(type=now.type, origin=now.origin, function="sub", args=(now, back))


def from_the_first(picked: Expr, tree: Arith, again: int, ctx: StepContext) -> Expr:
    """A shift that is computed, `t - 1 - j`: before the first element its first ones stand again."""
    sizes = {name: None if one.space is None else elements_of(one.space) for name, one in ctx.indices.items()}
    if shift_of(tree, sizes, ctx) is None:
        return picked

    def made(function: str, *args: Expr) -> Expr:
        return Builtin(type=picked.type, origin=picked.origin, function=function, args=args)

    def number(value: int) -> Expr:
        return Constant(type=ValueType(REAL_LINE), origin=picked.origin, value=value)

    return made("where", made("lt", picked, number(0)), made("add", picked, number(again)), picked)


def _ends(one: Running, ctx: StepContext) -> tuple[int, int] | None:
    """The first and the last element that an index is at, the conditions in force taken into account."""
    count = None if one.space is None else elements_of(one.space)
    if count is None:
        return None
    first, last = 0, count - 1
    for tree in _all_of(ctx.conditions):
        low, high = _between(tree, one.name)
        first, last = max(first, low), min(last, high)
    return (int(first), int(last)) if first <= last else None


def _all_of(conditions: tuple[Arith, ...]) -> Iterator[Arith]:
    for tree in map(_bare, conditions):
        if isinstance(tree, ArithCall) and tree.func.text == "logical_and":
            yield from _all_of(tuple(arg.value for arg in tree.args))
        else:
            yield tree


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def _between(tree: Arith, name: str) -> tuple[float, float]:
    """The interval in which `k < 4` or `0 <= k - 1` leaves an index."""
    free = (-math.inf, math.inf)
    if not isinstance(tree, Binary) or tree.operator not in _TURNED:
        return free
    left, right, operator = _bare(tree.left), _bare(tree.right), tree.operator
    if isinstance(left, Literal):
        left, right, operator = right, left, _TURNED[operator]
    moved = _moved(left)
    if moved is None or moved[0] != name or not isinstance(right, Literal) or not isinstance(right.value, int):
        return free
    limit = right.value - moved[1]
    match operator:
        case "<":
            return -math.inf, limit - 1
        case "<=":
            return -math.inf, limit
        case ">":
            return limit + 1, math.inf
        case ">=":
            return limit, math.inf
        case _:
            return limit, limit
