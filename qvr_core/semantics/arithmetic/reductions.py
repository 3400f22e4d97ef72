"""`over=Set` in calls that work along one axis (`sum(x, over=Feature)`), sets where sizes are wanted (`zeros(S)`), and
which axes of a matrix product meet.

The axis of `over` is brought to the end, where the function works; what keeps its shape goes back to its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from qvr_core.operations.operation import BuiltinFunction
from qvr_core.semantics.arithmetic.alignment import arrange
from qvr_core.semantics.arithmetic.broadcasting import (
    Axis,
    axes,
    data_like,
    drop_last,
    from_axes,
    is_data,
    with_axes,
    with_last,
)
from qvr_core.semantics.arithmetic.elements.matrices import own_rank
from qvr_core.semantics.arithmetic.elementwise import words
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import ObjectEntry, Scope
from qvr_core.semantics.types.axes import CONTRACTED, indexed, set_of
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin
from qvr_core.semantics.types.model.expressions import Builtin, Constant, Contract, Expr, ValueType
from qvr_core.semantics.types.program_codes import (
    ARITHMETIC_MISMATCH,
    AXES_MISMATCH,
    DUPLICATE_AXIS,
    FUNCTION_ARGUMENTS,
)
from qvr_core.semantics.types.spaces import REAL_LINE, Finite, Named, Real, Seq, Unknown
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ArithCall, ParenArith, TupleArith, Variable


def over_of(function: BuiltinFunction, args: Sequence[ArithArg]) -> ArithArg | None:
    """The argument `over=` of a call that may have one."""
    if "over" not in function.keywords:
        return None
    return next((arg for arg in args if arg.key is not None and arg.key.text == "over"), None)


def check_over(
    function: BuiltinFunction,
    args: Sequence[Expr],
    over: ArithArg,
    expr: ArithCall,
    kept: Callable[[ValueType], ValueType],
    ctx: StepContext,
) -> Expr:
    """The function along the sets that `over` names; `kept` types one that keeps the shape of its argument."""
    origin = ctx.scope.origin(expr.span)
    unknown = Builtin(type=ValueType(Unknown()), origin=origin, function=function.name, args=tuple(args))
    if len(args) != 1 or any(arg.key is not None and arg.key.text in ("dim", "keepdim") for arg in expr.args):
        ctx.scope.report(FUNCTION_ARGUMENTS, "`over` names the axes, so there is no number of an axis", over.value.span)
        return unknown
    sets = _sets(over.value, ctx.scope)
    if len(sets) > 1 and (function.rule != "reduce" or "in turn" not in function.traits):
        ctx.scope.report(FUNCTION_ARGUMENTS, f"`{function.name}` works along one set", over.value.span)
        return unknown
    value = args[0]
    for name, tree in sets:
        at = None if name is None else _place(value, name, expr, tree, ctx)
        if at is None:
            return unknown
        count = len(axes(value.type) or [])
        last = arrange(value, [*range(at), *range(at + 1, count), at])
        kind = drop_last(last.type) if function.rule == "reduce" else kept(last.type)
        value = Builtin(type=kind, origin=origin, function=function.name, args=(last,))
        if function.rule != "reduce":
            value = arrange(value, [*range(at), count - 1, *range(at, count - 1)])
    return value


def _sets(tree: Arith, scope: Scope) -> list[tuple[str | None, Arith]]:
    """The sets that `over` names, each with where it stands; None for what is none."""
    while isinstance(tree, ParenArith):
        tree = tree.inner
    found: list[tuple[str | None, Arith]] = []
    for item in tree.items if isinstance(tree, TupleArith) else (tree,):
        space = named_set(item, scope)
        if space is None:
            message = "`over` names a set, or several in parentheses: `over=Feature`, `over=(Row, Feature)`"
            if not isinstance(item, Variable) or scope.lookup(item.name.text) is not None:
                scope.report(FUNCTION_ARGUMENTS, message, item.span)
            else:
                scope.unknown(item.name, "object")
        found.append((None if space is None else space.nominal, item))
    return found


def named_set(tree: Arith, scope: Scope) -> Finite | None:
    """The finite set that an expression names."""
    entry = scope.lookup(tree.name.text) if isinstance(tree, Variable) else None
    space = entry.space.space if isinstance(entry, ObjectEntry) else None
    return space if isinstance(space, Finite) else None


def unbound_set(tree: Arith, ctx: StepContext) -> Finite | None:
    """The set that an expression names, where no step binds the name."""
    if not isinstance(tree, Variable) or ctx.find(tree.name.text) is not None:
        return None
    return named_set(tree, ctx.scope)


def _place(value: Expr, name: str, expr: ArithCall, tree: Arith, ctx: StepContext) -> int | None:
    """Where the set stands among the axes of the value; reports why there is no such place."""
    ctx.plates.add(name)
    text = words(expr.args[0].value, "the value")
    found = axes(value.type)
    if isinstance(value.type.space, Unknown):
        return None
    if found is None or is_data(value.type):
        message = f"the axes of {text} are not known here: declare it with `data`, or index it"
        ctx.scope.report(AXES_MISMATCH, message, tree.span)
        return None
    names = [axis for _, axis in found]
    if names.count(name) > 1:
        message = f"{text} has the axis {name} twice, and nothing says which of the two is meant"
        ctx.scope.report(DUPLICATE_AXIS, message, tree.span)
        return None
    if name in names:
        return names.index(name)
    over = [axis for axis in dict.fromkeys(names) if axis is not None and axis != set_of(axis)]
    plain = [axis for axis in dict.fromkeys(names) if axis is not None and axis == set_of(axis)]
    runs = f"runs over {' * '.join(plain)}, not" if plain else "does not run"
    if any(set_of(axis) == name for axis in over):
        runs = f"is at one element of {name} here, so it does not run"
    place = ctx.scope.origin(tree.span)
    fixes = tuple(Fix(f"Change to `{axis}`", (Edit(place, axis),), len(plain) == 1) for axis in plain)
    ctx.scope.report(AXES_MISMATCH, f"{text} {runs} over {name}", place, fixes=fixes)
    return None


def sized_by_sets(
    function: BuiltinFunction, args: Sequence[Expr], trees: Sequence[Arith], ctx: StepContext
) -> ValueType:
    """The type of `zeros(S, 3)`: an axis for each set, a nameless one for each number."""
    if "of sets" not in function.traits or (function.name == "arange" and len(args) > 1):
        return data_like([arg.type for arg in args])
    found: list[Axis | None] = []
    for tree, arg in zip(trees, args, strict=True):
        space = unbound_set(tree, ctx)
        found.append(_axis(space, ctx) if space is not None else _counted(function.name, tree, arg, ctx))
    known = [axis for axis in found if axis is not None]
    if len(known) < len(found):
        return data_like([arg.type for arg in args])
    if function.name == "eye" and len(known) == 1:
        known *= 2
    # one nameless axis is a vector, as in a list of numbers
    return (
        from_axes(known, 0, like=())
        if known[0][1] is None and len(known) == 1
        else with_axes(known, REAL_LINE, like=())
    )


def _counted(name: str, tree: Arith, arg: Expr, ctx: StepContext) -> Axis | None:
    """The axis that a number says; None where data decide it, or where it is none, which is reported."""
    if isinstance(arg, Constant) and not isinstance(arg.value, str):
        if arg.value >= 0 and arg.value == int(arg.value):
            return int(arg.value), None
        message = f"`{name}` takes sets and whole numbers from 0, and this is {arg.value:g}"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, tree.span)
    elif not is_data(arg.type) and axes(arg.type):
        message = f"`{name}` takes sets and whole numbers, and {words(tree, 'this')} has many numbers"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, tree.span)
    return None


def _axis(space: Finite, ctx: StepContext) -> Axis:
    ctx.plates.update(name for name in (space.nominal,) if name is not None)
    return space.size, space.nominal


# ---------------------------------------------------------------- matrix products


def multiplied(name: str, args: Sequence[Expr], texts: Sequence[str], where: Origin, ctx: StepContext) -> ValueType:
    """The shape of a product of values whose leading axes broadcast as torch's do."""
    left, right = args[0].type, args[1].type
    a, b = axes(left), axes(right)
    if is_data(left) or is_data(right) or not a or not b:
        made = with_last(data_like([left, right]), b[-1:] if b is not None and len(b) > 1 else [])
        # how wide it is the data tell, but it stands at every position
        return replace(made, space=Seq(Unknown())) if isinstance(left.space, Seq) else made
    if not _meet(name, a[-1], b[-1] if len(b) == 1 else b[-2], texts, where, ctx):
        return ValueType(Unknown(), rows=left.rows or right.rows)
    rest = [*a[:-1], *(b[-1:] if len(b) > 1 else [])]
    return from_axes(rest, max(0, len(rest) - 1) if len(b) > 1 else len(rest), like=[left, right])


def solved(name: str, args: Sequence[Expr], texts: Sequence[str], where: Origin, ctx: StepContext) -> ValueType:
    """The type of what a matrix multiplies to a vector or a matrix: that of the right side."""
    left, right = args[0].type, args[1].type
    a, b = axes(left), axes(right)
    if a is None or b is None or is_data(left) or is_data(right):
        return data_like([left, right])
    unknown = ValueType(Unknown(), rows=left.rows or right.rows)
    for text, rank, wanted in ((texts[0], own_rank(a), (2,)), (texts[1], own_rank(b), (1, 2))):
        if rank not in wanted:
            what = "a matrix" if wanted == (2,) else "a vector or a matrix"
            message = f"`{name}` wants {what} there, and {text} has {rank} {'axis' if rank == 1 else 'axes'}"
            ctx.scope.report(FUNCTION_ARGUMENTS, message, where)
            return unknown
    return right if _meet(name, a[-1], b[-own_rank(b)], texts, where, ctx) else unknown


def for_each_element(
    name: str, args: Sequence[Expr], texts: Sequence[str], where: Origin, origin: Origin, ctx: StepContext
) -> Expr | None:
    """A product whose right side has an element for each index of the step: one product for each element.

    None where the axes of both stand as torch multiplies them.
    """
    a, b = (axes(arg.type) or [] for arg in args)
    if not any(indexed(own or "") for _, own in b) or any(is_data(arg.type) for arg in args):
        return None
    one, two = ([axis for axis in found if not indexed(axis[1] or "")] for found in (a, b))
    unknown = ValueType(Unknown(), rows=any(arg.type.rows for arg in args))
    for own, text in ((one, texts[0]), (two, texts[1])):
        if not own:
            message = f"`{name}` multiplies vectors and matrices, and {text} is a single number for each index"
            ctx.scope.report(AXES_MISMATCH, message, where)
            return replace(args[0], type=unknown)
    if not _meet(name, one[-1], two[max(0, len(two) - 2)], texts, where, ctx):
        return replace(args[0], type=unknown)
    left = _called(a, len(one) - 1, "left")
    right = _called(b, max(0, len(two) - 2), "right")
    sizes = {**dict(zip(left, a, strict=True)), **dict(zip(right, b, strict=True))}
    each = list(dict.fromkeys(called for called in (*left, *right) if indexed(called)))
    own = [called for called in (*left, *right) if not indexed(called) and called != CONTRACTED]
    result = [*each, *own]
    plates = len(result) - (1 if len(two) > 1 else 0)
    kind = from_axes([sizes[called] for called in result], plates, like=[arg.type for arg in args])
    return Contract(type=kind, origin=origin, factors=tuple(args), axes=(left, right), result=tuple(result))


def _called(found: Sequence[Axis], summed: int, side: str) -> tuple[str, ...]:
    """Names for the axes of one side: an index's own, and others that no axis of the other side has.

    `summed` is the place of the axis that is summed over, among those that no index runs along.
    """
    names: list[str] = []
    own = 0
    for _, name in found:
        if name is not None and indexed(name):
            names.append(name)
            continue
        names.append(CONTRACTED if own == summed else f"{side} {own}")
        own += 1
    return tuple(names)


def _meet(name: str, last: Axis, inner: Axis, texts: Sequence[str], where: Origin, ctx: StepContext) -> bool:
    """Whether the axes that are summed over together are the same; reports those that are not."""
    if None not in (last[1], inner[1]) and last[1] != inner[1]:
        message = f"`{name}` sums over the last axis of {texts[0]}, {last[1]}, and {texts[1]} has {inner[1]} there"
        ctx.scope.report(AXES_MISMATCH, message, where)
        return False
    if last[0] is not None and inner[0] is not None:
        ctx.scope.require_fit(
            Named(Real((last[0],)), last[1] or f"{last[0]} columns"),
            Named(Real((inner[0],)), inner[1] or f"{inner[0]} rows"),
            where,
            ARITHMETIC_MISMATCH,
            f"{texts[0]} has",
            f"{texts[1]} has",
        )
    return True
