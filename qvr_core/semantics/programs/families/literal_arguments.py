"""Arguments of a family that are written out: numbers that it cannot take, lists that are none of what it wants."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.arrows.family_calls import literal_problem
from qvr_core.semantics.language.family import Family, Parameter
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.codes import FAMILY_ARGUMENTS
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.expressions import Constant, Expr, ListOf
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ListArith, Literal


def check_literals(
    family: Family, parameter: Parameter, name: str, constraint: str, value: Expr, arg: ArithArg, ctx: StepContext
) -> None:
    """Report what an argument that is written out cannot be."""
    _check_numbers(family, name, constraint, value, arg.value, ctx)
    _check_rank(family, parameter, name, value, arg.value, ctx)
    if constraint == "ordered":
        _check_order(family, name, value, arg.value, ctx)
    if constraint == "simplex":
        _check_sum(family, name, arg.value, ctx)
    if constraint == "lower triangular":
        _check_factor(family, parameter, arg, ctx)


def _check_numbers(family: Family, name: str, constraint: str, value: Expr, tree: Arith, ctx: StepContext) -> None:
    trees: Sequence[Arith] = tree.items if isinstance(tree, ListArith) else (tree,)
    values: Sequence[Expr] = getattr(value, "items", (value,)) if isinstance(tree, ListArith) else (value,)
    for item, where in zip(values, trees, strict=False):
        if not isinstance(item, Constant):
            continue
        if isinstance(item.value, str):
            ctx.scope.report(FAMILY_ARGUMENTS, f"`{name}` must be a number", where.span)
        elif (problem := literal_problem(name, constraint, item.value)) is not None:
            ctx.scope.report(FAMILY_ARGUMENTS, f"{family.name}: {problem}", where.span)


def _check_order(family: Family, name: str, value: Expr, tree: Arith, ctx: StepContext) -> None:
    """Literal cutpoints that do not ascend."""
    items = value.items if isinstance(value, ListOf) else ()
    numbers = [item.value for item in items if isinstance(item, Constant) and not isinstance(item.value, str)]
    if not isinstance(tree, ListArith) or len(numbers) < len(items):
        return
    wrong = next((at for at in range(1, len(numbers)) if numbers[at] <= numbers[at - 1]), None)
    if wrong is None:
        return
    message = f"{family.name}: `{name}` must ascend, but {numbers[wrong]:g} follows {numbers[wrong - 1]:g}"
    texts = [ctx.text[item.span.start : item.span.end] for item in tree.items]
    ordered = ", ".join(text for _, text in sorted(zip(numbers, texts, strict=True)))
    distinct = len(set(numbers)) == len(numbers)
    fixes = (Fix("Sort them", (Edit(ctx.scope.origin(tree.span), f"[{ordered}]"),), True),) if distinct else ()
    ctx.scope.report(FAMILY_ARGUMENTS, message, tree.items[wrong].span, fixes=fixes)


def _numbers(tree: Arith) -> list[float] | None:
    """The numbers of a list that is written out; None where something else stands in it."""
    if not isinstance(tree, ListArith):
        return None
    values = [item.value for item in tree.items if isinstance(item, Literal) and not isinstance(item.value, str)]
    return [float(value) for value in values] if len(values) == len(tree.items) else None


def _check_sum(family: Family, name: str, tree: Arith, ctx: StepContext) -> None:
    """Literal probabilities that do not add up to 1."""
    numbers = _numbers(tree)
    if not numbers or any(number < 0 for number in numbers) or abs((total := sum(numbers)) - 1.0) < 1e-6:
        return
    shares = ", ".join(f"{number / total:.6g}" for number in numbers) if total else ""
    fixes = (Fix("Divide them by their sum", (Edit(ctx.scope.origin(tree.span), f"[{shares}]"),)),) if total else ()
    message = f"{family.name}: `{name}` are probabilities: they must add up to 1, and these to {total:g}"
    ctx.scope.report(FAMILY_ARGUMENTS, message, tree.span, fixes=fixes)


def _check_factor(family: Family, parameter: Parameter, arg: ArithArg, ctx: StepContext) -> None:
    """A literal matrix with numbers above its diagonal is no Cholesky factor; a symmetric one is a covariance."""
    rows = [_numbers(row) for row in arg.value.items] if isinstance(arg.value, ListArith) else []
    size = len(rows)
    matrix = [row for row in rows if row is not None and len(row) == size]
    if not size or len(matrix) < size or not any(matrix[i][j] for i in range(size) for j in range(i + 1, size)):
        return
    symmetric = all(matrix[i][j] == matrix[j][i] for i in range(size) for j in range(i))
    covariance = "covariance_matrix" in dict(parameter.alternatives)
    message = f"{family.name}: `{parameter.name}` is a Cholesky factor, with nothing above its diagonal"
    if not (symmetric and covariance):
        ctx.scope.report(FAMILY_ARGUMENTS, message, arg.value.span)
        return
    written = f"covariance_matrix={ctx.text[arg.value.span.start : arg.value.span.end]}"
    place = ctx.scope.origin(arg.span)
    fix = Fix("Give it as `covariance_matrix=`", (Edit(place, written),), True)
    ctx.scope.report(FAMILY_ARGUMENTS, f"{message}; this is a covariance", arg.value.span, fixes=(fix,))


def _check_rank(family: Family, parameter: Parameter, name: str, value: Expr, tree: Arith, ctx: StepContext) -> None:
    """A number cannot stand for probabilities, cutpoints or a matrix."""
    if not isinstance(value, Constant) or isinstance(value.value, str):
        return
    if parameter.shape == "matrix":
        ctx.scope.report(FAMILY_ARGUMENTS, f"{family.name}: `{name}` is a matrix, such as `eye(3)`", tree.span)
    elif parameter.constraint in ("simplex", "ordered"):
        example = "[0.2, 0.8]" if parameter.constraint == "simplex" else "[-1.0, 1.0]"
        ctx.scope.report(FAMILY_ARGUMENTS, f"{family.name}: `{name}` is a vector, such as `{example}`", tree.span)
