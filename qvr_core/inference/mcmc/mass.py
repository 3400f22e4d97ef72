"""Mass matrices: momenta, velocities and their adaptation, per chain."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

SHRINKAGE = 5.0
"""Pseudo-observations of the prior variance in a window's estimate.

Stan shrinks towards 1e-3; towards the prior variance a chain that has hardly moved keeps its reach.
"""


class DiagonalMass:
    """The inverse mass (C, D), one variance per coordinate."""

    def __init__(self, chains: int, width: int, dtype: torch.dtype) -> None:
        self.inverse = torch.ones(chains, width, dtype=dtype)
        self.reset()

    def reset(self) -> None:
        """Forget what the window has seen."""
        self.count = 0
        self.mean = torch.zeros_like(self.inverse)
        self.squares = torch.zeros_like(self.inverse)

    def momentum(self, generators: Sequence[Generator]) -> Tensor:
        """p ~ N(0, M), (C, D), each chain from its own generator."""
        width, dtype = self.inverse.shape[1], self.inverse.dtype
        noise = torch.stack([torch.randn(width, generator=g, dtype=dtype) for g in generators])
        return noise * self.inverse.rsqrt()

    def velocity(self, momentum: Tensor) -> Tensor:
        """M⁻¹ p, (C, D)."""
        return self.inverse * momentum

    def observe(self, position: Tensor) -> None:
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
            self.inverse = weight * variance + (1.0 - weight)
        self.reset()


class DenseMass:
    """The inverse mass (C, D, D), a covariance."""

    def __init__(self, chains: int, width: int, dtype: torch.dtype) -> None:
        self.inverse = torch.eye(width, dtype=dtype).repeat(chains, 1, 1)
        self._factor()
        self.reset()

    def _factor(self) -> None:
        # p = L⁻ᵀ z has covariance (L Lᵀ)⁻¹ = M
        self.tril = torch.linalg.cholesky(self.inverse)

    def reset(self) -> None:
        """Forget what the window has seen."""
        self.count = 0
        self.mean = torch.zeros_like(self.inverse[..., 0])
        self.products = torch.zeros_like(self.inverse)

    def momentum(self, generators: Sequence[Generator]) -> Tensor:
        """p ~ N(0, M), (C, D), each chain from its own generator."""
        width, dtype = self.inverse.shape[1], self.inverse.dtype
        noise = torch.stack([torch.randn(width, generator=g, dtype=dtype) for g in generators])
        return torch.linalg.solve_triangular(self.tril.mT, noise.unsqueeze(-1), upper=True).squeeze(-1)

    def velocity(self, momentum: Tensor) -> Tensor:
        """M⁻¹ p, (C, D)."""
        return (self.inverse @ momentum.unsqueeze(-1)).squeeze(-1)

    def observe(self, position: Tensor) -> None:
        """One draw of the warm-up, by Welford's recurrence."""
        self.count += 1
        difference = position - self.mean
        self.mean = self.mean + difference / self.count
        self.products = self.products + difference.unsqueeze(-1) * (position - self.mean).unsqueeze(-2)

    def update(self) -> None:
        """Take the window's covariance as inverse mass and start a new window."""
        if self.count > 1:
            covariance = self.products / (self.count - 1)
            weight = self.count / (self.count + SHRINKAGE)
            identity = torch.eye(covariance.shape[-1], dtype=covariance.dtype)
            self.inverse = weight * covariance + (1.0 - weight) * identity
            self._factor()
        self.reset()


Mass = DiagonalMass | DenseMass
