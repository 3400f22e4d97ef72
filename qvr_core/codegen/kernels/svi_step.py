"""A step of variational inference as machine code: draws of a Normal from given noise, the bound, its gradient, Adam.

The numbers are those of `ELBO`, `RenyiBound` and `IWAEBound` with the same noise, up to rounding.  Parameters and the
optimiser's moments stand in flat arrays, which are the memory of torch's tensors; arithmetic is in double precision.
"""

# pyright: reportMissingParameterType=false
from __future__ import annotations

import math

from qvr_core.codegen.intrinsics import call_density

POINT, MEAN_FIELD, FULL = range(3)
"""Guides: a point; (loc, log scale); (loc, log of the factor's diagonal, the factor below it)."""


def evaluate(address, w, d, k, kind, sticking, power, theta, starts, noise, z, g, ratios, out):
    """−ELBO (`power` 0), or the Rényi bound of order 1 − `power`, negated, and its gradient into `out`.

    `noise` holds each block's (particles, size) one after the other; `starts` says where blocks begin in a vector of
    latents.  `sticking` leaves the score of log q out.  `z` and `g` (particles, width) and `ratios` (particles) are
    room.
    """
    particles, width = z.shape
    for p in range(particles):
        minus_log_q = _drawn(kind, theta, starts, noise, p, z)
        ratios[p] = call_density(address, z[p], g[p], w, d, k) + minus_log_q
    loss = weighed(power, ratios)
    for i in range(out.shape[0]):
        out[i] = 0.0
    for p in range(particles):
        if sticking and kind != POINT:
            _stuck(kind, theta, starts, noise, p, z[p], g[p])
        _add_gradient(kind, theta, starts, noise, p, particles, ratios[p], g[p], out)
    if kind != POINT and not sticking:
        # the entropy grows with each log scale
        for i in range(width):
            out[width + i] -= 1.0
    return loss


def _drawn(kind, theta, starts, noise, p, z):
    """Particle p's latents into its row of z; −log q."""
    particles, width = z.shape
    if kind == POINT:
        for i in range(width):
            z[p, i] = theta[i]
        return 0.0
    total = 0.5 * math.log(2.0 * math.pi) * width
    for block in range(starts.shape[0] - 1):
        first, size = starts[block], starts[block + 1] - starts[block]
        at = particles * first + p * size
        for i in range(size):
            e = float(noise[at + i])
            log_scale = float(theta[width + first + i])
            shift = math.exp(log_scale) * e
            if kind == FULL:
                row = 2 * width + (first + i) * width
                for j in range(i):
                    shift += theta[row + j] * float(noise[at + j])
            z[p, first + i] = theta[first + i] + shift
            total += 0.5 * e * e + log_scale
    return total


def weighed(power, ratios):
    """The loss of log p − log q of each particle; these become the particles' weights."""
    particles = ratios.shape[0]
    if power == 0.0:
        total = 0.0
        for p in range(particles):
            total += ratios[p]
            ratios[p] = 1.0 / particles
        return -total / particles
    high, finite = -math.inf, True
    for p in range(particles):
        finite = finite and not math.isnan(ratios[p])
        high = max(high, ratios[p])
    if not finite or math.isinf(high):
        for p in range(particles):
            ratios[p] = math.nan
        return -high if finite else math.nan
    total = 0.0
    for p in range(particles):
        ratios[p] = math.exp(power * (ratios[p] - high))
        total += ratios[p]
    for p in range(particles):
        ratios[p] /= total
    return (math.log(particles) - math.log(total)) / power - high


def _stuck(kind, theta, starts, noise, p, z, g):
    """Add to a particle's gradient that of −log q by its latents: L⁻ᵀ times the noise."""
    width = g.shape[0]
    particles = noise.shape[0] // width
    for block in range(starts.shape[0] - 1):
        first, size = starts[block], starts[block + 1] - starts[block]
        at = particles * first + p * size
        if kind == MEAN_FIELD:
            for i in range(size):
                g[first + i] += float(noise[at + i]) * math.exp(-float(theta[width + first + i]))
            continue
        # one block: z is read no more and takes the solution
        for i in range(width - 1, -1, -1):
            total = float(noise[at + i])
            for j in range(i + 1, width):
                total -= theta[2 * width + j * width + i] * z[j]
            z[i] = total * math.exp(-float(theta[width + i]))
            g[i] += z[i]


def _add_gradient(kind, theta, starts, noise, p, particles, weight, g, out):
    """Add what a particle's gradient by its latents says of the parameters, times its weight."""
    width = g.shape[0]
    for i in range(width):
        out[i] -= weight * g[i]
    if kind == POINT:
        return
    for block in range(starts.shape[0] - 1):
        first, size = starts[block], starts[block + 1] - starts[block]
        at = particles * first + p * size
        for i in range(size):
            pull = weight * g[first + i]
            out[width + first + i] -= pull * math.exp(float(theta[width + first + i])) * float(noise[at + i])
            if kind == FULL:
                row = 2 * width + i * width
                for j in range(i):
                    out[row + j] -= pull * float(noise[at + j])


def clipped(gradient, most, out):
    """The norm of a gradient, and the gradient with a norm of at most `most` into `out`; infinity where that is more
    than a number of its precision can be."""
    total = 0.0
    for i in range(gradient.shape[0]):
        total += gradient[i] * gradient[i]
    norm = math.sqrt(total)
    factor = min(1.0, most / (norm + 1e-6))
    for i in range(gradient.shape[0]):
        out[i] = factor * gradient[i]
        if math.isinf(out[i]):
            norm = math.inf
    return norm


def adam(theta, gradient, mean, square, counts, rates):
    """A step of Adam (Kingma & Ba 2015), or AdamW (Loshchilov & Hutter 2019), as torch makes it; `rates` are the
    learning rate, the two betas, epsilon, and the decay of weights."""
    rate, beta, beta_square, small, decay = rates[0], rates[1], rates[2], rates[3], rates[4]
    for i in range(counts.shape[0]):
        counts[i] += 1.0
    count = float(counts[0])
    size = rate / (1.0 - beta**count)
    root = math.sqrt(1.0 - beta_square**count)
    for i in range(theta.shape[0]):
        slope = float(gradient[i])
        first = beta * float(mean[i]) + (1.0 - beta) * slope
        second = beta_square * float(square[i]) + (1.0 - beta_square) * slope * slope
        mean[i], square[i] = first, second
        theta[i] = float(theta[i]) * (1.0 - rate * decay) - size * first / (math.sqrt(second) / root + small)
