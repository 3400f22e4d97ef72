"""Random numbers: numpy's generators, asked as torch's are."""

from __future__ import annotations

import contextlib
from collections.abc import Generator as Stream
from typing import Any

import numpy as np

from qvr_core.arrays.eager import array
from qvr_core.arrays.graph import Array
from qvr_core.arrays.listing import listed

__all__ = [
    "Generator", "_standard_gamma", "bernoulli", "binomial", "default_generator", "initial_seed", "manual_seed",
    "multinomial", "normal", "poisson", "rand", "randint", "randn", "randperm", "seed",
]  # fmt: skip


class Generator:
    """A stream of random numbers."""

    def __init__(self, device: Any = "cpu") -> None:
        self.manual_seed(np.random.SeedSequence().entropy)

    def manual_seed(self, seed: Any) -> Generator:
        """Begin anew."""
        self._seed = int(seed)
        self.numpy = np.random.Generator(np.random.PCG64(self._seed % 2**128))
        return self

    def initial_seed(self) -> int:
        """What it began with."""
        return self._seed

    def seed(self) -> int:
        """Begin anew with a seed of chance."""
        self.manual_seed(np.random.SeedSequence().entropy)
        return self._seed

    def get_state(self) -> Any:
        """Where it is."""
        return self.numpy.bit_generator.state

    def set_state(self, state: Any) -> Generator:
        """Go on from where another was."""
        self.numpy.bit_generator.state = state
        return self

    def clone_state(self) -> Generator:
        """A generator that goes on as this one does."""
        return Generator().manual_seed(self._seed).set_state(self.get_state())


default_generator = Generator()


def manual_seed(seed: Any) -> Generator:
    """Begin the global stream anew."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Begin the global stream anew by chance."""
    return default_generator.seed()


def initial_seed() -> int:
    """What the global stream began with."""
    return default_generator.initial_seed()


@contextlib.contextmanager
def fork_rng(devices: Any = (), enabled: bool = True, **keywords: Any) -> Stream[None]:
    """What is drawn inside changes nothing outside."""
    kept = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(kept)


def _own(generator: Generator | None) -> np.random.Generator:
    return (generator or default_generator).numpy


def _sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(int(n) for n in (size if not size or isinstance(size[0], int | np.integer) else size[0]))


def randn(*size: Any, generator: Generator | None = None, **keywords: Any) -> Any:
    """Standard normal draws."""
    return array(_own(generator).standard_normal(_sizes(size or (keywords.get("size", ()),))))


def rand(*size: Any, generator: Generator | None = None, **keywords: Any) -> Any:
    """Uniform draws from [0, 1)."""
    return array(_own(generator).random(_sizes(size or (keywords.get("size", ()),))))


def randint(*given: Any, generator: Generator | None = None, **keywords: Any) -> Any:
    """Whole numbers from [low, high), of a size."""
    *bounds, size = given if "size" not in keywords else (*given, keywords["size"])
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds
    return array(_own(generator).integers(int(low), int(high), tuple(size)))


def randperm(n: int, *, generator: Generator | None = None, **keywords: Any) -> Any:
    """The numbers below n in an order of chance."""
    return array(_own(generator).permutation(int(n)))


def normal(mean: Any, std: Any, *, generator: Generator | None = None) -> Any:
    """Normal draws."""
    return array(_own(generator).normal(_data(mean), _data(std)))


def _data(x: Any) -> Any:
    return x.data if isinstance(x, Array) else x


def bernoulli(probs: Any, *, generator: Generator | None = None) -> Any:
    """0 or 1, in the kind of numbers that the probabilities have."""
    p = _data(probs)
    return array((_own(generator).random(np.shape(p)) < p).astype(np.float64))


def poisson(rate: Any, generator: Generator | None = None) -> Any:
    """Poisson counts as real numbers; NaN where the rate is none, and beyond 2⁶² its normal limit."""
    rates = np.asarray(_data(rate), np.float64)
    stream = _own(generator)
    large = rates > 1e18
    with np.errstate(all="ignore"):
        few = stream.poisson(np.where(large | ~(rates >= 0.0), 0.0, rates)).astype(np.float64)
        many = np.floor(rates + np.sqrt(np.where(large, rates, 0.0)) * stream.standard_normal(rates.shape))
    return array(np.where(rates >= 0.0, np.where(large, many, few), np.nan))


def binomial(count: Any, probs: Any, generator: Generator | None = None) -> Any:
    """Binomial counts as real numbers."""
    n, p = np.broadcast_arrays(np.asarray(_data(count), np.float64), np.asarray(_data(probs), np.float64))
    sound = (n >= 0.0) & (p >= 0.0) & (p <= 1.0)
    drawn = _own(generator).binomial(np.where(sound, n, 0.0).astype(np.int64), np.where(sound, p, 0.0))
    return array(np.where(sound, drawn.astype(np.float64), np.nan))


def _standard_gamma(concentration: Any, generator: Generator | None = None) -> Any:
    """Gamma(concentration, 1) draws."""
    alpha = np.asarray(_data(concentration), np.float64)
    sound = alpha > 0.0
    drawn = _own(generator).standard_gamma(np.where(sound, alpha, 1.0))
    return array(np.where(sound, drawn, np.nan))


def multinomial(probs: Any, count: int, replacement: bool = False, *, generator: Generator | None = None) -> Any:
    """Places drawn with these weights, (…, count)."""
    weights = np.asarray(_data(probs), np.float64)
    flat = weights.reshape(-1, weights.shape[-1])
    stream = _own(generator)
    drawn = [stream.choice(flat.shape[1], count, replacement, row / row.sum()) for row in flat]
    return array(np.array(drawn, np.int64).reshape(*weights.shape[:-1], count))


@listed("uniform_")
def uniform_(x: Any, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None) -> Any:
    """Uniform draws put in place."""
    x.data[...] = _own(generator).uniform(low, high, x.data.shape)
    return x


@listed("normal_")
def normal_(x: Any, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Any:
    """Normal draws put in place."""
    x.data[...] = _own(generator).normal(mean, std, x.data.shape)
    return x
