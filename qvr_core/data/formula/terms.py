"""The algebra of a formula: `a * b` is `a + b + a:b`, `(1 | g/h)` two groups, `(a + b)^2` all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from qvr_core.data.formula.problems import WrongFormula
from qvr_core.data.formula.syntax import Binary, Call, Minus, Name, Node, Number, names, written

Term = tuple[Node, ...]
SERIES = ("ar", "ma", "arma", "cosy", "unstr", "sar", "car", "fcor")


@dataclass(frozen=True)
class Group:
    """`(1 + x | g)`: what differs between the levels of `by`, or of each combination of several."""

    effects: Sum
    by: tuple[str, ...]
    correlated: bool
    node: Node


@dataclass
class Sum:
    """The right side of a formula."""

    intercept: bool = True
    terms: list[Term] = field(default_factory=list[Term])
    groups: list[Group] = field(default_factory=list[Group])
    offsets: list[Node] = field(default_factory=list[Node])
    series: list[Call] = field(default_factory=list[Call])
    unsaid: list[tuple[Node, str]] = field(default_factory=list[tuple[Node, str]])
    """Parts for which there is no program, and why."""


def expanded(node: Node, others: Sequence[str] = ()) -> Sum:
    """The terms of a right side; `others` are the columns that `.` stands for.  Raises `WrongFormula`."""
    found = Sum()
    _add(node, others, found)
    found.terms.sort(key=len)
    return found


def _add(node: Node, others: Sequence[str], found: Sum) -> None:
    match node:
        case Binary("+", left, right):
            _add(left, others, found)
            _add(right, others, found)
        case Binary("-", left, right):
            _add(left, others, found)
            _leave(right, others, found)
        case Minus(operand):
            _leave(operand, others, found)
        case Number(value) if value in (0.0, 1.0):
            found.intercept = value == 1.0
        case Binary("|" | "||" as bars, left, right):
            for by in _levels(right, found, node):
                found.groups.append(Group(expanded(left, others), by, bars == "|", node))
        case Call("offset", (inner,)):
            found.offsets.append(inner)
        case Call(name) if name in SERIES:
            found.series.append(node)
        case _:
            for term in _terms(node, others):
                if not any(set(term) == set(one) for one in found.terms):
                    found.terms.append(term)


def _leave(node: Node, others: Sequence[str], found: Sum) -> None:
    """`- 1` and `- x`."""
    match node:
        case Number(value) if value in (0.0, 1.0):
            found.intercept = value == 0.0
        case _:
            gone = [set(term) for term in _terms(node, others)]
            found.terms = [term for term in found.terms if set(term) not in gone]


def _terms(node: Node, others: Sequence[str]) -> list[Term]:
    """The products that a tree without groups is a sum of."""
    match node:
        case Name("."):
            return [(Name(one),) for one in others]
        case Name() | Call():
            return [(node,)]
        case Binary("+", left, right):
            return _once([*_terms(left, others), *_terms(right, others)])
        case Binary("-", left, right):
            gone = [set(term) for term in _terms(right, others)]
            return [term for term in _terms(left, others) if set(term) not in gone]
        case Binary(":", left, right):
            return _products(_terms(left, others), _terms(right, others))
        case Binary("*", left, right):
            first, second = _terms(left, others), _terms(right, others)
            return _once([*first, *second, *_products(first, second)])
        case Binary("/", left, right):
            first, second = _terms(left, others), _terms(right, others)
            inner = tuple(dict.fromkeys(atom for term in first for atom in term))
            return _once([*first, *_products([inner], second)])
        case Binary("^", left, Number(power)) if power == int(power) and 1 <= power <= 9:
            base = _terms(left, others)
            found = base
            for _ in range(int(power) - 1):
                found = _once([*found, *_products(found, base)])
            return found
        case _:
            pass
    hint = "; what is computed stands in I(…)" if names(node) else ""
    raise WrongFormula(
        f"`{written(node)}` is no term{hint}: terms are columns, functions of them, 0, 1 and (… | group)"
    )


def _products(first: Sequence[Term], second: Sequence[Term]) -> list[Term]:
    return _once([tuple(dict.fromkeys((*one, *other))) for one in first for other in second])


def _once(terms: Sequence[Term]) -> list[Term]:
    found: list[Term] = []
    for term in terms:
        if not any(set(term) == set(one) for one in found):
            found.append(term)
    return found


def _levels(node: Node, found: Sum, whole: Node) -> list[tuple[str, ...]]:
    """What stands behind the bar: a column, `g:h`, or `g/h`, which is g and g:h."""
    match node:
        case Name(text):
            return [(text,)]
        case Call("gr", (Name(text), *_)):
            return [(text,)]
        case Binary(":", left, right):
            return [(*one, *other) for one in _levels(left, found, whole) for other in _levels(right, found, whole)]
        case Binary("+", left, right):
            return [*_levels(left, found, whole), *_levels(right, found, whole)]
        case Binary("/", left, right):
            outer, inner = _levels(left, found, whole), _levels(right, found, whole)
            return [*outer, *((*outer[-1], *one) for one in inner)]
        case _:
            found.unsaid.append((whole, f"`{written(node)}` behind a bar has no program yet"))
            return []
