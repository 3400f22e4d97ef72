"""Sums of products over axes: their letters, and those that are a product of matrices."""

from __future__ import annotations


def letter(axis: str, taken: set[str]) -> str:
    """A letter for an axis: that of its index where there is one."""
    wanted = axis.rpartition("#")[2].lower()
    for letter in [*wanted, *"abcdefghijklmnopqrstuvwxyz"]:
        if letter.isalpha() and letter.isascii() and letter not in taken:
            return letter
    raise ValueError("more axes than letters")


def matrix_product(factors: list[str], axes: list[tuple[str, ...]], result: tuple[str, ...]) -> str | None:
    """Two factors as `a @ b`, where that is what they are."""
    if len(factors) != 2:
        return None
    left, right = axes[0], axes[1]
    first, second = factors[0], factors[1]
    if len(left) == 1 and len(right) == 2:
        left, right, first, second = right, left, second, first
    if len(left) == 2 and right == left[1:] and result == left[:1]:
        return f"({first} @ {second})"
    if len(left) == len(right) == 2:
        for a, b, x, y in ((left, right, first, second), (right, left, second, first)):
            if a[1:] == b[:1] and result == (*a[:1], *b[1:]):
                return f"({x} @ {y})"
            if a[1:] == b[1:] and result == (*a[:1], *b[:1]):
                return f"({x} @ {y}.T)"
    if left == right and len(left) == 1 and not result:
        return f"({first} @ {second})"
    return None
