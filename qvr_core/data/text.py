"""Text corpora as windows of bytes or characters: the next token, or a masked one (docs/reference.md#text)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.typed_engine import from_numpy
from qvr_core.data.needs import Need, Needs
from qvr_core.data.problems import DataProblem, a_folder, no_file, not_readable
from qvr_core.data.size_limits import check_regular, check_room

_CHUNK = 1 << 24
BYTES_A_CHARACTER = 24
"""While the characters of a text are numbered: the text twice, sorted, and the numbers."""


@dataclass(frozen=True)
class Corpus:
    """A text as token ids.

    `tokens` is one unsigned integer a token; for bytes it is the file itself, mapped into memory, so a file may be
    larger than that.  `characters[i]` is what id i stands for, None for bytes.
    """

    path: str
    tokens: NDArray[np.unsignedinteger]
    vocabulary: int
    characters: str | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def unit(self) -> str:
        """What a token is: a `byte` or a `character`."""
        return "byte" if self.characters is None else "character"

    def gather(self, positions: Tensor) -> Tensor:
        """Token ids at `positions` (any shape), int64."""
        return from_numpy(self.tokens[positions.numpy()].astype(np.int64))


def read_corpus(path: str, unit: str = "byte", room: int | None = None) -> Corpus:
    """Read a file as bytes (any file) or characters (UTF-8), into at most `room` bytes.  Raises `DataProblem`."""
    file = Path(path)
    try:
        if file.is_dir():
            raise a_folder(path, "Name the text file inside it")
        check_regular(path)
        if file.stat().st_size == 0:
            raise DataProblem("the file is empty", path=path, remedy="A text run needs at least one window of text")
        if unit == "byte":
            return Corpus(path, np.memmap(file, dtype=np.uint8, mode="r"), 256)
        check_room(path, BYTES_A_CHARACTER * file.stat().st_size, room, remedy='Read it as bytes (`unit = "byte"`)')
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise no_file(path) from error
    except PermissionError as error:
        raise not_readable(path) from error
    except UnicodeDecodeError as error:
        raise DataProblem(
            f"byte {error.start} is not UTF-8",
            path=path,
            remedy='Read it as bytes (`unit = "byte"`), or convert the file to UTF-8',
        ) from error
    codes, ids = np.unique(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32), return_inverse=True)
    return Corpus(path, ids.astype(np.uint32), len(codes), "".join(map(chr, codes.tolist())))


def entropies(corpus: Corpus) -> tuple[float, float]:
    """Entropy of a token, and of a token given the one before, in bits; both of the text itself.

    Pairs are counted in a dense table up to 4,096 kinds of token, else by sorting.
    """
    tokens, n = corpus.tokens, corpus.vocabulary
    single = np.zeros(n, np.int64)
    dense = n <= 4096
    pairs = np.zeros(n * n, np.int64) if dense else np.zeros(0, np.int64)
    sparse: list[NDArray[np.int64]] = []
    for start in range(0, len(tokens), _CHUNK):
        chunk = tokens[start : start + _CHUNK + 1].astype(np.int64)
        single += np.bincount(chunk[:_CHUNK], minlength=n)
        codes = chunk[:-1] * n + chunk[1:]
        if dense:
            pairs += np.bincount(codes, minlength=n * n)
        else:
            sparse.append(codes)
    if not dense:
        pairs = np.unique(np.concatenate(sparse), return_counts=True)[1]
    before = np.bincount(np.asarray(tokens[:-1]), minlength=n)
    unigram = _entropy(single)
    return unigram, (_entropy(pairs) - _entropy(before)) if len(tokens) > 1 else unigram


def _entropy(counts: NDArray[np.int64]) -> float:
    shares = counts[counts > 0] / max(int(counts.sum()), 1)
    return float(-(shares * np.log2(shares)).sum())


@dataclass(frozen=True)
class TextTask:
    """How windows become rows of a program.

    `task` is 'next' or 'masked'.  `mask` is 'middle', 'random' or a position.  `shifted` says that the observed site
    is a sequence: its target at t is the token at t + 1.
    """

    task: str
    length: int
    input: Need
    site: Need
    mask: str | int = "middle"
    mask_token: int = 0
    shifted: bool = False


def plan(
    corpus: Corpus,
    needs: Needs,
    *,
    both_ways: bool,
    task: str | None,
    length: int,
    mask: str | int,
    mask_token: int | None,
) -> TextTask:
    """Match a corpus with a program.  Raises `DataProblem` where they do not go together."""

    def misfit(message: str, remedy: str, site: str | None = None) -> DataProblem:
        return DataProblem(message, path=corpus.path, remedy=remedy, site=site)

    if len(needs.inputs) != 1 or needs.inputs[0].kind != "finite" or not needs.inputs[0].sequence:
        remedy = "Text suits a program from a finite set to a finite set that scans, attends or averages over its input"
        if len(needs.inputs) == 1 and needs.inputs[0].kind == "finite":
            remedy += f", or whose type says that it is a sequence (`Seq {needs.inputs[0].written}`)"
        raise misfit(f"`{needs.program}` does not read one sequence of tokens", remedy)
    source = needs.inputs[0]
    targets = [site for site in needs.observed if site.kind == "finite"]
    if len(targets) != 1 or len(needs.observed) != 1 or needs.data:
        others = ", ".join(f"`{need.name}`" for need in (*needs.observed, *needs.data))
        raise misfit(
            f"a text gives one observed token, and `{needs.program}` wants {others or 'none'}",
            "Keep one `observe` of a finite set, or give the data as a table",
        )
    site = targets[0]
    chosen = task or guess_task(site.name, both_ways)
    if chosen == "masked" and site.sequence:
        raise misfit("a masked text gives one target per window, not a sequence", 'Set `task = "next"`', site.name)
    if length >= len(corpus):
        raise misfit(
            f"the text has {len(corpus)} {corpus.unit}s, which is no more than one window of {length}",
            "Use a longer text or a smaller `sequence_length`",
        )
    if isinstance(mask, int) and mask >= length:
        raise misfit(f"`mask = {mask}` is outside a window of {length}", f"Choose 0 to {length - 1}, or `middle`")
    used = _used(corpus)
    _check_vocabulary(corpus, used, source)
    _check_vocabulary(corpus, used, site)
    token = 0
    if chosen == "masked":
        token = _mask_token(corpus, used, source, mask_token)
    return TextTask(chosen, length, source, site, mask, token, site.sequence)


def guess_task(site: str, both_ways: bool) -> str:
    """What a program predicts, by its site's name, else by whether it sees both sides of a position."""
    lowered = site.lower()
    if "mask" in lowered:
        return "masked"
    if "next" in lowered:
        return "next"
    return "masked" if both_ways else "next"


def _used(corpus: Corpus) -> NDArray[np.bool_]:
    """Which ids occur."""
    seen = np.zeros(corpus.vocabulary, bool)
    for start in range(0, len(corpus), _CHUNK):
        seen[corpus.tokens[start : start + _CHUNK]] = True
    return seen


def _check_vocabulary(corpus: Corpus, used: NDArray[np.bool_], need: Need) -> None:
    largest = int(np.flatnonzero(used)[-1])
    if need.size is None or largest < need.size:
        return
    first = (
        int(np.flatnonzero(np.asarray(corpus.tokens[:_CHUNK]) == largest)[0])
        if largest in corpus.tokens[:_CHUNK]
        else None
    )
    where = f" at offset {first}" if first is not None else ""
    raise DataProblem(
        f"{corpus.unit} {largest}{where} is outside `{need.written}`, which has {need.size} values",
        path=corpus.path,
        site=need.name,
        remedy=f"Declare `FinSet {corpus.vocabulary}`"
        + (', or set `unit = "character"` for a smaller vocabulary' if corpus.unit == "byte" else ""),
    )


def _mask_token(corpus: Corpus, used: NDArray[np.bool_], need: Need, chosen: int | None) -> int:
    """The id that stands for the mask: the chosen one, or the smallest that the text does not use."""
    size = need.size or corpus.vocabulary
    if chosen is not None:
        if chosen >= size:
            raise DataProblem(
                f"`mask_token = {chosen}` is outside `{need.written}`, which has {size} values",
                path=corpus.path,
                site=need.name,
                remedy=f"Choose 0 to {size - 1}",
            )
        return chosen
    free = [token for token in range(size) if token >= len(used) or not used[token]]
    if not free:
        raise DataProblem(
            f"every one of the {size} ids occurs, so none is free to stand for the mask",
            path=corpus.path,
            site=need.name,
            remedy="Name one with `mask_token`, or give the program a larger FinSet",
        )
    return free[0]


class TextWindows:
    """Windows of a stretch of a corpus as rows: context (B, L) int64 and target (B,), or (B, L) where `shifted`."""

    def __init__(self, corpus: Corpus, task: TextTask, start: int, stop: int, part: str = "text") -> None:
        self.corpus = corpus
        self.task = task
        self.start = start
        reach = task.length + (1 if task.task == "next" else 0)
        self.rows = stop - start - reach + 1
        if self.rows < 1:
            raise DataProblem(
                f"the {part} has {stop - start} of the file's {len(corpus)} {corpus.unit}s, which are too few for a "
                f"window of {task.length}",
                path=corpus.path,
                remedy="Use a longer text, a smaller `sequence_length` or another `held_out` share",
            )

    def batch(self, rows: Tensor, generator: arrays.Generator | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """The rows of these numbers (each below `rows`): input and observations."""
        task = self.task
        length = task.length
        span = length + (1 if task.task == "next" else 0)
        window = self.corpus.gather(self.start + rows[:, None] + arrays.arange(span))
        if task.task == "next":
            target = window[:, 1:] if task.shifted else window[:, -1]
            return window[:, :-1].contiguous(), {task.site.name: target.contiguous()}
        match task.mask:
            case "middle":
                at = arrays.full((len(rows),), length // 2)
            case "random":
                at = arrays.randint(length, (len(rows),), generator=generator)
            case position:
                at = arrays.full((len(rows),), int(position))
        target = window.gather(1, at[:, None])[:, 0]
        return window.scatter(1, at[:, None], task.mask_token), {task.site.name: target}

    def spread(self, count: int) -> Tensor:
        """At most `count` row numbers, evenly over the stretch; always the same ones."""
        count = min(count, self.rows)
        return (arrays.arange(count) * (self.rows / count)).long()

    @property
    def tokens_per_row(self) -> int:
        """Tokens that one row predicts."""
        return self.task.length if self.task.shifted else 1


def split(corpus: Corpus, task: TextTask, held_out: float) -> tuple[TextWindows, TextWindows | None]:
    """Training windows, and windows of the last `held_out` share of the text; no window reaches over the border."""
    if held_out == 0:
        return TextWindows(corpus, task, 0, len(corpus)), None
    border = math.floor(len(corpus) * (1 - held_out))
    return (
        TextWindows(corpus, task, 0, border, "training part"),
        TextWindows(corpus, task, border, len(corpus), "held-out part"),
    )
