"""`let z[t : Time, a : S] = solve(f, z0, …, start=, at=)`: a differential equation at given times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import SCALAR, Axis, axes, with_axes
from qvr_core.semantics.arithmetic.defined_functions import expanded
from qvr_core.semantics.language.equations import CALL, CONTROL, METHODS, NEEDED, OPTIONS, SOLVE
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.programs.chains.along import Along, laid_out
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import DamagedEntry, FunctionEntry
from qvr_core.semantics.types.axes import indexed, set_of
from qvr_core.semantics.types.model.expressions import Bound, Expr, Solve, ValueType
from qvr_core.semantics.types.program_codes import DIFFERENTIAL_EQUATION
from qvr_core.semantics.types.spaces import REAL_LINE, Unknown
from qvr_core.semantics.types.walk import operands, walk
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ArithCall, Literal, ParenArith, Variable
from qvr_core.syntax.tree.declarations import DefDecl, DefHeader
from qvr_core.syntax.tree.names import Span

MOST_STEPS, MOST_TRIED = 10_000, 1_000_000
"""Between two times: each of the first is a turn of a loop, whose states are kept for the gradient; the others are how
many an adaptive method tries, unless an option says less."""
TOLERANCE, LEAST = 1e-6, 1e-13
"""That of an adaptive method; below the other rounding would be its error."""


def solve_call(tree: Arith, ctx: StepContext) -> ArithCall | None:
    """The call of `solve` that is the whole right side of a step; a `solve` of the file's own is another."""
    while isinstance(tree, ParenArith):
        tree = tree.inner
    own = isinstance(tree, ArithCall) and (ctx.scope.lookup(SOLVE) is not None or ctx.find(SOLVE) is not None)
    return tree if isinstance(tree, ArithCall) and tree.func.text == SOLVE and not own else None


def check_solve(call: ArithCall, along: Along, ctx: StepContext) -> Expr:
    """The solution over the indices of the step; reports what is wrong at its token."""
    return _checked(call, along, ctx) or Bound(
        type=ValueType(Unknown()), origin=ctx.scope.origin(call.span), name="solve"
    )


def _checked(call: ArithCall, along: Along, ctx: StepContext) -> Expr | None:
    def wrong(message: str, span: Span) -> None:
        ctx.scope.report(DIFFERENTIAL_EQUATION, message, span)

    keyed: dict[str, ArithArg] = {arg.key.text: arg for arg in call.args if arg.key is not None}
    given = [arg.value for arg in call.args if arg.key is None]
    for name, arg in keyed.items():
        if name not in OPTIONS:
            return wrong(f"`solve` has no option `{name}`; it has {', '.join(OPTIONS)}", arg.span)
    missing = [name for name in NEEDED if name not in keyed]
    if missing or len(given) < 2:
        return wrong(f"`solve` is called as `{CALL}`", call.func.span)
    function = given[0]
    entry = ctx.scope.lookup(function.name.text) if isinstance(function, Variable) else None
    if isinstance(entry, DamagedEntry):
        return None  # reported: at its declaration
    if not isinstance(function, Variable) or not isinstance(entry, FunctionEntry):
        return wrong("the derivative is a function of the file: `def f(t, z, …) = …`", function.span)
    options = _options(keyed, ctx)
    if options is None:
        return None
    node = entry.statement.header.unit.node
    assert isinstance(node, DefDecl | DefHeader)
    parameters = [one.name.text for one in node.parameters]
    if len(parameters) != len(given):
        takes = f"`{entry.name}` takes {len(parameters)} values, and is given t, z and {len(given) - 2} more"
        return wrong(takes, function.span)

    at = check_arith(keyed["at"].value, ctx)
    if axes(at.type) is None:
        return wrong("nothing says what this runs over: declare it, `data when : Time`", keyed["at"].value.span)
    drawn = sorted(one.name for one in walk(at, operands) if isinstance(one, Bound) and _is_drawn(one.name, ctx))
    if drawn:
        return wrong(f"the times are data, and `{drawn[0]}` is drawn", keyed["at"].value.span)
    sets = {set_of(one.axis): one for one in along.indices}
    names = [name for _, name in axes(at.type) or []]
    time = next((sets[set_of(name)] for name in reversed(names) if name is not None and set_of(name) in sets), None)
    if time is None:
        return wrong("`at` runs over no set that an index of this step runs over", keyed["at"].value.span)
    values = [check_arith(tree, ctx) for tree in (*given[1:], keyed["start"].value)]
    for value, tree in zip(values, (*given[1:], keyed["start"].value), strict=True):
        if isinstance(value.type.space, Unknown):
            return None  # reported
        if axes(value.type) is None:
            return wrong("nothing says what this runs over: declare it, `data … : …`", tree.span)
    used = {name for value in values for _, name in axes(value.type) or [] if name is not None and indexed(name)}
    if time.axis in used:
        return wrong(f"an argument of an equation does not vary along `{time.name}`: f is given the time", call.span)
    state = [axis for axis in axes(values[0].type) or [] if axis[1] is None or not indexed(axis[1])]
    others = [one for one in along.indices if one is not time and one.axis not in used]
    if len(state) > 1 or (not state and others) or (state and len(others) != 1):
        return wrong("the state has one index of the step at most, and z0 runs over its set", given[1].span)
    named = state[0][1] if state else None
    if named is not None and named != set_of(others[0].axis):
        return wrong(f"z0 runs over {named}, `{others[0].name}` over {others[0].named.written}", given[1].span)
    plates = Along(tuple(one for one in along.indices if one is not time and one not in others), None, 0)
    values = [laid_out(value, plates, ctx) for value in values]
    at = laid_out(at, plates, ctx)
    state_axes: list[Axis] = [(one.space.size if one.space else None, set_of(one.axis)) for one in others]
    kinds = [SCALAR, with_axes(state_axes, REAL_LINE, like=())] + [
        _alone(one, len(plates.indices)) for one in values[1:-1]
    ]
    inner = {
        name: Bound(type=kind, origin=ctx.scope.origin(function.span), name=f"{entry.name}:{name}")
        for name, kind in zip(parameters, kinds, strict=True)
    }
    kept, ctx.indices = ctx.indices, {}
    rate = expanded(replace(call, func=function.name), entry, inner, {}, (), ctx, check_arith)
    ctx.indices = kept
    if rate is None:
        return None
    made = axes(rate.type)
    if (
        made is None
        or len(made) != len(state_axes)
        or any(
            isinstance(one[0], int) and isinstance(two[0], int) and int(one[0]) != int(two[0])
            for one, two in zip(made, state_axes, strict=False)
        )
    ):
        return wrong(f"`{entry.name}` gives another number of derivatives than the state has numbers", function.span)
    times: list[Axis] = [(None if time.space is None else time.space.size, time.axis)]
    whole = [*plates.axes, *times, *((one.space.size if one.space else None, one.axis) for one in others)]
    return Solve(
        type=with_axes(whole, REAL_LINE, like=[value.type for value in (*values, at)]),
        origin=ctx.scope.origin(call.span),
        function=entry.name,
        names=tuple(one.name for one in inner.values()),
        rate=rate,
        initial=values[0],
        arguments=tuple(values[1:-1]),
        start=values[-1],
        at=at,
        plates=len(plates.indices),
        **options,
    )


def _is_drawn(name: str, ctx: StepContext) -> bool:
    binding = ctx.find(name)
    return binding is not None and binding.kind in ("sample", "predict")


def _options(keyed: Mapping[str, ArithArg], ctx: StepContext) -> dict[str, Any] | None:
    """Method, steps and tolerances; None, reported, where one is wrong."""

    def wrong(message: str, name: str) -> None:
        ctx.scope.report(DIFFERENTIAL_EQUATION, message, keyed[name].value.span)

    written = keyed["method"].value if "method" in keyed else None
    method = written.name.text if isinstance(written, Variable) else None
    if written is None:
        method = next(iter(METHODS))
    elif method not in METHODS:
        near = closest(method or "", METHODS)
        *first, last = METHODS
        known = f"a method is {', '.join(first)} or {last}"
        return wrong(known + (f"; did you mean `{near}`?" if near else ""), "method")
    assert method is not None
    foreign = CONTROL if method == "rk4" else ("steps",)
    for name in foreign:
        if name in keyed:
            has = "steps of one length: `steps=` says how many" if method == "rk4" else "tolerances, and no steps"
            return wrong(f"`{method}` has {has}", name)
    steps = _number(keyed, "steps")
    if "steps" in keyed and not (isinstance(steps, int) and 1 <= steps <= MOST_STEPS):
        return wrong(
            f"`steps` is a whole number from 1 to {MOST_STEPS}: how often rk4 steps between two times", "steps"
        )
    for name in ("rtol", "atol"):
        value = _number(keyed, name)
        if name in keyed and not (value is not None and LEAST <= value < 1.0):
            return wrong(f"`{name}` is a number from {LEAST:g} to 1: the error of a step", name)
    tried = _number(keyed, "max_steps")
    if "max_steps" in keyed and not (isinstance(tried, int) and 1 <= tried <= MOST_TRIED):
        return wrong(
            f"`max_steps` is a whole number from 1 to {MOST_TRIED}: how many steps are tried between two times",
            "max_steps",
        )
    rtol, atol = (_number(keyed, name) or TOLERANCE for name in ("rtol", "atol"))
    return {
        "method": method, "steps": steps or 1, "rtol": float(rtol), "atol": float(atol),
        "max_steps": tried or MOST_TRIED,
    }  # fmt: skip


def _number(keyed: Mapping[str, ArithArg], name: str) -> int | float | None:
    """The number that is written as an option's value."""
    value = keyed[name].value if name in keyed else None
    found = value.value if isinstance(value, Literal) else None
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _alone(value: Expr, plates: int) -> ValueType:
    """The type of an argument for one equation."""
    return with_axes((axes(value.type) or [])[plates:], REAL_LINE, like=())
