"""The laws that a composition claims `as algebra`: associative, with a unit and a zero, and distributive.

They are what makes `>>` a composition: (f >> g) >> h is f >> (g >> h) by the first and the last, and `identity` leaves
an arrow as it is by those of unit and zero (Goodman 1999, Semiring parsing, section 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from qvr_core.operations.intervals import Interval
from qvr_core.semantics.algebras.search import Counterexample, Law, counterexample, of_one, of_three, of_two
from qvr_core.semantics.algebras.weights import Weights, written_in
from qvr_core.syntax.immutable import immutable


@immutable
class Claim:
    """A law of a composition.  `rule` is the line that is told where it does not hold; `sides` are its two sides in
    words, with `{0}`, `{1}` … for the weights; `kind` is what a composition without it still is."""

    rule: str
    says: str
    sides: tuple[str, str]
    law: Law
    kind: str = "rule"


@immutable
class Broken:
    """A law that does not hold, where it is told, and what the composition still is."""

    rule: str
    text: str
    kind: str


def broken_law(weights: Weights) -> Broken | None:
    """The first law of an algebra that does not hold: the others may fail for the same reason."""
    points, region = weights.points(written_in(weights)), None if weights.whole else weights.region
    first: Broken | None = None
    for claim in _claims(weights):
        if first is not None and claim.kind == first.kind:
            continue
        found = counterexample(claim.law, points, region)
        if found is not None:
            text = told_of(claim.says, claim.sides, found) if first is None else first.text
            first = Broken(claim.rule if first is None else first.rule, text, claim.kind)
            if claim.kind == "rule":
                break
    return first


def told_of(says: str, sides: tuple[str, str], found: Counterexample) -> str:
    """A law with the weights at which it does not hold, and both results."""
    left, right = (side.format(*map(shown, found.weights)) for side in sides)
    if right == shown(found.right):
        return f"{says}: {left} is {shown(found.left)}, not {right}"
    return f"{says}: {left} is {shown(found.left)}, but {right} is {shown(found.right)}"


def shown(value: float) -> str:
    """A weight as it is written."""
    return "no number" if math.isnan(value) else f"{value + 0.0:.6g}".replace("inf", "∞")


def _claims(w: Weights) -> Iterator[Claim]:
    times, join, unit, zero = w.times, w.join, w.unit, w.zero
    both, many = w.enclose_times, w.enclose_join
    one, none = Interval(unit, unit), Interval(zero, zero)
    yield Claim(
        "tensor_op", "`tensor_op` is not associative",
        ("tensor_op(tensor_op({0}, {1}), {2})", "tensor_op({0}, tensor_op({1}, {2}))"),
        of_three(lambda a, b, c: times(times(a, b), c), lambda a, b, c: times(a, times(b, c)),
            (lambda a, b, c: both(both(a, b), c), lambda a, b, c: both(a, both(b, c)))),
    )  # fmt: skip
    yield Claim(
        "unit", "`unit` is none of `tensor_op`", ("tensor_op(unit, {0})", "{0}"),
        of_one(lambda a: times(unit, a), _itself, (lambda a: both(one, a), _same)), "semigroupoid",
    )  # fmt: skip
    yield Claim(
        "unit", "`unit` is none of `tensor_op`", ("tensor_op({0}, unit)", "{0}"),
        of_one(lambda a: times(a, unit), _itself, (lambda a: both(a, one), _same)), "semigroupoid",
    )  # fmt: skip
    yield Claim(
        "join", "`join` changes what is alone", ("join([{0}])", "{0}"),
        of_one(lambda a: join((a,)), _itself, (lambda a: many((a,)), _same)),
    )  # fmt: skip
    yield Claim(
        "join", "`join` depends on the order", ("join([{0}, {1}])", "join([{1}, {0}])"),
        of_two(lambda a, b: join((a, b)), lambda a, b: join((b, a))),
    )  # fmt: skip
    yield Claim(
        "join", "`join` is not associative", ("join([join([{0}, {1}]), {2}])", "join([{0}, {1}, {2}])"),
        of_three(lambda a, b, c: join((join((a, b)), c)), lambda a, b, c: join((a, b, c)),
            (lambda a, b, c: many((many((a, b)), c)), lambda a, b, c: many((a, b, c)))),
    )  # fmt: skip
    yield Claim(
        "zero", "`zero` is none of `join`", ("join([{0}, zero])", "{0}"),
        of_one(lambda a: join((a, zero)), _itself, (lambda a: many((a, none)), _same)), "semigroupoid",
    )  # fmt: skip
    # a large number may stand for infinity: what it combines to must be left out of a join, and need not be it
    yield Claim(
        "zero", "what `zero` combines to is not left out by `join`", ("join([{0}, tensor_op({1}, zero)])", "{0}"),
        of_two(lambda a, b: join((a, times(b, zero))), _first), "semigroupoid",
    )  # fmt: skip
    yield Claim(
        "zero", "what `zero` combines to is not left out by `join`", ("join([{0}, tensor_op(zero, {1})])", "{0}"),
        of_two(lambda a, b: join((a, times(zero, b))), _first), "semigroupoid",
    )  # fmt: skip
    yield Claim(
        "join", "`tensor_op` does not distribute over `join`",
        ("tensor_op({0}, join([{1}, {2}]))", "join([tensor_op({0}, {1}), tensor_op({0}, {2})])"),
        of_three(lambda a, b, c: times(a, join((b, c))), lambda a, b, c: join((times(a, b), times(a, c))),
            (lambda a, b, c: both(a, many((b, c))), lambda a, b, c: many((both(a, b), both(a, c))))),
    )  # fmt: skip
    yield Claim(
        "join", "`tensor_op` does not distribute over `join`",
        ("tensor_op(join([{1}, {2}]), {0})", "join([tensor_op({1}, {0}), tensor_op({2}, {0})])"),
        of_three(lambda a, b, c: times(join((b, c)), a), lambda a, b, c: join((times(b, a), times(c, a))),
            (lambda a, b, c: both(many((b, c)), a), lambda a, b, c: many((both(b, a), both(c, a))))),
    )  # fmt: skip


def _itself(a: float) -> float:
    return a


def _first(a: float, _: float) -> float:
    return a


_same: Callable[[Interval], Interval] = lambda a: a  # noqa: E731
