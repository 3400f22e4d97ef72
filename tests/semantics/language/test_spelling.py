"""Likely spellings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qvr_core.semantics.language.spelling import SpellingIndex, closest, distance

WORDS = st.text("abcde", max_size=8)


def plain_distance(left: str, right: str) -> int:
    """Optimal string alignment, by the book."""
    table = [[i + j if i * j == 0 else 0 for j in range(len(right) + 1)] for i in range(len(left) + 1)]
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            cost = left[i - 1] != right[j - 1]
            best = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + cost)
            if i > 1 and j > 1 and left[i - 1] == right[j - 2] and left[i - 2] == right[j - 1]:
                best = min(best, table[i - 2][j - 2] + 1)
            table[i][j] = best
    return table[-1][-1]


@given(WORDS, WORDS, st.integers(0, 4))
def test_distance_is_exact_up_to_its_limit(left: str, right: str, limit: int) -> None:
    assert distance(left, right, limit) == min(plain_distance(left, right), limit + 1)


def test_near_words_are_found_and_far_ones_are_not() -> None:
    words = ["Embedded", "Hidden", "Token", "scale"]
    assert closest("Embeded", words) == "Embedded"
    assert closest("hidden", words) == "Hidden"
    assert closest("sclae", words) == "scale"
    assert closest("Latent", words) is None


@given(st.lists(WORDS, unique=True), st.lists(WORDS), WORDS)
def test_the_index_finds_what_a_look_at_every_word_finds(words: list[str], gone: list[str], word: str) -> None:
    index = SpellingIndex()
    for each in words:
        index.put(each, True)
        index.closest(word)
    for each in gone:
        index.put(each, False)
    assert index.closest(word) == closest(word, sorted(set(words) - set(gone)))
