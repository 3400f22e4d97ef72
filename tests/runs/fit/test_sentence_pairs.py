"""Runs on sentence pairs: the figures that they report, and that going on changes nothing."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path

import pytest
import torch

from qvr_core.runs.evaluation.accuracy import wilson
from qvr_core.runs.fit.prefetch import Ahead
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.record.atomic_files import read_json
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.protocol import Accuracies, CheckpointWritten, Event, Failed, Finished, Job, parse_event
from qvr_core.runs.record.store import RunDirectory, RunStore
from qvr_core.runs.worker.job import conduct
from qvr_core.runs.worker.text_generation import fill_pairs, restored
from tests.patience import HANG
from tests.runs.jobs import start

MODEL = """\
object Token : FinSet 120
object Segment : {first, second}
object Follows : {random, next}
object Hidden : Real 16
morphism token_embed : Token -> Hidden [role=embed]
morphism segment_embed : Segment -> Hidden [role=embed]
morphism place : Hidden -> Hidden [role=position, max_length=32]
morphism attend : Hidden -> Hidden [role=attention, heads=2, dropout=0.1]
morphism settle : Hidden -> Hidden [role=norm]
morphism masked_out : Hidden -> Token [role=kernel, param_source=linear] ~ Categorical
morphism next_out : Hidden -> Follows [role=kernel, param_source=linear] ~ Categorical

program both(token, segment) : Hidden * Hidden -> Hidden
    let sum = token + segment
    return sum

let encoder = token_embed @ segment_embed >> both >> place >> residual(attend) >> settle

program small_bert(tokens, segments) : Token * Segment -> Token [lengths=valid]
    let states = encoder(tokens, segments)
    observe masked_token : Token <- masked_out(states) [at=selected, mask=counted]
    observe follows : Follows <- next_out(states[0])
    return masked_token
"""


@pytest.fixture
def prose(tmp_path: Path) -> Path:
    """Paragraphs about one thing each: what follows is about the same thing."""
    draw = random.Random(0)
    things = [[f"thing{i}x{j}" for j in range(4)] for i in range(20)]
    parts = []
    for _ in range(240):
        words = draw.choice(things)
        parts.append(" ".join(f"The {' '.join(draw.choices(words, k=6))}." for _ in range(4)).replace(". the", ". The"))
    file = tmp_path / "prose.txt"
    file.write_text("\n\n".join(parts), encoding="utf-8")
    return file


def make_job(folder: Path, model: str = MODEL, **config: object) -> Job:
    asked = {
        "data": "pairs:prose.txt",
        "sequence_length": 24,
        "batch_size": 16,
        "threads": 1,
        "held_out": 0.2,
        **config,
    }
    return RunStore(folder).create(
        path="m.qvr", text=model, program=None, config=RunConfig.model_validate(asked), base=str(folder)
    )


def conducted(job: Job) -> tuple[list[Event], Event]:
    """The run in this process: a worker would only load torch once more."""
    events: list[Event] = []
    conduct(job, Stop(), events.append)
    return events, events[-1]


@pytest.mark.long
def test_a_run_reports_how_often_it_is_right(tmp_path: Path, prose: Path) -> None:
    job = make_job(tmp_path, steps=600, learning_rate=0.01, schedule="cosine", held_out_rows=150)
    events, last = conducted(job)
    assert isinstance(last, Finished), last
    found = [event for event in events if isinstance(event, Accuracies)]
    assert last.accuracies == found[-1] and last.held_out is None
    assert parse_event(found[-1].encoded()) == found[-1]
    masked, follows = found[-1].sites
    assert (masked.site, follows.site) == ("masked_token", "follows")
    assert follows.count == found[-1].rows == 144 and masked.count > 144
    assert masked.low > masked.baseline and follows.low > follows.baseline
    assert masked.low < masked.accuracy < masked.high
    assert follows.commonest in ("random", "next")
    # what `qvr sample` shows of it
    shown = list(fill_pairs(restored(RunDirectory.of(job)), 40, 1))
    assert all(pair.shown.startswith("[CLS]") and pair.label is not None for pair in shown)
    assert sum(pair.label[0] == pair.label[1] for pair in shown if pair.label) > 20
    assert sum(truth == guess for pair in shown for truth, guess in pair.tokens) > 10


async def test_a_resumed_run_has_the_losses_of_an_unbroken_one(tmp_path: Path, prose: Path) -> None:
    whole = make_job(tmp_path, steps=60, held_out=0)
    assert isinstance(conducted(whole)[1], Finished)
    job = make_job(tmp_path, steps=60, held_out=0, checkpoint_steps=10)
    seen = asyncio.Event()

    def look(event: Event) -> None:
        if isinstance(event, CheckpointWritten):
            seen.set()

    worker = await start(job, look)
    await asyncio.wait_for(seen.wait(), HANG)
    worker.kill()
    await worker.wait()
    vocabulary = read_json(RunDirectory.of(job).path / "vocabulary.json")
    assert vocabulary["unit"] == "word"
    assert isinstance(conducted(RunStore(tmp_path).resume(job.run_id))[1], Finished)
    losses = losses_of(RunDirectory.of(job))
    assert len(losses) == 60
    assert losses == losses_of(RunDirectory.of(whole))  # bit for bit
    other = make_job(tmp_path, steps=60, held_out=0, seed=1)
    conducted(other)
    assert losses_of(RunDirectory.of(other)) != losses


def test_lengths_positions_and_masks_can_be_made_up(tmp_path: Path) -> None:
    """Data drawn from the program itself: what options mention is made to fit them."""
    _, last = conducted(make_job(tmp_path, data="synthetic", steps=3, rows=40))
    assert isinstance(last, Finished), last
    assert last.losses is not None and last.losses.last is not None


@pytest.mark.parametrize(
    ("config", "code", "line", "words"),
    [
        ({"sequence_length": 40}, "too-few-positions", 6, "`place` has learned positions for 32"),
        ({"unit": "byte"}, "unit", 18, "word or byte_pair, not byte"),
        ({"unit": "byte_pair"}, "data", 18, "needs 261"),
        ({"data": "pairs:gone.txt"}, "data", 18, "there is no such file"),
        ({"data": "pairs:gone.txt", "sequence_length": 8}, "data", 18, "there is no such file"),
        ({"sequence_length": 8}, "data", 18, "Set `sequence_length = 32`"),
    ],
)
def test_what_does_not_fit_is_reported_before_the_first_step(
    tmp_path: Path, prose: Path, config: dict[str, object], code: str, line: int, words: str
) -> None:
    _, last = conducted(make_job(tmp_path, **config))
    assert isinstance(last, Failed)
    assert last.code == code and words in last.message
    assert last.range is not None and last.range.start.line == line
    assert last.fixes


def test_batches_made_ahead_are_those_that_are_asked_for() -> None:
    made: list[int] = []

    def make(step: int) -> int:
        made.append(step)
        return step * step

    ahead = Ahead(make, 6)
    assert [ahead(step) for step in range(6)] == [0, 1, 4, 9, 16, 25]
    assert made == [0, 1, 2, 3, 4, 5]
    # again, back, and far ahead
    assert [ahead(5), ahead(0), ahead(3)] == [25, 0, 9]


def test_a_batch_is_made_while_the_step_before_is_computed() -> None:
    made = [threading.Event() for _ in range(10)]

    def make(step: int) -> int:
        made[step].set()
        return step

    ahead = Ahead(make, 10)
    ahead(0)
    # Nobody asks for them yet.
    assert made[1].wait(HANG) and made[2].wait(HANG)
    assert ahead(1) == 1 and ahead(2) == 2


def test_what_goes_wrong_ahead_is_raised_where_its_step_is_asked_for() -> None:
    def make(step: int) -> int:
        if step == 2:
            raise ValueError("two")
        return step

    ahead = Ahead(make, 10)
    assert [ahead(0), ahead(1)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        ahead(2)


def test_the_interval_covers_the_share_as_often_as_it_says() -> None:
    """By the exact binomial distribution, not by sampling."""
    count, share = 200, 0.3
    binomial = torch.distributions.Binomial(count, torch.tensor(share, dtype=torch.float64))
    covered = 0.0
    for right in range(count + 1):
        low, high = wilson(right, count)
        if low <= share <= high:
            covered += float(binomial.log_prob(torch.tensor(float(right), dtype=torch.float64)).exp())
    assert 0.93 < covered < 0.97
