"""`standard(z) = loc + scale * z`: how an element of a declared family comes from a standardised one."""

from __future__ import annotations

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, Binary, Literal, ParenArith, Unary, Variable
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.walk import walk


@immutable
class AffineForm:
    """shift + factor · z; no shift where it is 0."""

    shift: Arith | None
    factor: Arith


class NotAffine(Exception):
    """The expression is not shift + factor · z; `part` is what is neither."""

    def __init__(self, part: Arith) -> None:
        super().__init__("not affine")
        self.part = part


def affine_form(tree: Arith, z: Name) -> AffineForm:
    """The shift and the factor of an expression.  Raises `NotAffine`."""
    shift, factor = _parts(tree, z.text)
    if factor is None:
        raise NotAffine(tree)
    return AffineForm(shift, factor)


def _parts(tree: Arith, z: str) -> tuple[Arith | None, Arith | None]:
    """What is added to z and what z is multiplied with; None for 0."""
    if not _reads(tree, z):
        return tree, None
    match tree:
        case Variable():
            return None, Literal(1.0, "1.0", tree.span)
        case ParenArith(inner=inner):
            return _parts(inner, z)
        case Unary(operator="-", operand=inner):
            shift, factor = _parts(inner, z)
            return _negative(shift), _negative(factor)
        case Binary(operator="+" | "-" as sign, left=left, right=right):
            (shift, factor), (other, second) = _parts(left, z), _parts(right, z)
            return _sum(tree, shift, other, sign), _sum(tree, factor, second, sign)
        case Binary(operator="*", left=left, right=right) if not (_reads(left, z) and _reads(right, z)):
            first = _reads(left, z)
            shift, factor = _parts(left if first else right, z)
            return _times(tree, shift, right if first else left), _times(tree, factor, right if first else left)
        case Binary(operator="/", left=left, right=right) if not _reads(right, z):
            shift, factor = _parts(left, z)
            return _over(tree, shift, right), _over(tree, factor, right)
        case _:
            raise NotAffine(tree)


def _reads(tree: Arith, z: str) -> bool:
    return any(isinstance(part, Variable) and part.name.text == z for part in walk(tree))


def _negative(tree: Arith | None) -> Arith | None:
    return None if tree is None else Unary("-", tree, tree.span)


def _sum(whole: Binary, left: Arith | None, right: Arith | None, sign: str) -> Arith | None:
    if right is None:
        return left
    if left is None:
        return right if sign == "+" else _negative(right)
    return Binary(sign, whole.operator_span, left, right, whole.span)


def _times(whole: Binary, part: Arith | None, other: Arith) -> Arith | None:
    if part is None or (isinstance(part, Literal) and part.value == 1.0):
        return None if part is None else other
    return Binary("*", whole.operator_span, part, other, whole.span)


def _over(whole: Binary, part: Arith | None, other: Arith) -> Arith | None:
    return None if part is None else Binary("/", whole.operator_span, part, other, whole.span)
