"""Sentences of a file as numbers of words: text split at blanks, or lists of words, padded behind their ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from qvr_core.data.column_names import nearest
from qvr_core.data.needs import Need
from qvr_core.data.problems import DataProblem
from qvr_core.data.typed.cell_values import MOST_SPELT, Wrong
from qvr_core.data.typed.labels import missing, whole
from qvr_core.data.typed.sources import Array
from qvr_core.lexicon_files import LexiconProblem, known_words
from qvr_core.semantics.types.sentences import PADDING

MOST_SHOWN = 6


@dataclass(frozen=True)
class Words:
    """The words of a deduction: those that it reads, the number of each, and from where a file counts."""

    deduction: str
    known: tuple[str, ...]
    numbers: dict[str, int]
    first: int = 0
    reads: frozenset[str] = field(default_factory=frozenset[str])

    def number(self, cell: Any) -> int:
        """The number of one word, which may be given as its number.  Raises `Wrong`."""
        if isinstance(cell, str) and cell in self.reads:
            return self.numbers[cell]
        if not isinstance(cell, str) and (number := whole(cell)) is not None:
            return self._numbered(number)
        raise Wrong(f"`{cell}` is no word of `{self.deduction}`", self._remedy(str(cell)))

    def _numbered(self, number: int) -> int:
        place = number - self.first
        if 0 <= place < len(self.numbers):
            return place
        last = len(self.numbers) - 1 + self.first
        raise Wrong(f"there is no word {number}: `{self.deduction}` has {self.first} to {last}", "Write the words")

    def _remedy(self, cell: str) -> str:
        near = nearest(cell, self.known) if len(self.known) <= MOST_SPELT else None
        guess = f"Did you mean `{near}`? " if near is not None else ""
        more = f" and {len(self.known) - MOST_SHOWN} more" if len(self.known) > MOST_SHOWN else ""
        return f"{guess}Its words are {', '.join(f'`{word}`' for word in self.known[:MOST_SHOWN])}{more}"


def words_of(need: Need, path: str, first: int) -> Words:
    """The words that the sentences of a need may hold.  Raises `DataProblem` where a lexicon's file is not there."""
    assert need.lexicon is not None
    try:
        known = known_words(need.lexicon)
    except LexiconProblem as problem:
        remedy = "Correct the path, which starts where the command runs"
        raise DataProblem(str(problem), path=path, site=need.name, remedy=remedy) from problem
    order = known if need.lexicon.labels is None else need.lexicon.labels
    numbers = {word: at for at, word in enumerate(order)}
    return Words(need.lexicon.deduction, known, numbers, first, frozenset(known) & frozenset(order))


def sentence(cell: Any, words: Words) -> list[int]:
    """The numbers of one sentence: text, or a list of words or of their numbers.  Raises `Wrong`."""
    if missing(cell):
        raise Wrong("the sentence is missing", "Fill it in, or leave the row out")
    if isinstance(cell, list | tuple):
        items = list(cast("Sequence[Any]", cell))
        while items and (missing(items[-1]) or items[-1] == PADDING):
            items.pop()
    else:
        items = cast("list[Any]", cell.split() if isinstance(cell, str) else [cell])
    if not items:
        raise Wrong("the sentence has no words", "Fill it in, or leave the row out")
    texts = [item for item in items if isinstance(item, str)]
    if texts and len(texts) < len(items):
        number = next(item for item in items if not isinstance(item, str))
        message = f"{number} stands among words, and could be the number of a word or a word that is missing"
        raise Wrong(message, f'Write the word, or all as numbers; a word that is a number stands in quotes, "{number}"')
    return [words.number(item) for item in items]


def sentences(cells: Iterable[Any], need: Need, path: str, column: str, words: Words, row: int = 1) -> list[list[int]]:
    """The numbers of all, the first of which stands in `row`.  Raises `DataProblem` with row and word."""
    found: list[list[int]] = []
    for at, cell in enumerate(cells, row):
        try:
            found.append(sentence(cell, words))
        except Wrong as wrong:
            raise DataProblem(
                wrong.message, path=path, column=column, row=at, site=need.name, remedy=wrong.remedy
            ) from wrong
    return found


def padded(rows: Sequence[Sequence[int]]) -> tuple[list[int], int]:
    """Sentences one after another, all as long as the longest, and how long that is."""
    longest = max(map(len, rows), default=0)
    return [number for row in rows for number in (*row, *(PADDING,) * (longest - len(row)))], longest


def cells_of_array(array: Array, axes: int) -> list[Any] | None:
    """The sentences of an array that runs over so many sets; None of one of another shape."""
    if len(array.shape) == axes:
        return list(array.flat)
    if len(array.shape) != axes + 1:
        return None
    length = array.shape[-1]
    return [list(array.flat[at : at + length]) for at in range(0, len(array.flat), length)] if length else []


def cells_undeclared(array: Array, need: Need, path: str) -> tuple[list[Any], bool]:
    """The sentences of an array whose sets nothing declares, and whether it is one sentence alone.

    Raises `DataProblem` where a list may be one sentence or several.
    """
    if len(array.shape) == 0:
        return list(array.flat), True
    several = any(isinstance(one, list | tuple) or (isinstance(one, str) and " " in one.strip()) for one in array.flat)
    if len(array.shape) == 1 and not several:
        message = f"a list of {len(array.flat)} words may be one sentence, or as many sentences of one word"
        remedy = f"Declare which: `data {need.name} : Seq Word`, or `data {need.name} : Sentence -> Seq Word`"
        raise DataProblem(message, path=path, column=need.name, site=need.name, remedy=remedy)
    cells = cells_of_array(array, 1)
    if cells is None:
        message = f"the shape is {' × '.join(map(str, array.shape))}, and sentences are lists of words"
        raise DataProblem(message, path=path, column=need.name, site=need.name, remedy="Give a list of sentences")
    return cells, False
