"""The header of a declared family: its parameters with their spaces, and the space of one element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qvr_core.semantics.arrows.objects import check_object_expr, written
from qvr_core.semantics.programs.data_steps import NUMBERS
from qvr_core.semantics.scope.scope import RIGID, Scope
from qvr_core.semantics.types.model.families import DeclaredParameter
from qvr_core.semantics.types.program_codes import BOUND_TWICE, FAMILY_FORMULA
from qvr_core.semantics.types.spaces import REAL_LINE, Constrained, Finite, Linear, Named, Real, Space, Unknown, width
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Literal, Unary
from qvr_core.syntax.tree.declarations import FamilyHeader, FunctionParameter
from qvr_core.syntax.tree.objects import FinSetExpr, ObjectExpr, ObjectRef, ParenObject, Size, SpaceExpr


@immutable
class Header:
    """What a header says; `numbers` is 'count' for `Nat` and 'bool' for `Bool`."""

    parameters: tuple[DeclaredParameter, ...]
    space: Named
    numbers: str


def check_header(node: FamilyHeader, scope: Scope) -> Header:
    """The header, typed; reports what can be no parameter, and what nothing can be drawn from."""
    spaces = [parameter.space for parameter in node.parameters if parameter.space is not None]
    for size in _letters([*spaces, node.space], scope):
        scope.local_sizes[size] = Linear(0, ((RIGID + size, 1),))
    _check_distinct(node.parameters, scope)
    parameters = tuple(_parameter(parameter, scope) for parameter in node.parameters)
    space, numbers = _space(node.space, scope)
    if not isinstance(space, Unknown) and not _drawable(space):
        message = (
            f"a family draws numbers (`Real 1`, `Nat`, `Bool`), vectors (`Real k`, `Simplex k`) or elements of a "
            f"finite set, not `{written(node.space)}`"
        )
        scope.report(FAMILY_FORMULA, message, node.space.span)
        space = Unknown()
    return Header(parameters, Named(space, written(node.space)), numbers)


def _letters(spaces: Sequence[ObjectExpr], scope: Scope) -> Iterator[str]:
    """Names of sizes that no object has: the arguments say how large they are."""
    for expr in spaces:
        inner = _bare(expr)
        sizes: tuple[Size, ...] = ()
        if isinstance(inner, SpaceExpr):
            sizes = inner.sizes
        elif isinstance(inner, FinSetExpr):
            sizes = (inner.size,)
        yield from (size.value for size in sizes if isinstance(size.value, str) and scope.lookup(size.value) is None)


def _bare(expr: ObjectExpr) -> ObjectExpr:
    while isinstance(expr, ParenObject):
        expr = expr.inner
    return expr


def _space(expr: ObjectExpr, scope: Scope) -> tuple[Space, str]:
    inner = _bare(expr)
    if isinstance(inner, ObjectRef) and scope.lookup(inner.name.text) is None and inner.name.text in NUMBERS:
        return NUMBERS[inner.name.text]
    return check_object_expr(expr, scope).space, ""


def _drawable(space: Space) -> bool:
    match space:
        case Real(shape=shape):
            return len(shape) == 1
        case Constrained(kind=kind):
            return kind == "Simplex"
        case _:
            return isinstance(space, Finite)


# ---------------------------------------------------------------- parameters


def _check_distinct(parameters: Sequence[FunctionParameter], scope: Scope) -> None:
    seen: set[str] = set()
    for parameter in parameters:
        if parameter.name.text in seen:
            message = f"there are two parameters called `{parameter.name.text}`"
            scope.report(BOUND_TWICE, message, parameter.name.span)
        seen.add(parameter.name.text)


def _parameter(node: FunctionParameter, scope: Scope) -> DeclaredParameter:
    space, numbers = (REAL_LINE, "") if node.space is None else _space(node.space, scope)
    if node.space is not None and not _given(space, numbers):
        message = (
            f"a parameter is a number or a vector (`Real 1`, `Nat`, `Real k`, `Simplex k`), not `{written(node.space)}`"
        )
        scope.report(FAMILY_FORMULA, message, node.space.span)
        space = Unknown()
    return DeclaredParameter(node.name.text, space, _default(node, space, scope), numbers)


def _given(space: Space, numbers: str) -> bool:
    if isinstance(space, Finite):
        return False
    vector = isinstance(space, Constrained) and space.vector
    return isinstance(space, Unknown) or vector or (isinstance(space, Real) and len(space.shape) == 1)


def _default(node: FunctionParameter, space: Space, scope: Scope) -> float | None:
    if node.default is None:
        return None
    tree, sign = node.default, 1.0
    if isinstance(tree, Unary):
        tree, sign = tree.operand, -1.0
    if not isinstance(tree, Literal) or isinstance(tree.value, str) or not _is_number(space):
        what = "a number" if _is_number(space) else "for a number only: a vector has none"
        scope.report(FAMILY_FORMULA, f"the default of a parameter is {what}", node.default.span)
        return 0.0
    value = sign * float(tree.value)
    low, high = (space.low, space.high) if isinstance(space, Real) else (None, None)
    if (low is not None and value < low) or (high is not None and value > high):
        scope.report(FAMILY_FORMULA, f"the default of `{node.name.text}` lies outside of its bounds", node.default.span)
    return value


def _is_number(space: Space) -> bool:
    return isinstance(space, Unknown) or (isinstance(space, Real) and width(space) == 1)
