"""Bases of functions of one number: B-splines, and the eigenfunctions that approximate a Gaussian process."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.engine import functional as nnf


def bspline(x: Tensor, knots: Sequence[float], degree: int) -> Tensor:
    """The B-splines of a degree at the numbers (…): (…, len(knots) + degree - 1).

    `knots` ascend and have their ends once; here each end counts `degree` times more, so that the columns add up to 1
    from the first knot to the last, both included.  Elsewhere all are 0.  By the recursion of Cox and de Boor (de Boor,
    A Practical Guide to Splines, 2001, chapter IX).
    """
    whole = [*[knots[0]] * degree, *knots, *[knots[-1]] * degree]

    def row(numbers: Sequence[float]) -> Tensor:
        return arrays.tensor(numbers, dtype=x.dtype, device=x.device)

    x = x.unsqueeze(-1)
    begun = (x >= row(knots[:-1])).to(x.dtype)
    over = arrays.cat([(x >= row(knots[1:-1])).to(x.dtype), (x > knots[-1]).to(x.dtype)], -1)
    found = nnf.pad(begun - over, (degree, degree))
    for order in range(1, degree + 1):
        count = len(whole) - order
        # where the ends are repeated there is no interval, and what divides by its length is none
        per = [1.0 / (b - a) if b > a else 0.0 for a, b in zip(whole[:count], whole[order:], strict=True)]
        rising = (x - row(whole[: count - 1])) * row(per[:-1])
        falling = (row(whole[order + 1 :]) - x) * row(per[1:])
        found = rising * found[..., :-1] + falling * found[..., 1:]
    return found


def _domain(x: Tensor, c: float, rows: int) -> tuple[Tensor, Tensor]:
    """The middle of all numbers, and half the length of the domain, which is `c` times as long as their range; each row
    of the first `rows` axes has its own, with the other axes of length 1."""
    kept = x.reshape(*x.shape[:rows], -1)
    low, high = kept.amin(-1), kept.amax(-1)
    shape = (*x.shape[:rows], *(1,) * (x.ndim - rows))
    return (0.5 * (low + high)).reshape(shape), (0.5 * c * (high - low)).reshape(shape)


def _orders(x: Tensor, m: int) -> Tensor:
    return arrays.arange(1, m + 1).to(x.dtype) * (0.5 * math.pi)


def hsgp_frequencies(x: Tensor, m: int, c: float, rows: int = 0) -> Tensor:
    """The square roots of the first `m` eigenvalues of the Laplacian on the domain of `hsgp`: (m,), behind `rows`."""
    _, half = _domain(x, c, rows)
    return _orders(x, m) / half.reshape(*x.shape[:rows], 1)


def hsgp(x: Tensor, m: int, c: float, rows: int = 0) -> Tensor:
    """The first `m` eigenfunctions of the Laplacian, with boundary conditions of Dirichlet, at the numbers (…): (…, m).

    The domain is around the middle of all numbers, `c` times as long as their range; NaN where they are all the same.
    The first `rows` axes have a domain for each of their elements.
    Riutort-Mayol, Buerkner, Andersen, Solin & Vehtari (2020), equations 5 to 7.
    """
    middle, half = (one.unsqueeze(-1) for one in _domain(x, c, rows))
    return arrays.sin(_orders(x, m) / half * (x.unsqueeze(-1) - middle + half)) / arrays.sqrt(half)
