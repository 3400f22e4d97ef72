"""The incomplete gamma and beta functions as logarithms of both tails, with the derivative in every argument.

torch differentiates neither in its shapes.  Here the smaller tail is an integral ∫₀^∞ exp(h(s)) ds of a log-concave
integrand by the double exponential rule for half-lines (Takahasi & Mori 1974): plain operations, so autograd gives
every derivative, to the accuracy of the rule (about 1e-13).  All of it is double precision; arguments broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from qvr_core.arrays.engine import Tensor, arrays, broadcasting
from qvr_core.runtime.families.cumulative.tails import Tails, log1mexp

_STEP, _FIRST, _LAST = 0.18, -4.0, 5.6
_SMALL = 1e-5
"""Of a shape, beside 1 and the other shape of a Beta: 1 − Iₓ loses ten digits to the difference, and a series none."""


@cache
def _rule() -> tuple[Tensor, Tensor]:
    """Nodes y and log weights for ∫₀^∞ f(y) dy by y = exp(v − exp(−v)), v equally spaced."""
    v = arrays.arange(_FIRST, _LAST, _STEP, dtype=arrays.float64)
    y = (v - (-v).exp()).exp()
    return y, (_STEP * (1.0 + (-v).exp())).log() + y.log()


def _log_integral(log_integrand: Callable[[Tensor], Tensor], slope: Tensor, curvature: Tensor) -> Tensor:
    """log ∫₀^∞ exp(h(s)) ds with h(0) = 0; h falls at 0 by `slope` ≥ 0 and bends by `curvature` ≥ 0."""
    nodes, weights = (part.to(slope.device) for part in _rule())
    # where the nodes lie is no part of the function
    width = (1.0 / (slope + curvature.sqrt())).detach().unsqueeze(-1)
    return arrays.logsumexp(log_integrand(width * nodes) + weights, -1) + width.squeeze(-1).log()


def gamma_tails(a: Tensor, x: Tensor, log_x: Tensor | None = None) -> Tails:
    """(log P(a, x), log Q(a, x)), the regularised incomplete gamma functions, for a > 0 and 0 < x < ∞; given log x
    also where x is too small or too large for a number.

    Q(a, x) is, with t = x + s, x^(a−1) e^(−x) / Γ(a) · ∫ (1 + s/x)^(a−1) e^(−s) ds.  P(a, x) is
    x^a e^(−x) / Γ(a + 1) + P(a + 1, x), and with t = x e^(−s) the latter is
    x^(a+1) e^(−x) / Γ(a + 1) · ∫ e^(−(a+1) s − x (e^(−s) − 1)) ds.
    """
    log_of_x = x.double().log() if log_x is None else log_x.double()
    a, x, log_of_x = broadcasting.broadcast_tensors(a.double(), x.double(), log_of_x)
    upper = x > a.clamp(min=1.0)
    wide = upper.unsqueeze(-1)

    def integrand(s: Tensor) -> Tensor:
        rise, size = (a - 1.0).unsqueeze(-1), x.unsqueeze(-1)
        # each formula sees only its own side: a small x divides nothing, a large one multiplies nothing
        large, small = arrays.where(wide, size, 1.0), arrays.where(wide, 1.0, size)
        return arrays.where(wide, rise * arrays.log1p(s / large) - s, -(rise + 2.0) * s - small * arrays.expm1(-s))

    slope = arrays.where(upper, 1.0 - (a - 1.0) / x, a + 1.0 - x)
    curvature = arrays.where(upper, (a - 1.0).clamp(min=0.0) / x.square(), x)
    integral = _log_integral(integrand, slope, curvature)
    lower = arrays.log1p(arrays.where(upper, 0.0, integral).exp() * arrays.where(upper, 0.0, x))
    smaller = arrays.where(upper, integral + a.log() - log_of_x, lower)
    return _sided(upper, smaller + a * log_of_x - x - arrays.lgamma(a + 1.0))


def beta_tails(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tails:
    """(log Iₓ(a, b), log (1 − Iₓ(a, b))), the regularised incomplete beta function, for a, b > 0 and 0 < x < 1, from
    log x and log y, y = 1 − x."""
    a, b, log_x, log_y = broadcasting.broadcast_tensors(a.double(), b.double(), log_x.double(), log_y.double())
    upper = log_x.exp() > (a + 1.0) / (a + b + 2.0)
    # Iₓ(a, b) = 1 − I_y(b, a): the integral is that of the smaller tail
    a, b = arrays.where(upper, b, a), arrays.where(upper, a, b)
    log_x, log_y = arrays.where(upper, log_y, log_x), arrays.where(upper, log_x, log_y)
    smaller = log_beta_ratio(a, b, log_x.exp(), log_y) + a * log_x
    return _sided(upper, smaller)


def log_beta_ratio(a: Tensor, b: Tensor, x: Tensor, log_y: Tensor) -> Tensor:
    """log(Iₓ(a, b) / x^a) for 0 ≤ x ≤ (a + 1) / (a + b + 2) and y = 1 − x; smooth at 0.

    Iₓ(a, b) = x^a y^b / (a B(a, b)) + Iₓ(a + 1, b), and with t = x e^(−s) the latter is
    x^(a+1) y^(b−1) / B(a + 1, b) · ∫ e^(−(a+1) s) ((1 − x e^(−s)) / y)^(b − 1) ds.
    """
    odds = x / log_y.exp()
    # B(a + 1, b) = B(a, b) a / (a + b)
    rest = (a + b) * odds * _log_integral(*_beta_integrand(a, b, odds)).exp()
    # log (a B(a, b)): of a small a, log a and log B(a, b) are large and nearly opposite
    log_beta = arrays.lgamma(a + 1.0) + (arrays.lgamma(b) - arrays.lgamma(a + b))
    return b * log_y - log_beta + arrays.log1p(rest)


def _beta_integrand(a: Tensor, b: Tensor, odds: Tensor) -> tuple[Callable[[Tensor], Tensor], Tensor, Tensor]:
    """log of e^(−(a+1) s) ((1 − x e^(−s)) / y)^(b − 1), odds = x / y, with its fall and its bend at 0."""

    def integrand(s: Tensor) -> Tensor:
        # (1 − x e^(−s)) / y = 1 + (1 − e^(−s)) x / y
        grown = arrays.log1p(odds.unsqueeze(-1) * -arrays.expm1(-s))
        return -(a + 1.0).unsqueeze(-1) * s + (b - 1.0).unsqueeze(-1) * grown

    return integrand, a + 1.0 - (b - 1.0) * odds, (b - 1.0).clamp(min=0.0) * odds * (1.0 + odds)


def small_beta_tails(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tails:
    """`beta_tails` at twice the work, also where a or b is nearly 0 beside the other and beside 1.  Nearly all the
    mass is then at one end; what is left, in proportion to the shape, is no difference to 1 that has digits."""
    a, b, log_x, log_y = broadcasting.broadcast_tensors(a.double(), b.double(), log_x.double(), log_y.double())
    lower, upper = beta_tails(a, b, log_x, log_y)
    swapped = b < a
    shape, other = arrays.where(swapped, b, a), arrays.where(swapped, a, b)
    log_x, log_y = arrays.where(swapped, log_y, log_x), arrays.where(swapped, log_x, log_y)
    small = (shape < _SMALL * other.clamp(max=1.0)) & (log_x.exp() <= (shape + 1.0) / (shape + other + 2.0))
    # elsewhere the formula sees numbers of its own
    shape, other = arrays.where(small, shape, _SMALL), arrays.where(small, other, 1.0)
    log_x, log_y = arrays.where(small, log_x, -1.0), arrays.where(small, log_y, math.log1p(-math.exp(-1.0)))
    rest = _log_rest(shape, other, log_x, log_y)
    nearly_all = log1mexp(rest)
    return (
        arrays.where(small, arrays.where(swapped, rest, nearly_all), lower),
        arrays.where(small, arrays.where(swapped, nearly_all, rest), upper),
    )


def _log_rest(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tensor:
    """log(1 − Iₓ(a, b)) of a small a: log Iₓ is 0 at a = 0, so that it is a times its slope half way, but for some
    a²/24 of it."""
    half, odds = 0.5 * a, (log_x - log_y).exp()
    integrand, fall, bend = _beta_integrand(half, b, odds)
    integral = _log_integral(integrand, fall, bend).exp()
    moment = _log_integral(lambda s: integrand(s) + s.log(), fall, bend).exp()
    # of log Iₓ as `log_beta_ratio` has it
    slope = odds * (integral - (half + b) * moment) / (1.0 + (half + b) * odds * integral)
    slope = slope + log_x + (half + b).digamma() - (half + 1.0).digamma()
    return arrays.log(-arrays.expm1(a * slope))


def _sided(upper: Tensor, smaller: Tensor) -> Tails:
    """Both tails from the smaller one: the upper where `upper`."""
    larger = log1mexp(smaller)
    return arrays.where(upper, larger, smaller), arrays.where(upper, smaller, larger)
