"""Likely spellings: edit distance and the nearest of some words."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache


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
    if not a or not b:
        return len(a) + len(b)
    # A column of the table of distances in four integers: how each of its cells differs from the one above (up, down)
    # and from the one above to the left (same).  Hyyrö, A Bit-Vector Algorithm for Computing Levenshtein and Damerau
    # Edit Distances, Nordic Journal of Computing 10, 2003.
    places: dict[str, int] = {}
    for index, letter in enumerate(a):
        places[letter] = places.get(letter, 0) | 1 << index
    last = 1 << len(a) - 1
    every = 2 * last - 1
    up, down, same, before = every, 0, 0, 0
    edits, left_over = len(a), len(b)
    for letter in b:
        here = places.get(letter, 0)
        swapped = ((~same & here) << 1) & before
        same = (((here & up) + up) ^ up) | here | down | swapped
        more, less = down | (every & ~(same | up)), same & up
        left_over -= 1
        edits += bool(more & last) - bool(less & last)
        if edits - left_over > limit:
            return limit + 1
        more, less = more << 1 | 1, less << 1
        up, down, before = less | (every & ~(same | more)), more & same, here
    return min(edits, limit + 1)


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` was probably meant to be, or None.

    Up to a third of the letters may differ; other capitals count as no edit.  Among equals the first one wins.
    """
    limit = _limit(word)
    folded, own = word.lower(), letters(word)
    best, best_distance = None, limit + 1
    for candidate in candidates:
        if candidate == word or abs(len(candidate) - len(word)) > limit:
            continue
        if (letters(candidate) ^ own).bit_count() > 2 * limit:
            continue
        edits = distance(folded, candidate.lower(), best_distance - 1)
        if edits < best_distance:
            best, best_distance = candidate, edits
            if edits == 0:
                break
    return best


def _limit(word: str) -> int:
    # any letter is one edit away from any other
    return max(1, min(3, len(word) // 3)) if len(word) > 1 else 0


MOST_CANDIDATES = 600


def candidates(names: Collection[str]) -> Collection[str]:
    """`names` as likely spellings; none where they are so many that going through them for each mistake takes long."""
    return names if len(names) <= MOST_CANDIDATES else ()


class SpellingIndex:
    """Words by length and letters, so that few of many need a comparison with a misspelt one."""

    def __init__(self) -> None:
        self._by_length: dict[int, dict[str, int]] = {}
        self._found: dict[str, str | None] = {}
        self.version = 0

    def put(self, word: str, belongs: bool) -> None:
        """Bring a word in, or take it out."""
        group = self._by_length.setdefault(len(word), {})
        if (word in group) == belongs:
            return
        self._found.clear()
        self.version += 1
        if belongs:
            group[word] = letters(word)
        else:
            del group[word]

    def closest(self, word: str) -> str | None:
        """What `closest` says of all words in alphabetical order."""
        if word not in self._found:
            limit, own = _limit(word), letters(word)
            near = [
                candidate
                for length in range(len(word) - limit, len(word) + limit + 1)
                for candidate, its in self._by_length.get(length, {}).items()
                if (its ^ own).bit_count() <= 2 * limit
            ]
            self._found[word] = closest(word, sorted(near))
        return self._found[word]


@lru_cache(maxsize=65536)
def letters(word: str) -> int:
    """The letters of a word as bits: one edit changes at most two."""
    bits = 0
    for letter in word.lower():
        bits |= 1 << (ord(letter) & 63)
    return bits
