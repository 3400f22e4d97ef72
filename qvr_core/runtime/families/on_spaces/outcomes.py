"""Families of y where a function of y has a family: `observe log(y)[i : Row] <- Normal(…)`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.families.bijectors import Support
from qvr_core.runtime.families.cumulative.quantiles import truncated_draw
from qvr_core.runtime.families.cumulative.tails import Tails
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import Params
from qvr_core.runtime.families.random_draws import Shape
from qvr_core.semantics.language.outcomes import ARITHMETIC, FUNCTIONS, NEGATE, computed, reach


@dataclass(frozen=True, slots=True)
class _Function:
    """A function on tensors, log of its derivative at a value, and its inverse."""

    of: Callable[[Tensor], Tensor]
    log_slope: Callable[[Tensor], Tensor]
    inverse: Callable[[Tensor], Tensor]


def _logit(y: Tensor) -> Tensor:
    return y.log() - arrays.log1p(-y)


_FUNCTIONS: Mapping[str, _Function] = {
    "log": _Function(lambda y: y.log(), lambda y: -y.log(), lambda x: x.exp()),
    "exp": _Function(lambda y: y.exp(), lambda y: y, lambda x: x.log()),
    "sqrt": _Function(lambda y: y.sqrt(), lambda y: -0.5 * y.log() - math.log(2.0), lambda x: x * x),
    "logit": _Function(_logit, lambda y: -y.log() - arrays.log1p(-y), arrays.sigmoid),
    "sigmoid": _Function(arrays.sigmoid, lambda y: -y.abs() - 2.0 * arrays.log1p((-y.abs()).exp()), _logit),
    "log1p": _Function(arrays.log1p, lambda y: -arrays.log1p(y), arrays.expm1),
    "expm1": _Function(arrays.expm1, lambda y: y, arrays.log1p),
}
_AFFINE: Mapping[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "plus": (lambda y, by: y + by, lambda x, by: x - by),
    "minus": (lambda y, by: y - by, lambda x, by: x + by),
    "times": (lambda y, by: y * by, lambda x, by: x / by),
    "over": (lambda y, by: y / by, lambda x, by: x * by),
}


class _Moved(NamedTuple):
    """The function of y: its value where it has one (`ok`; None: everywhere), log |derivative|, whether it falls
    (None: nowhere, True: everywhere), and beyond which end of its values y lies where it has none (−1, 1)."""

    value: Tensor
    log_slope: Tensor
    ok: Tensor | None
    falls: Tensor | bool
    beyond: Tensor | None


@dataclass(frozen=True, slots=True)
class OutcomeFamily(RuntimeFamily):
    """The family of y; its parameters are those of `whole`, the family of the function, then the operations' own."""

    whole: RuntimeFamily | None = None
    operations: tuple[str, ...] = ()

    @property
    def ranks(self) -> tuple[int, ...]:
        """Those of the runtime's parameters."""
        return (*_whole(self).ranks, *(0 for name in self.operations if name in ARITHMETIC))

    def canonical(self, arguments: Mapping[str, Tensor]) -> Params:
        """The family's own parameters in its form, then the numbers of the operations."""
        names = [one.name for one in self.facts.parameters if one.name.startswith("by ")]
        made = _whole(self).canonical({name: value for name, value in arguments.items() if name not in names})
        like = next((one for one in made if one.is_floating_point()), None)
        by = [arguments[name] for name in names]
        return (*made, *(one if like is None or one.is_floating_point() else one.to(like.dtype) for one in by))

    def support(self, parameters: Params) -> Support:
        """Where y lies."""
        low, high = self.facts.support.low, self.facts.support.high
        return Support("real") if low is None and high is None else Support("bounded", low, high)


def _whole(family: OutcomeFamily) -> RuntimeFamily:
    assert family.whole is not None
    return family.whole


def _moved(operations: tuple[str, ...], y: Tensor, by: Params) -> _Moved:
    numbers = iter(by)
    value, slope = y, arrays.zeros_like(y)
    ok: Tensor | None = None
    beyond: Tensor | None = None
    falls: Tensor | bool = False
    for name in operations:
        if name in ARITHMETIC:
            number = next(numbers)
            value = _AFFINE[name][0](value, number)
            if name in ("times", "over"):
                size = number.abs().log()
                slope = slope + size if name == "times" else slope - size
                falls = _other(falls, number < 0)
                beyond = None if beyond is None else arrays.where(number < 0, -beyond, beyond)
        elif name == NEGATE:
            value, falls = -value, _other(falls, True)
            beyond = None if beyond is None else -beyond
        else:
            low, high = FUNCTIONS[name].domain
            function = _FUNCTIONS[name]
            # values that have been none stay within any domain
            under, over = value <= low, value >= high
            if math.isfinite(low) or math.isfinite(high):
                out = under | over
                end = arrays.where(under, -1.0, arrays.where(over, 1.0, 0.0))
                beyond = end if beyond is None else arrays.where(beyond != 0, beyond, end)
                ok = ~out if ok is None else ok & ~out
                value = arrays.where(out, 0.5 if math.isfinite(high) else low + 1.0, value)
            slope = slope + function.log_slope(value)
            value = function.of(value)
    return _Moved(value, slope, ok, falls, beyond)


def _other(falls: Tensor | bool, turns: Tensor | bool) -> Tensor | bool:
    """Whether it falls behind an operation that may turn the order."""
    if turns is True:
        return not falls if isinstance(falls, bool) else ~falls
    if isinstance(falls, bool):
        assert not isinstance(turns, bool)
        return ~turns if falls else turns
    return falls != turns


def _inverse(operations: tuple[str, ...], x: Tensor, by: Params) -> Tensor:
    numbers = list(by)
    for name in reversed(operations):
        if name in ARITHMETIC:
            x = _AFFINE[name][1](x, numbers.pop())
        else:
            x = -x if name == NEGATE else _FUNCTIONS[name].inverse(x)
    return x


def _image(operations: tuple[str, ...], by: Params, like: Tensor) -> tuple[Tensor, Tensor]:
    """Between which numbers the values of the function lie."""
    numbers = iter(by)
    low, high = (arrays.as_tensor(end, dtype=like.dtype) for end in (-math.inf, math.inf))
    for name in operations:
        if name in FUNCTIONS:
            low, high = (arrays.as_tensor(end, dtype=like.dtype) for end in FUNCTIONS[name].range)
            continue
        if name == NEGATE:
            low, high = -high, -low
            continue
        number = next(numbers)
        ends = [_AFFINE[name][0](end, number) for end in (low, high)]
        low, high = arrays.minimum(*ends), arrays.maximum(*ends)
    return low, high


def outcome_family(whole: RuntimeFamily, operations: tuple[str, ...]) -> RuntimeFamily:
    """The family of y where its function by `operations`, from y outwards, is from `whole`, one of real numbers."""
    facts = computed(operations, whole.facts)
    own = len(whole.ranks)
    narrow = reach(operations, whole.facts.support.low, whole.facts.support.high).narrow

    def log_prob(value: Tensor, *parameters: Tensor) -> Tensor:
        value = value if value.is_floating_point() else value.to(parameters[0].dtype)
        moved = _moved(operations, value, parameters[own:])
        density = whole.log_prob(moved.value, *parameters[:own]) + moved.log_slope
        return density if moved.ok is None else arrays.where(moved.ok, density, -math.inf)

    def transform(noise: Tensor, *parameters: Tensor) -> Tensor:
        if not narrow:
            return _inverse(operations, whole.value_of(noise, parameters[:own]), parameters[own:])
        low, high = _image(operations, parameters[own:], noise)
        drawn = truncated_draw(whole, noise, low, high, parameters[:own])
        return _inverse(operations, drawn, parameters[own:])

    def draw(shape: Shape, generator: Generator | None, *parameters: Tensor) -> Tensor:
        assert whole.draw is not None
        return _inverse(operations, whole.draw(shape, generator, *parameters[:own]), parameters[own:])

    def tails(value: Tensor, *parameters: Tensor) -> Tails:
        moved = _moved(operations, value, parameters[own:])
        below, above = whole.log_tails(moved.value, *parameters[:own])
        if moved.beyond is not None:
            none, all_of_it = (arrays.full_like(below, end) for end in (-math.inf, 0.0))
            under, over = moved.beyond < 0, moved.beyond > 0
            below, above = (
                arrays.where(under, none, arrays.where(over, all_of_it, below)),
                arrays.where(under, all_of_it, arrays.where(over, none, above)),
            )
        if isinstance(moved.falls, bool):
            return (above, below) if moved.falls else (below, above)
        return arrays.where(moved.falls, above, below), arrays.where(moved.falls, below, above)

    by_value = whole.draw is not None and not narrow
    return OutcomeFamily(
        facts,
        log_prob,
        transform=None if by_value else transform,
        draw=draw if by_value else None,
        reparameterised=whole.reparameterised and not narrow,
        conversions=whole.conversions,
        twice=whole.twice,
        tails=None if whole.tails is None else tails,
        whole=whole,
        operations=operations,
    )
