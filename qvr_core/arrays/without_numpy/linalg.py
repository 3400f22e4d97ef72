"""Matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from qvr_core.arrays.shapes import broadcast
from qvr_core.arrays.without_numpy.array import asarray, ndarray, spread

Rows = list[list[float]]


class LinAlgError(ValueError):
    """A matrix has no such factor."""


def _each(x: Any, of: Callable[[Rows], Any]) -> list[Any]:
    own = asarray(x, float)
    rows, columns = own.shape[-2:]
    step = rows * columns
    starts = range(0, own.size, step) if step else ()
    return [of([own.data[at + i * columns : at + (i + 1) * columns] for i in range(rows)]) for at in starts]


def _flat(matrices: list[Rows]) -> list[float]:
    return [value for matrix in matrices for row in matrix for value in row]


def cholesky(x: Any) -> ndarray:
    def factor(a: Rows) -> Rows:
        made = [[0.0] * len(a) for _ in a]
        for i in range(len(a)):
            for j in range(i + 1):
                total = a[i][j] - sum(made[i][k] * made[j][k] for k in range(j))
                if i != j:
                    made[i][j] = total / made[j][j]
                elif total > 0.0:
                    made[i][i] = math.sqrt(total)
                else:
                    raise LinAlgError("the matrix is not positive definite")
        return made

    return ndarray(_flat(_each(x, factor)), asarray(x).shape, "f")


def _eliminated(a: Rows, b: Rows) -> tuple[float, Rows]:
    """The determinant of A, and X of A X = B, by elimination with partial pivots."""
    a, b = [list(row) for row in a], [list(row) for row in b]
    size, found = len(a), 1.0
    for k in range(size):
        best = max(range(k, size), key=lambda i: abs(a[i][k]))
        if a[best][k] == 0.0:
            return 0.0, b
        if best != k:
            a[k], a[best], b[k], b[best], found = a[best], a[k], b[best], b[k], -found
        found *= a[k][k]
        for i in range(k + 1, size):
            factor = a[i][k] / a[k][k]
            a[i] = [u - factor * v for u, v in zip(a[i], a[k], strict=True)]
            b[i] = [u - factor * v for u, v in zip(b[i], b[k], strict=True)]
    for k in range(size - 1, -1, -1):
        b[k] = [u / a[k][k] for u in b[k]]
        for i in range(k):
            factor = a[i][k]
            b[i] = [u - factor * v for u, v in zip(b[i], b[k], strict=True)]
    return found, b


def solve(a: Any, b: Any) -> ndarray:
    left, right = asarray(a, float), asarray(b, float)
    lead = broadcast([left.shape[:-2], right.shape[:-2]])
    left, right = spread(left, (*lead, *left.shape[-2:])), spread(right, (*lead, *right.shape[-2:]))
    pairs = zip(_each(left, list), _each(right, list), strict=True)
    made: list[Rows] = []
    for one, other in pairs:
        determinant, found = _eliminated(one, other)
        if determinant == 0.0:
            raise LinAlgError("the matrix is singular")
        made.append(found)
    return ndarray(_flat(made), right.shape, "f")


def norm(x: Any, axis: int | None = None, keepdims: bool = False) -> ndarray:
    return asarray(x, float).reduced(lambda held: math.sqrt(sum(v * v for v in held)), axis, keepdims)


def inv(a: Any) -> ndarray:
    from qvr_core.arrays.without_numpy.shaping import eye

    own = asarray(a, float)
    return solve(own, spread(eye(own.shape[-1]), own.shape))


def det(a: Any) -> ndarray:
    return ndarray(_each(a, lambda rows: _eliminated(rows, [[] for _ in rows])[0]), asarray(a).shape[:-2], "f")


def slogdet(a: Any) -> tuple[ndarray, ndarray]:
    found = det(a)
    signs = [math.copysign(1.0, value) if value else 0.0 for value in found.data]
    logs = [math.log(abs(value)) if value else -math.inf for value in found.data]
    return ndarray(signs, found.shape, "f"), ndarray(logs, found.shape, "f")


def eigh(a: Any, UPLO: str = "L") -> tuple[ndarray, ndarray]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix, by Jacobi's rotations."""
    own = asarray(a, float)
    size = own.shape[-1]
    rows = [own.data[at * size : (at + 1) * size] for at in range(size)]
    for i in range(size):
        for j in range(i):
            rows[i][j] = rows[j][i] = rows[i][j] if UPLO == "L" else rows[j][i]
    vectors = [[float(i == j) for j in range(size)] for i in range(size)]
    norm = math.sqrt(sum(value * value for row in rows for value in row))
    for _ in range(60):
        if math.sqrt(sum(rows[i][j] ** 2 for i in range(size) for j in range(i))) <= 1e-15 * norm:
            break
        for p in range(size):
            for q in range(p + 1, size):
                if rows[p][q] != 0.0:
                    _rotate(rows, vectors, p, q)
    order = sorted(range(size), key=lambda i: rows[i][i])
    values = ndarray([rows[i][i] for i in order], (size,), "f")
    return values, ndarray([row[i] for row in vectors for i in order], (size, size), "f")


def _rotate(a: Rows, vectors: Rows, p: int, q: int) -> None:
    """Make a[p][q] zero."""
    theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q])
    t = math.copysign(1.0, theta) / (abs(theta) + math.sqrt(theta * theta + 1.0))
    c = 1.0 / math.sqrt(t * t + 1.0)
    s = t * c
    for row in a:
        row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
    a[p], a[q] = (
        [c * u - s * v for u, v in zip(a[p], a[q], strict=True)],
        [s * u + c * v for u, v in zip(a[p], a[q], strict=True)],
    )
    for row in vectors:
        row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
