"""Mass matrices: momenta, velocities and their adaptation, per chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Generators = Sequence[np.random.Generator]

SHRINKAGE = 5.0
"""Pseudo-observations of a small variance in a window's estimate, as in Stan."""
SMALL_VARIANCE = 1e-3
"""Towards the prior's variance, 1, every coordinate that the data tell much about would keep too large a scale until
the last window."""


def _normals(generators: Generators, width: int, dtype: Any) -> Array:
    rows: list[Array] = [generator.standard_normal(width, dtype=dtype) for generator in generators]
    return np.stack(rows)


class DiagonalMass:
    """The inverse mass (C, D), one variance per coordinate."""

    def __init__(self, chains: int, width: int, dtype: Any) -> None:
        self.inverse = np.ones((chains, width), dtype=dtype)
        self.root = self.inverse
        self.reset()

    def reset(self) -> None:
        """Forget what the window has seen."""
        self.count = 0
        self.mean = np.zeros_like(self.inverse)
        self.squares = np.zeros_like(self.inverse)

    def momentum(self, generators: Generators) -> Array:
        """p ~ N(0, M), (C, D), each chain from its own generator."""
        return _normals(generators, self.inverse.shape[1], self.inverse.dtype) * self.root

    def velocity(self, momentum: Array) -> Array:
        """M⁻¹ p, (C, D)."""
        return self.inverse * momentum

    def observe(self, position: Array) -> None:
        """One draw of the warm-up, by Welford's recurrence."""
        self.count += 1
        difference = position - self.mean
        self.mean = self.mean + difference / self.count
        self.squares = self.squares + difference * (position - self.mean)

    def update(self) -> None:
        """Take the window's variance as inverse mass and start a new window."""
        if self.count > 1:
            variance = self.squares / (self.count - 1)
            weight = self.count / (self.count + SHRINKAGE)
            self.inverse = (weight * variance + (1.0 - weight) * SMALL_VARIANCE).astype(self.inverse.dtype)
            self.root = 1.0 / np.sqrt(self.inverse)
        self.reset()

    def arrays(self) -> dict[str, Array]:
        """What each chain has learned, (C, …); `count` is common to them."""
        return {"inverse": self.inverse, "root": self.root, "mean": self.mean, "squares": self.squares}

    def restore(self, arrays: Mapping[str, Array], count: int) -> None:
        """Undo `arrays`."""
        self.inverse, self.root = arrays["inverse"], arrays["root"]
        self.mean, self.squares, self.count = arrays["mean"], arrays["squares"], count


class DenseMass:
    """The inverse mass (C, D, D), a covariance."""

    def __init__(self, chains: int, width: int, dtype: Any) -> None:
        self.inverse = np.broadcast_to(np.eye(width, dtype=dtype), (chains, width, width)).copy()
        self._factor()
        self.reset()

    def _factor(self) -> None:
        # p = L⁻ᵀ z has covariance (L Lᵀ)⁻¹ = M; as rows, since products round by the order in memory, and what a
        # checkpoint holds comes back as rows
        self.root = np.ascontiguousarray(np.swapaxes(np.linalg.inv(np.linalg.cholesky(self.inverse)), -1, -2))

    def reset(self) -> None:
        """Forget what the window has seen."""
        self.count = 0
        self.mean = np.zeros_like(self.inverse[..., 0])
        self.products = np.zeros_like(self.inverse)

    def momentum(self, generators: Generators) -> Array:
        """p ~ N(0, M), (C, D), each chain from its own generator."""
        return (self.root @ _normals(generators, self.inverse.shape[1], self.inverse.dtype)[..., None])[..., 0]

    def velocity(self, momentum: Array) -> Array:
        """M⁻¹ p, (C, D)."""
        return (self.inverse @ momentum[..., None])[..., 0]

    def observe(self, position: Array) -> None:
        """One draw of the warm-up, by Welford's recurrence."""
        self.count += 1
        difference = position - self.mean
        self.mean = self.mean + difference / self.count
        self.products = self.products + difference[..., :, None] * (position - self.mean)[..., None, :]

    def update(self) -> None:
        """Take the window's covariance as inverse mass and start a new window."""
        if self.count > 1:
            covariance = self.products / (self.count - 1)
            weight = self.count / (self.count + SHRINKAGE)
            small = SMALL_VARIANCE * np.eye(covariance.shape[-1])
            self.inverse = (weight * covariance + (1.0 - weight) * small).astype(self.inverse.dtype)
            self._factor()
        self.reset()

    def arrays(self) -> dict[str, Array]:
        """What each chain has learned, (C, …); `count` is common to them."""
        return {"inverse": self.inverse, "root": self.root, "mean": self.mean, "squares": self.products}

    def restore(self, arrays: Mapping[str, Array], count: int) -> None:
        """Undo `arrays`."""
        self.inverse, self.root = arrays["inverse"], arrays["root"]
        self.mean, self.products, self.count = arrays["mean"], arrays["squares"], count


Mass = DiagonalMass | DenseMass
