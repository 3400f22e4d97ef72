"""Draws, by Python's generator."""

from __future__ import annotations

import copy
import functools
import math
import random
from collections.abc import Callable
from typing import Any

from qvr_core.arrays.shapes import broadcast
from qvr_core.arrays.without_numpy.array import array, asarray, ndarray, spread
from qvr_core.arrays.without_numpy.kinds import size_of


class SeedSequence:
    """Where seeds come from."""

    def __init__(self, entropy: int | None = None) -> None:
        self.entropy = random.SystemRandom().getrandbits(128) if entropy is None else entropy


class PCG64:
    """A stream of bits; here Python's, under the name of numpy's."""

    def __init__(self, seed: int) -> None:
        self.own = random.Random(seed)

    @property
    def state(self) -> Any:
        return self.own.getstate()

    @state.setter
    def state(self, state: Any) -> None:
        self.own.setstate(copy.deepcopy(state))


class Generator:
    """Draws from a stream."""

    def __init__(self, bits: PCG64) -> None:
        self.bit_generator = bits
        self.own = bits.own

    def _drawn(self, size: Any, of: Callable[[], Any], kind: str = "f") -> ndarray:
        shape = (size,) if isinstance(size, int) else tuple(size or ())
        return ndarray([of() for _ in range(size_of(shape))], shape, kind)

    def _each(self, of: Callable[..., Any], kind: str, *given: Any, size: Any = None) -> ndarray:
        own = [asarray(one) for one in given]
        shape = broadcast([*(one.shape for one in own), *([tuple(size)] if size is not None else [])])
        return ndarray([of(*values) for values in zip(*(spread(one, shape).data for one in own), strict=True)], shape,
                       kind)  # fmt: skip

    def standard_normal(self, size: Any = None) -> ndarray:
        return self._drawn(size, lambda: self.own.gauss(0.0, 1.0))

    def random(self, size: Any = None) -> ndarray:
        return self._drawn(size, self.own.random)

    def integers(self, low: int, high: int, size: Any = None) -> ndarray:
        return self._drawn(size, lambda: self.own.randrange(low, high), "i")

    def permutation(self, count: int) -> ndarray:
        order = list(range(count))
        self.own.shuffle(order)
        return array(order, int)

    def normal(self, mean: Any = 0.0, sd: Any = 1.0, size: Any = None) -> ndarray:
        return self._each(self.own.gauss, "f", mean, sd, size=size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> ndarray:
        return self._each(self.own.uniform, "f", low, high, size=size)

    def standard_gamma(self, shape: Any, size: Any = None) -> ndarray:
        return self._each(functools.partial(self.own.gammavariate, beta=1.0), "f", shape, size=size)

    def poisson(self, rate: Any, size: Any = None) -> ndarray:
        return self._each(self._poisson, "i", rate, size=size)

    def _poisson(self, rate: float) -> int:
        # a Poisson count is the sum of two; a Gamma time says how many have come by it (Ahrens & Dieter 1974)
        count = 0
        while rate > 30.0:
            part = int(0.875 * rate)
            time = self.own.gammavariate(part, 1.0)
            if time > rate:
                return count + self._binomial(part - 1, rate / time)
            count, rate = count + part, rate - time
        total, limit = 1.0, math.exp(-rate)
        while (total := total * self.own.random()) > limit:
            count += 1
        return count

    def binomial(self, count: Any, p: Any, size: Any = None) -> ndarray:
        return self._each(self._binomial, "i", count, p, size=size)

    def _binomial(self, count: int, p: float) -> int:
        return sum(self.own.random() < p for _ in range(count))

    def choice(self, count: int, size: int, replace: bool = True, p: Any = None) -> ndarray:
        weights = [1.0] * count if p is None else list(asarray(p).data)
        found: list[int] = []
        for _ in range(size):
            (place,) = self.own.choices(range(count), weights)
            found.append(place)
            if not replace:
                weights[place] = 0.0
        return array(found, int)


def default_rng(seed: int | None = None) -> Generator:
    """A generator of its own."""
    return Generator(PCG64(SeedSequence().entropy if seed is None else seed))
