"""The bound of a guide N(loc, factor · factorᵀ + diag(scale²)) on a log density, with its gradient.

Noise is given, so value and gradient are numbers; the density comes with its gradient by the latents, and what the
guide adds is differentiated by hand.  With d = z − loc, Σ the covariance and w = Σ⁻¹ d,

    −log q = ½ d·w + ½ log |Σ|,  ∂/∂d = w,  ∂/∂Σ = ½ (Σ⁻¹ − w wᵀ),

and d itself depends on scale and factor.  Σ⁻¹ by the matrix inversion lemma.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class LowRankBound:
    """−ELBO, or the Rényi bound negated, at `theta`: loc (D,), log scale (D,), factor (D, R), one after the other.

    `noise` holds that of the scales, (particles, D), then that of the factor, (particles, R).  A call gives the loss,
    and writes the latents into `z` (particles, D) and the gradient into `out`.  `sticking` leaves the score of log q
    out.
    """

    def __init__(
        self,
        density: Callable[[Array], tuple[float, Array]],
        weigh: Callable[[Array], float],
        theta: Array,
        noise: Array,
        z: Array,
        out: Array,
        *,
        sticking: bool,
    ) -> None:
        particles, width = z.shape
        self.density, self.weigh, self.sticking = density, weigh, sticking
        self.z, self.out = z, out
        self.loc, self.log_scale = theta[:width], theta[width : 2 * width]
        self.factor = theta[2 * width :].reshape(width, -1)
        self.own = noise[: particles * width].reshape(particles, width)
        self.shared = noise[particles * width :].reshape(particles, -1)

    def __call__(self) -> float:
        width = len(self.loc)
        with np.errstate(all="ignore"):
            scale = np.exp(self.log_scale, dtype=np.float64)
            factor = self.factor.astype(np.float64)
            d = scale * self.own + self.shared @ factor.T
            self.z[:] = self.loc + d
            values, slopes = zip(*(self.density(row) for row in self.z), strict=True)
            weighted = factor / np.square(scale)[:, None]
            inner = np.eye(factor.shape[1]) + weighted.T @ factor
            # of a factor that is no number there is no inverse, and no bound
            inverse = np.linalg.inv(inner) if np.isfinite(inner).all() else np.full_like(inner, math.nan)
            w = d / np.square(scale) - (d @ weighted) @ inverse @ weighted.T
            log_determinant = 2.0 * self.log_scale.sum(dtype=np.float64) + np.linalg.slogdet(inner)[1]
            entropies = 0.5 * ((d * w).sum(1) + log_determinant + width * math.log(2.0 * math.pi))
            ratios = np.array(values) + entropies
            loss = self.weigh(ratios)
            # of the loss by log p and, where log q moves with it, by d
            slope = -np.stack(slopes) * ratios[:, None]
            pull = slope - w * ratios[:, None]
            by_scale, by_factor = (pull * self.own).sum(0), pull.T @ self.shared
            if not self.sticking:
                each = w * ratios[:, None]
                precision = weighted @ inverse
                diagonal = 1.0 / np.square(scale) - (precision * weighted).sum(1)
                by_scale -= (ratios.sum() * diagonal - (each * w).sum(0)) * scale
                by_factor -= ratios.sum() * precision - each.T @ (w @ factor)
            by_loc = pull if self.sticking else slope
            self.out[:] = np.concatenate([by_loc.sum(0), by_scale * scale, by_factor.ravel()])
        return loss
