"""Products, and functions of matrices."""

from __future__ import annotations

import math
from typing import Any

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import Array, Unsupported
from qvr_core.arrays.listing import arrays, listed
from qvr_core.arrays.numbers import where
from qvr_core.arrays.operations import pointwise as p
from qvr_core.arrays.views import t, unsqueeze


@listed("matmul", "mm", "bmm", "mv", "dot")
def matmul(x: Any, y: Any) -> Array:
    """The matrix product."""
    left, right = arrays(x, y)
    return g.matmul(p("real", left), p("real", right))


@listed("rmatmul")
def rmatmul(x: Any, y: Any) -> Array:
    """y @ x."""
    return matmul(y, x)


@listed("linear")
def linear(x: Any, weight: Any, bias: Any = None) -> Array:
    """x Wᵀ + b."""
    left, right = arrays(x, weight)
    found = g.matmul(left, t(right))
    return found if bias is None else p("add", *arrays(found, bias))


@listed("outer")
def outer(x: Any, y: Any) -> Array:
    """All products of two vectors' numbers."""
    left, right = arrays(x, y)
    return p("mul", unsqueeze(left, -1), right)


@listed("kron")
def kron(x: Any, y: Any) -> Array:
    """The Kronecker product of matrices."""
    left, right = arrays(x, y)
    (n, m), (k, q) = left.shape, right.shape
    return g.reshape(p("mul", g.reshape(left, (n, 1, m, 1)), g.reshape(right, (1, k, 1, q))), (n * k, m * q))


@listed("einsum")
def einsum(equation: str, *operands: Any) -> Array:
    """Sums of products, axes by letters, each once an operand."""
    parts = arrays(*(operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands))
    given, _, wanted = equation.replace(" ", "").partition("->")
    terms = given.split(",")
    order = wanted + "".join(dict.fromkeys(c for term in terms for c in term if c not in wanted))
    if "." in equation or any(len(set(term)) != len(term) for term in terms):
        raise Unsupported(f"einsum {equation}")
    laid: list[Array] = []
    for term, part in zip(terms, parts, strict=True):
        moved = g.permute(part, sorted(range(len(term)), key=lambda at: order.index(term[at])))
        sizes = dict(zip(term, part.shape, strict=True))
        laid.append(g.reshape(moved, tuple(sizes.get(c, 1) for c in order)))
    product = laid[0]
    for part in laid[1:]:
        product = p("mul", product, part)
    return g.reduce("sum", product, tuple(range(len(wanted), len(order)))) if len(order) > len(wanted) else product


@listed("linalg_cholesky_ex", "cholesky_ex")
def cholesky_ex(x: Array, **keywords: Any) -> tuple[Array, Array]:
    """The lower factor, and whether there is none."""
    return g.cholesky(x)


@listed("linalg_cholesky", "cholesky")
def cholesky(x: Array, **keywords: Any) -> Array:
    """The lower factor; NaN where there is none."""
    factor, failed = g.cholesky(x)
    there = p("ne", g.reshape(failed, (*failed.shape, 1, 1)), x.graph.constant(0.0))
    return where(there, math.nan, factor)


@listed("linalg_solve_triangular", "solve_triangular")
def solve_triangular(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    """X of A X = B."""
    factor, right = arrays(a, b)
    return g.solve_triangular(factor, p("real", right), upper=upper, left=left, unit=unitriangular)


@listed("linalg_inv_ex", "inv_ex")
def inv_ex(x: Array, **keywords: Any) -> tuple[Array, Array]:
    """The inverse, not finite where there is none."""
    return g.inverse(x)


@listed("linalg_inv", "inverse", "inv")
def inv(x: Array) -> Array:
    """The inverse."""
    return g.inverse(x)[0]


@listed("linalg_det", "det")
def det(x: Array) -> Array:
    """The determinant."""
    return g.determinant(x)


@listed("logdet")
def logdet(x: Array) -> Array:
    """log det; NaN below 0."""
    return where(p("lt", g.determinant(x), x.graph.constant(0.0)), math.nan, g.log_determinant(x))
