"""Factors and solutions of small matrices that the generated loops call, on the room `w` of a density.

A matrix is the place of its first number with the strides of its rows and columns; what is made lies row by row.
"""

# pyright: reportMissingParameterType=false
from __future__ import annotations

import math

FLAGS = "contract nsz reassoc"


def cholesky(w, a, a_row, a_col, out, size):
    """The lower factor of a matrix, of which the lower triangle is read, and behind it 0, or which minor is not
    positive (LAPACK's `info`); then the factor is NaN."""
    failed = 0
    for i in range(size):
        row = out + i * size
        for j in range(i + 1):
            other = out + j * size
            total = w[a + i * a_row + j * a_col]
            for at in range(j):
                total -= w[row + at] * w[other + at]
            if i != j:
                w[row + j] = total / w[other + j]
            elif total > 0.0:
                w[row + i] = math.sqrt(total)
            else:
                w[row + i] = math.nan
                failed = i + 1 if failed == 0 else failed
        for j in range(i + 1, size):
            w[row + j] = 0.0
    w[out + size * size] = failed


def cholesky_pulled(w, a, d, d_row, d_col, out, size):
    """The derivative by a symmetric matrix from that by its lower factor, which lies row by row at `a`; of both the
    lower triangle is read (Murray 2016, Differentiation of the Cholesky decomposition, section 4: by rows, a third of
    n³ products)."""
    for i in range(size):
        for j in range(i + 1):
            w[out + i * size + j] = w[d + i * d_row + j * d_col]
    for turn in range(size):
        k = size - 1 - turn
        here, row = out + k * size, a + k * size
        pivot = w[row + k]
        slope = w[here + k]
        for i in range(k + 1, size):
            w[out + i * size + k] /= pivot
            slope -= w[out + i * size + k] * w[a + i * size + k]
        slope /= pivot
        for j in range(k):
            w[here + j] -= slope * w[row + j]
        for i in range(k + 1, size):
            there, other, factor = out + i * size, a + i * size, w[out + i * size + k]
            for j in range(k):
                w[here + j] -= factor * w[other + j]
            for j in range(k):
                w[there + j] -= factor * w[row + j]
        w[here + k] = 0.5 * slope
    # what two places of the matrix share is halved
    for i in range(size):
        w[out + i * size + i] *= 2.0
        for j in range(i + 1):
            w[out + i * size + j] *= 0.5
            w[out + j * size + i] = w[out + i * size + j]


def substituted(w, a, a_row, a_col, b, b_row, b_col, out, out_row, out_col, size, columns, upper, unit):
    """X of A X = B, A (size, size) triangular, B and X (size, columns)."""
    for i in range(size):
        for c in range(columns):
            w[out + i * out_row + c * out_col] = w[b + i * b_row + c * b_col]
    for turn in range(size):
        i = size - 1 - turn if upper else turn
        here = out + i * out_row
        if unit == 0:
            pivot = w[a + i * a_row + i * a_col]
            for c in range(columns):
                w[here + c * out_col] /= pivot
        first = 0 if upper else i + 1
        last = i if upper else size
        if out_col == 1 and columns > 1:
            for j in range(first, last):
                factor = w[a + j * a_row + i * a_col]
                for c in range(columns):
                    w[out + j * out_row + c] -= factor * w[here + c]
        else:
            for c in range(columns):
                value = w[here + c * out_col]
                for j in range(first, last):
                    w[out + j * out_row + c * out_col] -= value * w[a + j * a_row + i * a_col]


def eliminated(w, a, a_row, a_col, out, size):
    """L and U of P A = L U in one matrix, then the row of A in each place, then the sign of P, then 0 or which pivot
    is zero."""
    rows, signed = out + size * size, out + size * size + size
    sign, failed = 1.0, 0
    for i in range(size):
        w[rows + i] = i
        for j in range(size):
            w[out + i * size + j] = w[a + i * a_row + j * a_col]
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if abs(w[out + i * size + k]) > abs(w[out + best * size + k]):
                best = i
        if best != k:
            sign = -sign
            w[rows + k], w[rows + best] = w[rows + best], w[rows + k]
            for j in range(size):
                one, other = out + k * size + j, out + best * size + j
                w[one], w[other] = w[other], w[one]
        pivot = w[out + k * size + k]
        if pivot == 0.0:
            failed = k + 1 if failed == 0 else failed
        else:
            for i in range(k + 1, size):
                w[out + i * size + k] /= pivot
                factor = w[out + i * size + k]
                for j in range(k + 1, size):
                    w[out + i * size + j] -= factor * w[out + k * size + j]
    w[signed], w[signed + 1] = sign, failed


def solved(w, a, a_row, a_col, rows, b, b_row, b_col, out, size, columns, adjoint):
    """X of A X = B, or of Aᵀ X = B, from the L and U of `eliminated` at `a`; X has a row of room behind it."""
    last = out + size * columns
    for c in range(columns):
        for i in range(size):
            place = i if adjoint else int(w[rows + i])
            w[last + i] = w[b + place * b_row + c * b_col]
        for i in range(size):
            for j in range(i):
                w[last + i] -= w[a + (j * a_row + i * a_col if adjoint else i * a_row + j * a_col)] * w[last + j]
            if adjoint:
                w[last + i] /= w[a + i * a_row + i * a_col]
        for i in range(size - 1, -1, -1):
            for j in range(i + 1, size):
                w[last + i] -= w[a + (j * a_row + i * a_col if adjoint else i * a_row + j * a_col)] * w[last + j]
            if not adjoint:
                w[last + i] /= w[a + i * a_row + i * a_col]
        for i in range(size):
            place = int(w[rows + i]) if adjoint else i
            w[out + place * columns + c] = w[last + i]
