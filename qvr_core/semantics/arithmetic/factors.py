"""Factor tables: `factor i : I, j : J in e`, or with a case per value."""

from __future__ import annotations

from qvr_core.semantics.arithmetic.broadcasting import Axis, Clash, axes, broadcast, data_like, from_axes, met_apart
from qvr_core.semantics.arithmetic.elementwise import Check
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.expressions import Expr, FactorTable, ValueType
from qvr_core.semantics.types.program_codes import ARITHMETIC_MISMATCH, AXES_MISMATCH, FACTOR_CASES
from qvr_core.semantics.types.spaces import Finite, Named, Unknown
from qvr_core.syntax.tree.arithmetic import FactorCase, FactorExpr


def check_factor(expr: FactorExpr, ctx: StepContext, check: Check) -> Expr:
    """The typed table: one value for every combination of the indices."""
    indices = [(index.name, check_object_expr(index.space, ctx.scope)) for index in expr.indices]
    for (_, space), tree in zip(indices, expr.indices, strict=True):
        if not isinstance(space.space, Finite | Unknown):
            message = f"a factor runs over finite sets, but `{space.written}` is not one"
            ctx.scope.report(FACTOR_CASES, message, tree.space.span)
    front: list[Axis] = [
        (space.space.size, space.space.nominal) if isinstance(space.space, Finite) else (None, None)
        for _, space in indices
    ]
    named = tuple((name.text, space.space) for name, space in indices)
    ctx.plates.update(name for _, name in front if name is not None)
    origin = ctx.scope.origin(expr.span)
    if isinstance(expr.body, tuple):
        cases = tuple((int(case.index.value), check(case.value, ctx)) for case in expr.body)
        _check_cases(expr, expr.body, indices[0][1], ctx)
        kind = _table(front, [value for _, value in cases], expr, ctx, cased=True)
        return FactorTable(type=kind, origin=origin, indices=named, body=None, cases=cases)
    before = dict(ctx.locals)
    for (name, space), axis in zip(indices, front, strict=True):
        kind = ValueType(Finite(axis[0], axis[1]) if axis[0] is not None else None)
        ctx.locals[name.text] = Binding("index", kind, space, ctx.scope.origin(name.span))
    body = check(expr.body, ctx)
    ctx.locals = before
    kind = _table(front, [body], expr, ctx, cased=False)
    return FactorTable(type=kind, origin=origin, indices=named, body=body, cases=())


def _table(front: list[Axis], values: list[Expr], expr: FactorExpr, ctx: StepContext, *, cased: bool) -> ValueType:
    types = [value.type for value in values]
    case = expr.body[-1] if isinstance(expr.body, tuple) and expr.body else None
    place = expr.span if case is None else case.value.span
    if (sets := met_apart([axes(kind) or [] for kind in types])) is not None:
        ctx.scope.report(AXES_MISMATCH, f"one case runs over {sets[0]}, another over {sets[1]}", place)
        return data_like(types)
    joined = broadcast(types)
    if isinstance(joined, Clash):
        ctx.scope.report(ARITHMETIC_MISMATCH, f"the cases have {joined.left} and {joined.right} entries", place)
        return data_like(types)
    shape = axes(joined)
    if shape is None:
        return data_like(types)
    # written out over several indices, a case holds the rows of the later ones
    kept = front if not cased else front[: max(1, len(front) - len(shape))]
    return from_axes([*kept, *shape], len(kept), like=[joined])


def _check_cases(expr: FactorExpr, cases: tuple[FactorCase, ...], first: Named, ctx: StepContext) -> None:
    size = first.space.size if isinstance(first.space, Finite) else None
    seen: set[int] = set()
    for case in cases:
        index = case.index.value
        if not isinstance(index, int) or index < 0 or (isinstance(size, int) and index >= size):
            message = f"`{first.written}` has the values 0 … {int(size) - 1}" if isinstance(size, int) else "no index"
            ctx.scope.report(FACTOR_CASES, message, case.index.span)
        elif index in seen:
            ctx.scope.report(FACTOR_CASES, f"there are two cases for {index}", case.index.span)
        else:
            seen.add(index)
    missing = [str(i) for i in range(int(size)) if i not in seen] if isinstance(size, int) and size <= 4096 else []
    if missing and len(seen) == len(cases):
        rest = ", ".join(missing[:5]) + (" …" if len(missing) > 5 else "")
        fixes: tuple[Fix, ...] = ()
        if cases:
            added = "".join(f", {index} -> 0.0" for index in missing)
            fixes = (Fix("Add the missing cases", (Edit(ctx.scope.origin(cases[-1].span), added, "after"),)),)
        ctx.scope.report(FACTOR_CASES, f"no case for {rest} of `{first.written}`", expr.indices[0].span, fixes=fixes)
