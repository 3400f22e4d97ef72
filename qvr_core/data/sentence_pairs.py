"""Sentence pairs with masked tokens: the two tasks of BERT's pretraining (Devlin et al. 2019, section 3.1).

A row is `[CLS] a [SEP] b [SEP]`, padded.  Half of the time b follows a in the text, else it is a sentence of another
paragraph.  Of the tokens that are not special 15 % are selected; 80 % of these are hidden by [MASK], 10 % replaced by a
random token, 10 % left as they are.  All of it is drawn anew whenever a row is asked for, from the generator given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.typed_engine import from_numpy
from qvr_core.data.needs import Need, Needs
from qvr_core.data.problems import DataProblem
from qvr_core.data.vocabulary import CLS, MASK, PAD, SEP, SMALLEST, SPECIAL, UNKNOWN, Vocabulary

SELECTED = 0.15
HIDDEN, REPLACED = 0.8, 0.1
TRUE_NEXT = 0.5
AROUND = 3
"""Special tokens of a row."""
SHORTEST = 16
"""Rows of fewer positions hold no two sentences worth the name."""

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class PairTask:
    """What of a program each part of a row is for; `masked` with its positions, or `follows`, may be absent."""

    length: int
    tokens: Need
    segments: Need
    lengths: Need
    masked: Need | None
    at: Need | None
    mask: Need | None
    follows: Need | None


def plan(path: str, needs: Needs, *, length: int, unit: str, positions: int | None = None) -> PairTask:
    """Match sentence pairs with a program, which has learned `positions` of them (None: any).

    Raises `DataProblem` where they do not go together.
    """

    def misfit(message: str, remedy: str, site: str | None = None) -> DataProblem:
        return DataProblem(message, path=path, remedy=remedy, site=site)

    finite = [need for need in needs.inputs if need.kind == "finite" and need.sequence]
    if len(needs.inputs) != 2 or len(finite) != 2:
        raise misfit(
            f"`{needs.program}` does not read a sequence of tokens and one of segments",
            "Sentence pairs suit a program on `Token * Segment` that attends to both",
        )
    tokens, segments = finite
    if segments.size is not None and segments.size < 2:
        raise misfit("there are two segments", "Declare `{first, second}`", segments.name)
    least = SMALLEST[unit]
    if tokens.size is None or tokens.size < least:
        raise misfit(
            f"{tokens.size} tokens are too few for a vocabulary of unit `{unit}`, which needs {least}",
            "Make the set of tokens larger",
            tokens.name,
        )
    if length < SHORTEST:
        remedy = f"Set `sequence_length = {min(positions or 64, 64)}`"
        if positions is not None and positions < SHORTEST:
            remedy = "Give the program's positions max_length=64, and set `sequence_length = 64`"
        raise misfit(f"a pair does not fit into {length} positions", remedy)
    used = {need.purpose: need for need in needs.data}
    lengths = used.pop(("lengths", ""), None)
    if lengths is None:
        raise misfit(
            f"rows are padded, and `{needs.program}` does not say where it reads their lengths",
            "Write `[lengths=valid]` behind the program's type",
        )
    masked = _one([need for need in needs.observed if need.kind == "finite" and need.sequence], "masked tokens", misfit)
    follows = _one(
        [need for need in needs.observed if need.kind == "finite" and not need.sequence], "what follows", misfit
    )
    others = [need for need in needs.observed if need is not masked and need is not follows]
    at = mask = None
    if masked is not None:
        if masked.size != tokens.size:
            raise misfit(
                f"{masked.size} tokens are predicted and {tokens.size} read", "Use one set for both", masked.name
            )
        at, mask = used.pop(("at", masked.name), None), used.pop(("mask", masked.name), None)
        if at is None or mask is None:
            raise misfit(
                "the masked tokens stand at some positions of a row only, and rows have different numbers of them",
                "Write `[at=selected, mask=counted]` behind the observe",
                masked.name,
            )
    if follows is not None and follows.size != 2:
        raise misfit("one sentence follows another or not", "Observe a set of two values", follows.name)
    others += used.values()
    if others or (masked is None and follows is None):
        names = ", ".join(f"`{need.name}`" for need in others) or "nothing"
        raise misfit(
            f"pairs give masked tokens and whether b follows a, and `{needs.program}` wants {names}",
            "Observe a sequence of tokens with `at=` and `mask=`, a set of two values, or both",
            others[0].name if others else None,
        )
    return PairTask(length, tokens, segments, lengths, masked, at, mask, follows)


def _one(found: list[Need], what: str, misfit: Callable[..., DataProblem]) -> Need | None:
    if len(found) > 1:
        names = " and ".join(f"`{need.name}`" for need in found)
        raise misfit(f"{names} could both be {what}", "Keep one of them", found[1].name)
    return found[0] if found else None


# ---------------------------------------------------------------- the parts of a text


def parted(paragraphs: Sequence[list[str]], held_out: float, path: str) -> tuple[list[list[str]], list[list[str]]]:
    """Paragraphs of two sentences or more for training, and the held-out ones, evenly spread.  Raises `DataProblem`."""
    whole = [paragraph for paragraph in paragraphs if len(paragraph) > 1]
    kept = [math.floor((i + 1) * held_out) > math.floor(i * held_out) for i in range(len(whole))]
    train = [paragraph for paragraph, out in zip(whole, kept, strict=True) if not out]
    held = [paragraph for paragraph, out in zip(whole, kept, strict=True) if out]
    if len(train) < 2 or (held_out and len(held) < 2):
        raise DataProblem(
            f"there are {len(whole)} paragraphs of two sentences or more",
            path=path,
            remedy="Use a longer text: a blank line ends a paragraph, and training and held-out part need two each",
        )
    return train, held


class SentencePairs:
    """Pairs of neighbouring sentences of some paragraphs as rows; `rows` counts the first sentences."""

    def __init__(self, paragraphs: Sequence[list[str]], vocabulary: Vocabulary, task: PairTask, path: str) -> None:
        self.vocabulary = vocabulary
        self.task = task
        ids = vocabulary.encode([sentence for paragraph in paragraphs for sentence in paragraph])
        self.ids: Ids = np.concatenate([np.asarray(each, np.int64) for each in ids])
        self.starts: Ids = np.cumsum([0, *map(len, ids)])
        counts = [len(paragraph) for paragraph in paragraphs]
        self.paragraph: Ids = np.repeat(np.arange(len(counts)), counts)
        whole = np.asarray([len(each) > 0 for each in ids])
        same = (self.paragraph[:-1] == self.paragraph[1:]) & whole[:-1] & whole[1:]
        self.first: Ids = np.flatnonzero(same)
        self.rows = len(self.first)
        if self.rows < 2 or len(np.unique(self.paragraph[self.first])) < 2:
            raise DataProblem(
                "there are not two paragraphs with two sentences that hold a word",
                path=path,
                remedy="Use a longer text",
            )

    @property
    def tokens(self) -> int:
        """How many tokens the texts hold."""
        return len(self.ids)

    @property
    def unknown(self) -> float:
        """Share of the tokens that the vocabulary lacks."""
        return float((self.ids == UNKNOWN).mean())

    def spread(self, count: int) -> Tensor:
        """At most `count` row numbers, evenly over all; always the same ones."""
        count = min(count, self.rows)
        return (arrays.arange(count) * (self.rows / count)).long()

    def batch(
        self, rows: Tensor, generator: arrays.Generator | None = None
    ) -> tuple[tuple[Tensor, Tensor], dict[str, Tensor]]:
        """The rows of these numbers: tokens and segments (B, L), and what is observed of them.

        L is the longest row of the batch, at most the task's length.  Positions and masked tokens are (B, P), P the
        largest number of selected ones; `mask` (B, P) is false where a row has fewer.
        """
        chosen = generator if generator is not None else arrays.Generator().manual_seed(0)
        draw = np.random.default_rng(int(arrays.randint(1 << 62, (), generator=chosen)))
        first = self.first[rows.numpy()]
        follows = draw.random(len(first)) < TRUE_NEXT
        second = np.where(follows, first + 1, self._elsewhere(first, draw))
        tokens, segments, lengths = self._rows(first, second)
        task, observed = self.task, {}
        if task.masked is not None and task.at is not None and task.mask is not None:
            at, counted = self._select(tokens, lengths, draw)
            row = np.arange(len(tokens))[:, None]
            truth = tokens[row, at]
            tokens[row, at] = np.where(counted, self._disguised(truth, draw), truth)
            observed = {
                task.masked.name: from_numpy(truth),
                task.at.name: from_numpy(at),
                task.mask.name: from_numpy(counted),
            }
        if task.follows is not None:
            observed[task.follows.name] = from_numpy(follows.astype(np.int64))
        observed[task.lengths.name] = from_numpy(lengths)
        return (from_numpy(tokens), from_numpy(segments)), observed

    def _elsewhere(self, first: Ids, draw: np.random.Generator) -> Ids:
        """A sentence of another paragraph for each; such as follow one too, so that b alone tells nothing."""
        second = self.first[draw.integers(self.rows, size=len(first))] + 1
        while len(same := np.flatnonzero(self.paragraph[second] == self.paragraph[first])):
            second[same] = self.first[draw.integers(self.rows, size=len(same))] + 1
        return second

    def _rows(self, first: Ids, second: Ids) -> tuple[Ids, Ids, Ids]:
        """Tokens and segments (B, L), padded, and the lengths (B,); the longer sentence loses its end first."""
        room = self.task.length - AROUND
        left = self.starts[first + 1] - self.starts[first]
        right = self.starts[second + 1] - self.starts[second]
        half = room // 2
        left, right = (
            np.minimum(left, np.maximum(room - right, room - half)),
            np.minimum(right, np.maximum(room - left, half)),
        )
        lengths = left + right + AROUND
        tokens = np.full((len(first), int(lengths.max())), PAD, np.int64)
        segments = np.zeros_like(tokens)
        tokens[:, 0] = CLS
        for i, (a, b, p, q) in enumerate(zip(first, second, left, right, strict=True)):
            tokens[i, 1 : p + 1] = self.ids[self.starts[a] : self.starts[a] + p]
            tokens[i, p + 2 : p + q + 2] = self.ids[self.starts[b] : self.starts[b] + q]
            tokens[i, [p + 1, p + q + 2]] = SEP
            segments[i, p + 2 : p + q + AROUND] = 1
        return tokens, segments, lengths

    def _select(self, tokens: Ids, lengths: Ids, draw: np.random.Generator) -> tuple[Ids, NDArray[np.bool_]]:
        """Positions (B, P) and which of them count: 15 % of each row's tokens, rounded up or down at random."""
        candidates = tokens >= len(SPECIAL)
        counts = np.floor(SELECTED * candidates.sum(1) + draw.random(len(tokens))).astype(np.int64)
        most = max(int(counts.max()), 1)
        keys = np.where(candidates, draw.random(tokens.shape), 2.0)
        at: Ids = np.argsort(keys, axis=1, kind="stable")[:, :most]
        places: Ids = np.arange(at.shape[1], dtype=np.int64)
        counted: NDArray[np.bool_] = np.less(places, counts[:, None])
        return np.where(counted, at, 0), counted

    def _disguised(self, truth: Ids, draw: np.random.Generator) -> Ids:
        """What stands in a selected token's place."""
        kind = draw.random(truth.shape)
        other = draw.integers(len(SPECIAL), self.vocabulary.size, size=truth.shape)
        return np.where(kind < HIDDEN, MASK, np.where(kind < HIDDEN + REPLACED, other, truth))

    def text(self, ids: Sequence[int]) -> str:
        """Ids as text, padding left out."""
        return self.vocabulary.decode([token for token in ids if token != PAD])
