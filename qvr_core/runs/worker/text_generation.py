"""What a fitted program says: text that it writes, masked tokens that it fills in, posterior predictive draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qvr_core import inference
from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.data.sentence_pairs import SentencePairs
from qvr_core.data.text import Corpus, TextTask, TextWindows
from qvr_core.runs.evaluation.checkpoint import newest
from qvr_core.runs.evaluation.curvature import approximated
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import Prepared, prepare
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runtime.programs.handlers import condition, densities, tables
from qvr_core.runtime.values.term_tables import of_one_size
from qvr_core.semantics.types.deterministic import read_ahead

if TYPE_CHECKING:
    from qvr_core.runs.fit.svi import SviFit


@dataclass(frozen=True)
class Filled:
    """A held-out window: what stands before and after the hidden token, the token, and what the program draws."""

    before: str
    after: str
    truth: str
    draws: tuple[str, ...]


def restored(run: RunDirectory) -> SviFit:
    """The fit of a run at its newest whole checkpoint.  Raises `Refused` where there is none."""
    job = run.job()
    if job.config.algorithm != "svi" and not run.posterior.exists():
        shown = f"see `qvr runs show {run.run_id}`"
        raise Refused("no-draws", f"run {run.run_id} is {run.status()} and has no draws: {shown}")
    if job.config.algorithm != "svi":
        raise Refused("no-checkpoint", f"run {run.run_id} kept draws, not a fit: see `qvr runs export`")
    # Before anything else: what made a run fail would only be said again.
    found, damaged = newest(run.checkpoints)
    if found is None and damaged:
        raise damaged[0]
    if found is None:
        shown = f"see `qvr runs show {run.run_id}`"
        raise Refused("no-checkpoint", f"run {run.run_id} is {run.status()} and has no checkpoint: {shown}")
    from qvr_core.runs.fit.svi import SviFit

    fit = SviFit(prepare(job, analysed(job)), Stop())
    for _ in fit.restore():
        pass
    return fit


def corpus_and_task(prepared: Prepared) -> tuple[Corpus, TextTask]:
    """The text of a run, and how it is read."""
    windows = prepared.train
    corpus, task = getattr(windows, "corpus", None), getattr(windows, "task", None)
    if not isinstance(corpus, Corpus) or not isinstance(task, TextTask):
        raise Refused("no-text", "this run was not fitted to a text")
    return corpus, task


def encode(corpus: Corpus, text: str) -> list[int]:
    """A text as token ids; characters that the corpus does not know are left out."""
    if corpus.characters is None:
        return list(text.encode())
    ids = {character: number for number, character in enumerate(corpus.characters)}
    return [ids[character] for character in text if character in ids]


def decode(corpus: Corpus, tokens: list[int]) -> str:
    """Token ids as text; bytes that are no text are replaced."""
    if corpus.characters is None:
        return bytes(token if token < 256 else 63 for token in tokens).decode("utf-8", "replace")
    return "".join(corpus.characters[token] if token < len(corpus.characters) else "?" for token in tokens)


def generate(fit: SviFit, prompt: str, count: int, seed: int) -> Iterator[int]:
    """`count` tokens after the prompt, one at a time: each is drawn given the window before it."""
    corpus, task = corpus_and_task(fit.prepared)
    if task.task != "next":
        raise Refused("not-a-generator", "this program fills in masked tokens: it does not write on")
    arrays.manual_seed(seed)
    tokens = encode(corpus, prompt)
    if len(tokens) < task.length:
        # What stands before the prompt is taken from the text, so that the program sees a window as it knows them.
        start = int(arrays.randint(len(corpus) - task.length, ()))
        tokens = [int(token) for token in corpus.gather(arrays.arange(start, start + task.length))] + tokens
    fit.model.eval()
    with arrays.no_grad():
        for _ in range(count):
            window = arrays.tensor([tokens[-task.length :]])
            drawn = fit.model.execute(window.to(fit.prepared.device), densities(False)).sites[task.site.name].value
            assert isinstance(drawn, Tensor)
            token = int(drawn.reshape(-1)[-1])
            tokens.append(token)
            yield token


def fill(fit: SviFit, count: int, draws: int, seed: int) -> Iterator[Filled]:
    """Held-out windows (or training ones, where nothing was held out) with the masked token filled in."""
    corpus, task = corpus_and_task(fit.prepared)
    windows = fit.prepared.held_out or fit.prepared.train
    assert isinstance(windows, TextWindows)
    generator = arrays.Generator().manual_seed(seed)
    arrays.manual_seed(seed)
    rows = arrays.randint(windows.rows, (count,), generator=generator)
    x, observations = windows.batch(rows, generator)
    fit.model.eval()
    with arrays.no_grad():
        drawn = [
            fit.model.execute(x.to(fit.prepared.device), densities(False)).sites[task.site.name].value
            for _ in range(draws)
        ]
    for row in range(count):
        at = int((x[row] == task.mask_token).int().argmax())
        yield Filled(
            decode(corpus, [int(token) for token in x[row, :at]]),
            decode(corpus, [int(token) for token in x[row, at + 1 :]]),
            decode(corpus, [int(observations[task.site.name][row])]),
            tuple(decode(corpus, [int(values[row])]) for values in drawn if isinstance(values, Tensor)),
        )


@dataclass(frozen=True)
class FilledPair:
    """A held-out pair as the program reads it, the tokens that were selected with its likeliest guesses, and, where the
    program says so, which label it gives the pair and which is true."""

    shown: str
    tokens: tuple[tuple[str, str], ...]
    """(truth, guess)."""
    label: tuple[str, str] | None
    """(truth, guess)."""


def fill_pairs(fit: SviFit, count: int, seed: int) -> Iterator[FilledPair]:
    """Held-out sentence pairs (or training ones, where nothing was held out) with what the program makes of them."""
    pairs = fit.prepared.held_out or fit.prepared.train
    assert isinstance(pairs, SentencePairs)
    task, generator = pairs.task, arrays.Generator().manual_seed(seed)
    x, observations = pairs.batch(arrays.randint(pairs.rows, (count,), generator=generator), generator)
    fit.model.eval()
    with arrays.no_grad():
        moved = fit.prepared.move((x, observations))
        sites = fit.model.execute(moved[0], condition(moved[1]), tables).sites
    best = {name: site.log_table.argmax(-1).cpu() for name, site in sites.items() if site.log_table is not None}
    labels = None if task.follows is None else task.follows.labels or ("0", "1")
    for row in range(count):
        tokens: list[tuple[str, str]] = []
        if task.masked is not None and task.mask is not None and task.masked.name in best:
            chosen = observations[task.mask.name][row]
            answers = zip(observations[task.masked.name][row][chosen], best[task.masked.name][row][chosen], strict=True)
            tokens = [(pairs.text([int(truth)]).strip(), pairs.text([int(guess)]).strip()) for truth, guess in answers]
        label = None
        if task.follows is not None and labels is not None and task.follows.name in best:
            label = (labels[int(observations[task.follows.name][row])], labels[int(best[task.follows.name][row])])
        yield FilledPair(pairs.text([int(token) for token in x[0][row]]), tuple(tokens), label)


DRAWN_AT_MOST, PIECE = 200_000, 64
"""Rows times draws that are made of the data of a fit, and rows at once."""


def predictive(fit: SviFit, count: int, seed: int) -> tuple[dict[str, Tensor], str | None]:
    """Posterior predictive draws of every site, (count, …), on the data that the run was fitted to, and what is to be
    said of them: of rows by the ten thousand only the first are drawn."""
    guide, _ = approximated(fit.prepared, fit.guide)
    arrays.manual_seed(seed)
    train = fit.prepared.train
    whole = fit.prepared.needs.statistical and bool(fit.model.predicted)
    rows = train.rows if whole or train.rows * count <= DRAWN_AT_MOST else min(train.rows, PIECE)
    observed = {need.name for need in fit.prepared.needs.observed} - read_ahead(fit.model.program)
    fit.model.eval()

    def piece(first: int, last: int) -> dict[str, Tensor]:
        x, observations = fit.prepared.move(train.batch(arrays.arange(first, last)))
        data = {name: value for name, value in observations.items() if name not in observed}
        return inference.Predictive(fit.model, guide, num_samples=count)(x, data, guide_observations=observations)

    note = (
        f"drawn for the first {rows} of {train.rows:,} rows; `--data` draws for those of a file"
        if rows < train.rows
        else None
    )
    # only what has an axis of rows behind that of draws can be made in pieces
    if whole or rows <= PIECE or not fit.model.program.uses_input:
        return piece(0, rows), note
    pieces = [piece(first, min(first + PIECE, rows)) for first in range(0, rows, PIECE)]
    return {name: arrays.cat(of_one_size([one[name] for one in pieces]), 1) for name in pieces[0]}, note
