"""What a transformation keeps: that it leads from weights to weights, and as a homomorphism keeps how they compose."""

from __future__ import annotations

import math
from collections.abc import Callable

from qvr_core.operations.intervals import Interval
from qvr_core.semantics.algebras.laws import shown, told_of
from qvr_core.semantics.algebras.search import agree, counterexample, of_two, outside
from qvr_core.semantics.algebras.weights import Weights, written_in

Map = Callable[[float], float]
EncloseMap = Callable[[Interval], Interval]


def leaves(map_: Map, enclose: EncloseMap, source: Weights, target: Weights, near: frozenset[float]) -> str | None:
    """What is wrong with a map that takes a weight to what is none, in words; None where none is found."""
    region = None if source.whole else source.region
    found = outside(
        map_, enclose, target.holds, Interval(target.low, target.high), _points(source, target, near), region
    )
    if found is None:
        return None
    value = shown(found[1])
    return (
        f"the weights of `{target.name}` are {target.words}: map({shown(found[0])}) is {value}"
        + ("" if value == "no number" else ", which is none")
    )  # fmt: skip


def not_kept(map_: Map, enclose: EncloseMap, source: Weights, target: Weights, near: frozenset[float]) -> str | None:
    """What a map does not keep of two compositions, with the weights at which it does not; None where it keeps all."""
    for word, given, wanted in (("unit", source.unit, target.unit), ("zero", source.zero, target.zero)):
        if not agree(map_(given), wanted):
            return f"`map` does not keep `{word}`: map({shown(given)}) is {shown(map_(given))}, not {shown(wanted)}"
    points = _points(source, target, near)

    def of_weight(value: float, side: Map) -> float:
        # two probabilities may add up to more than one: nothing is claimed of what is no weight
        return side(value) if source.holds(value) else math.nan

    laws = (
        (
            "tensor_op", ("map(tensor_op({0}, {1}))", "tensor_op(map({0}), map({1}))"),
            of_two(lambda a, b: of_weight(source.times(a, b), map_),
                lambda a, b: of_weight(source.times(a, b), lambda _: target.times(map_(a), map_(b))),
                (lambda a, b: enclose(source.enclose_times(a, b)),
                 lambda a, b: target.enclose_times(enclose(a), enclose(b)))),
        ),
        (
            "join", ("map(join([{0}, {1}]))", "join([map({0}), map({1})])"),
            of_two(lambda a, b: of_weight(source.join((a, b)), map_),
                lambda a, b: of_weight(source.join((a, b)), lambda _: target.join((map_(a), map_(b)))),
                (lambda a, b: enclose(source.enclose_join((a, b))),
                 lambda a, b: target.enclose_join((enclose(a), enclose(b))))),
        ),
    )  # fmt: skip
    for word, sides, law in laws:
        found = counterexample(law, points, None if source.whole else source.region)
        if found is not None:
            return told_of(f"`map` does not keep `{word}`", sides, found)
    return None


def _points(source: Weights, target: Weights, near: frozenset[float]) -> tuple[float, ...]:
    return source.points(near | written_in(source) | written_in(target))
