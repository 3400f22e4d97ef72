"""Starts for chains by Pathfinder (Zhang, Carpenter, Gelman & Vehtari 2022).

From each chain's usual start an optimiser climbs the log density; along its way the curvature that it has met gives
Normal approximations, of which the one with the largest evidence bound is kept.  Draws of all paths' approximations are
resampled by their importance weights, one for each chain.
"""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qvr_core.inference.mcmc.mass import Array

Density = Callable[[Array], tuple[float, Array]]
"""Log density and gradient at a position (D,)."""
HISTORY, MOST_STEPS = 6, 1000
"""Pairs that the curvature is read off, and steps of the optimiser."""
BOUND_DRAWS, POOL_DRAWS = 5, 100
"""Draws that estimate a bound, and those of a path that are resampled."""
ARMIJO, WOLFE, MOST_TRIALS = 1e-4, 0.9, 40
RELATIVE = 1e-10
"""Gain of a step, relative to the density, below which the optimiser has arrived."""


class Ended(Exception):
    """Raised by a density that shall not be asked any more: what was found on the way stands."""


class Counted:
    """A density that counts its evaluations."""

    def __init__(self, density: Density) -> None:
        self.density, self.calls = density, 0

    def __call__(self, q: Array) -> tuple[float, Array]:
        self.calls += 1
        return self.density(q)


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the way: position (D,), log density, gradient."""

    q: Array
    value: float
    gradient: Array


@dataclass(frozen=True, slots=True)
class Normal:
    """N(mean, Σ), Σ = A^½ (I + Q (L Lᵀ − I) Qᵀ) A^½ with diagonal A, orthonormal columns Q and a factor L."""

    mean: Array
    root: Array
    """The diagonal of A^½."""
    columns: Array
    factor: Array

    @property
    def covariance(self) -> Array:
        """Σ, (D, D)."""
        inside = self.factor @ self.factor.T - np.eye(len(self.factor))
        spread = np.eye(len(self.mean)) + self.columns @ inside @ self.columns.T
        return self.root[:, None] * spread * self.root

    def draw(self, count: int, generator: np.random.Generator) -> tuple[Array, Array]:
        """Draws (count, D) and their log densities (count,)."""
        u = generator.standard_normal((count, len(self.mean)))
        inside = u @ self.columns
        moved = u + (inside @ self.factor.T - inside) @ self.columns.T
        determinant = 2.0 * float(np.log(self.root).sum() + np.log(np.diag(self.factor)).sum())
        width = len(self.mean)
        log_q = -0.5 * (np.square(u).sum(1) + determinant + width * math.log(2.0 * math.pi))
        return self.mean + moved * self.root, log_q


def starts(density: Density, begins: Sequence[Array], generators: Sequence[np.random.Generator]) -> list[Array] | None:
    """A start for each chain, from as many paths; None where no path has found a place of finite density.

    The numbers of a path come from its own generator, those of the resampling from the first.
    """
    pools = [path(density, q, generator) for q, generator in zip(begins, generators, strict=True)]
    drawn = resampled(pools, len(begins), generators[0])
    return None if drawn is None else list(drawn)


def resampled(pools: Sequence[tuple[Array, Array]], count: int, generator: np.random.Generator) -> Array | None:
    """Draws (count, D) of what paths have found, by their importance weights; None where fewer have any."""
    drawn = np.concatenate([positions for positions, _ in pools])
    log_weights = np.concatenate([weights for _, weights in pools])
    good = np.isfinite(log_weights)
    if good.sum() < count:
        return None
    drawn, log_weights = drawn[good], truncated(log_weights[good])
    # exponential waiting times at rates that are the weights: the first come are drawn without replacement
    waits = np.log(generator.standard_exponential(len(log_weights))) - log_weights
    return drawn[np.argsort(waits)[:count]]


def truncated(log_weights: Array) -> Array:
    """Log weights, none larger than the mean weight times √n (Ionides 2008)."""
    count = len(log_weights)
    high = float(log_weights.max())
    mean = high + math.log(float(np.exp(log_weights - high).mean()))
    return np.minimum(log_weights, mean + 0.5 * math.log(count))


def path(
    density: Density,
    q: Array,
    generator: np.random.Generator,
    draws: int = POOL_DRAWS,
    on_the_way: Density | None = None,
) -> tuple[Array, Array]:
    """Draws (draws, D) of the best approximation on the way up from a start, and log p − log q of each; none where
    there is no approximation with a finite bound.  The way ends where `on_the_way` raises `Ended`."""
    best = best_normal(on_the_way or density, q, generator)
    if best is None:
        return np.zeros((0, len(q))), np.zeros(0)
    return _log_weights(density, best, draws, generator)


def best_normal(density: Density, q: Array, generator: np.random.Generator) -> Normal | None:
    """The approximation with the largest bound on the way up from a start; None where none has a finite one.  The way
    ends where the density raises `Ended`."""
    best, best_bound = None, -math.inf
    with contextlib.suppress(Ended):
        for normal in approximations(climb(density, q)):
            bound = float(_log_weights(density, normal, BOUND_DRAWS, generator)[1].mean())
            if bound > best_bound:
                best, best_bound = normal, bound
    return best


def _log_weights(density: Density, normal: Normal, count: int, generator: np.random.Generator) -> tuple[Array, Array]:
    positions, log_q = normal.draw(count, generator)
    log_p = np.array([density(position)[0] for position in positions])
    return positions, np.where(np.isnan(log_p), -np.inf, log_p) - log_q


def climb(density: Density, q: Array) -> Iterator[Point]:
    """The way of L-BFGS (Nocedal & Wright 2006, algorithm 7.5) from a start to where it no longer rises."""
    here = Point(q, *density(q))
    pairs = deque[tuple[Array, Array]](maxlen=HISTORY)
    yield here
    for _ in range(MOST_STEPS):
        direction = _direction(here.gradient, pairs)
        if float(direction @ here.gradient) <= 0.0:
            direction = here.gradient
        first = 1.0 if pairs else 1.0 / max(1.0, float(np.linalg.norm(here.gradient)))
        new = _searched(density, here, direction, first)
        if new is None:
            return
        yield new
        step, change = new.q - here.q, here.gradient - new.gradient
        if _curved(step, change):
            pairs.append((step, change))
        if new.value - here.value <= RELATIVE * max(1.0, abs(new.value)):
            return
        here = new


def _curved(step: Array, change: Array) -> bool:
    """Whether the gradient has changed as that of a function that is curved downwards."""
    return float(step @ change) > 1e-12 * float(change @ change)


def _direction(gradient: Array, pairs: Sequence[tuple[Array, Array]]) -> Array:
    """The inverse Hessian of the pairs times the gradient: the two loops."""
    found, shares = gradient.copy(), list[float]()
    for step, change in reversed(pairs):
        share = float(step @ found) / float(step @ change)
        shares.append(share)
        found = found - share * change
    if pairs:
        step, change = pairs[-1]
        found = found * (float(step @ change) / float(change @ change))
    for (step, change), share in zip(pairs, reversed(shares), strict=True):
        found = found + (share - float(change @ found) / float(step @ change)) * step
    return found


def _searched(density: Density, here: Point, direction: Array, size: float) -> Point | None:
    """A point along a direction that meets the weak Wolfe conditions, by bisection (Lewis & Overton 2013); the best
    that rises where none is found; None where nothing rises."""
    slope = float(direction @ here.gradient)
    low, high, best = 0.0, math.inf, None
    for _ in range(MOST_TRIALS):
        q = here.q + size * direction
        value, gradient = density(q)
        rises = value >= here.value + ARMIJO * size * slope and bool(np.isfinite(gradient).all())
        if not rises:
            high = size
        else:
            best = Point(q, value, gradient)
            if float(direction @ gradient) <= WOLFE * slope:
                return best
            low = size
        size = 2.0 * low if math.isinf(high) else 0.5 * (low + high)
    return best


def approximations(way: Iterable[Point]) -> Iterator[Normal]:
    """A Normal at each point of a way but the first: mean and covariance of a Newton step with the inverse Hessian that
    the last pairs give, on a diagonal that is learned on the way (Gilbert & Lemaréchal 1989)."""
    diagonal: Array | None = None
    pairs = deque[tuple[Array, Array]](maxlen=HISTORY)
    for before, here in pairwise(way):
        diagonal = np.ones_like(before.q) if diagonal is None else diagonal
        step, change = here.q - before.q, before.gradient - here.gradient
        if _curved(step, change):
            diagonal = _learned(diagonal, step, change)
            pairs.append((step, change))
        normal = _normal(here, diagonal, pairs)
        if normal is not None:
            yield normal


def _learned(diagonal: Array, step: Array, change: Array) -> Array:
    """The diagonal of an inverse Hessian after one more pair."""
    across, along = float(change @ (diagonal * change)), float(change @ step)
    inside = float(step @ (step / diagonal))
    inverse = across / (along * diagonal) + change**2 / along - across * (step / diagonal) ** 2 / (along * inside)
    # rounding must not make it negative
    return 1.0 / np.maximum(inverse, 1e-12 * float(inverse.max()))


def _normal(here: Point, diagonal: Array, pairs: Sequence[tuple[Array, Array]]) -> Normal | None:
    """The Normal of one point; None where its covariance is not positive."""
    root, width = np.sqrt(diagonal), len(diagonal)
    if not pairs:
        return Normal(here.q + diagonal * here.gradient, root, np.zeros((width, 0)), np.zeros((0, 0)))
    steps, changes = (np.stack(part, 1) for part in zip(*pairs, strict=True))
    upper = np.triu(steps.T @ changes)
    eta = np.diag(np.diag(steps.T @ changes))
    try:
        inverse = np.linalg.inv(upper)
        corner = inverse.T @ (eta + changes.T @ (diagonal[:, None] * changes)) @ inverse
        middle = np.block([[np.zeros_like(upper), -inverse], [-inverse.T, corner]])
        outer = np.concatenate([diagonal[:, None] * changes, steps], 1)
        columns, scale = np.linalg.qr(outer / root[:, None])
        factor = np.linalg.cholesky(np.eye(len(scale)) + scale @ middle @ scale.T)
    except np.linalg.LinAlgError:
        return None
    mean = here.q + diagonal * here.gradient + outer @ (middle @ (outer.T @ here.gradient))
    return Normal(mean, root, columns, factor)
