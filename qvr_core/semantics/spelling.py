"""Likely spellings: edit distance and the nearest of some words."""

from __future__ import annotations

from collections.abc import Iterable


def distance(left: str, right: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap of neighbours) from one word to another; limit + 1 where it takes more."""
    start = 0
    shortest = min(len(left), len(right))
    while start < shortest and left[start] == right[start]:
        start += 1
    end = 0
    while end < shortest - start and left[-1 - end] == right[-1 - end]:
        end += 1
    a, b = left[start : len(left) - end], right[start : len(right) - end]
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    previous = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        current = [i]
        for j, other in enumerate(b, 1):
            best = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                best = min(best, before[j - 2] + 1)
            current.append(best)
        if min(current) > limit:
            return limit + 1
        before, previous = previous, current
    return min(previous[-1], limit + 1)


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` was probably meant to be, or None.

    Up to a third of the letters may differ; other capitals count as no edit.  Among equals the first one wins.
    """
    # any letter is one edit away from any other
    limit = max(1, min(3, len(word) // 3)) if len(word) > 1 else 0
    folded = word.lower()
    best, best_distance = None, limit + 1
    for candidate in candidates:
        if candidate == word or abs(len(candidate) - len(word)) > limit:
            continue
        edits = distance(folded, candidate.lower(), best_distance - 1)
        if edits < best_distance:
            best, best_distance = candidate, edits
            if edits == 0:
                break
    return best
