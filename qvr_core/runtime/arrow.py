"""What an arrow is at run time: the contract that every module in this folder keeps.

Shapes: B rows, L positions, width d.  A finite value is int64 (B,) or (B, L); a real one float (B, d) or (B, L, d);
a product is a tuple of such.  The leading axis is always the row axis: particles and vectorised chains are rows too.

A sampled arrow makes one or more *draws*.  Each draw turns parameter-free standardised noise into a value; the noise of
every draw but the last is an *innovation*.  Given the innovations, the density of the arrow's value is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Value = Tensor | tuple[Tensor, ...]
Noise = Mapping[str, Tensor]
"""Noise by draw: the path of the draw inside the arrow -> tensor with the row axis first."""


@dataclass(frozen=True, slots=True)
class NoiseSpec:
    """One draw of an arrow.

    `path` names the draw inside the arrow (`fwd_cell`, `enc_block.0.enc_head_2`); `shape` is the noise's shape with the
    rows; `base` is its parameter-free density: 'normal' (standard normal), 'uniform' (on (0, 1)), or 'value' where the
    noise is the value itself with a density that depends on the input (Gamma, Beta, Dirichlet, …), or 'discrete' for a
    finite draw that is not summed out.  `final` marks the last draw of its branch: not an innovation.
    """

    path: str
    shape: tuple[int, ...]
    base: str
    final: bool


@dataclass(slots=True)
class Drawn:
    """A value with how it came about.

    `log_prob` (B,) is log p(value | x, innovations); `log_innovations` (B,) is log p(innovations | x): the sum of the
    standard densities, and of the conditional ones where the noise is the value itself.
    """

    value: Value
    noise: dict[str, Tensor]
    log_prob: Tensor | None
    log_innovations: Tensor | None


class ArrowModule(nn.Module):
    """Base class of all arrows at run time.

    A deterministic arrow implements `forward`; a sampled one implements `noise_specs`, `draw` and `log_prob`.
    """

    sampled: bool = False

    def forward(self, x: Value) -> Value:
        """The value of a deterministic arrow, row by row."""
        raise NotImplementedError(f"{type(self).__name__} is a sampled arrow: call draw(x)")

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        """Every draw of this arrow on `x`, in the order in which they are made."""
        return []

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: torch.Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        """Draw a value.  Noise given by path is used, the rest is drawn; everything is reparameterised where it can be.

        With `want_log_prob` False both log densities are None (and cost nothing).
        """
        return Drawn(self.forward(x), {}, None, None)

    def log_prob(self, x: Value, y: Value, innovations: Noise | None = None) -> Tensor:
        """log p(y | x, innovations), shape (B,), exact and deterministic.

        Raises `MissingInnovations` where the arrow has some and none are given.
        """
        raise NotImplementedError(f"{type(self).__name__} is deterministic: it has no density")
