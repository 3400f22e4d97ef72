"""How the factors of a formula are coded: by contrasts where the smaller terms are there, else by a number a level.

A term over factors spans what its smaller terms span and something of its own.  What an earlier term spans already
is not spanned again, so no two coefficients are aliases of one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

Piece = dict[str, bool]
"""Factors, and whether each has a number for every level (True) or for all but the reference (False)."""


@dataclass(frozen=True)
class Coded:
    """One block of coefficients: the numeric parts of a term, and its factors as they are coded."""

    term: int
    pieces: tuple[Piece, ...]


def coded(terms: Sequence[tuple[frozenset[str], tuple[str, ...]]], *, intercept: bool) -> Iterator[Coded]:
    """The pieces of each term, told by what it multiplies (its numeric parts) and its factors."""
    covered: dict[frozenset[str], set[frozenset[str]]] = {}
    if intercept:
        covered[frozenset()] = {frozenset()}
    for number, (numeric, factors) in enumerate(terms):
        there = covered.setdefault(numeric, set())
        parts = [
            frozenset(one)
            for size in range(len(factors) + 1)
            for one in combinations(factors, size)
            if frozenset(one) not in there
        ]
        there.update(parts)
        yield Coded(number, _merged([{factor: False for factor in factors if factor in part} for part in parts]))


def _merged(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Contrasts of a factor beside their own reference are a number for every level."""
    while pair := _pair(pieces):
        small, large, factor = pair
        pieces = [one for one in pieces if one is not small and one is not large]
        pieces.append(large | {factor: True})
    return tuple(pieces)


def _pair(pieces: Sequence[Piece]) -> tuple[Piece, Piece, str] | None:
    for large in sorted(pieces, key=len, reverse=True):
        for factor in [one for one, full in large.items() if not full]:
            rest = {one: full for one, full in large.items() if one != factor}
            for small in pieces:
                if small == rest:
                    return small, large, factor
    return None
