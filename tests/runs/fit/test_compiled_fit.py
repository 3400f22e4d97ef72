"""A fit on machine code: named by its run, taken up again bit for bit, refused where it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.runs.fit.preparing import chosen_steps
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.protocol import Event, Finished, Job, Message, Started
from tests.runs.jobs import LATENTS, MODEL, make_job, watched

STEPS = 14


def fit_of(job: Job, resume: bool = False) -> SviFit:
    made = SviFit(prepare(job, Analyzer(job.text).snapshot()), Stop())
    if resume:
        list(made.restore())
    made.fast = chosen_steps(made, lambda _: None)
    return made


def job_of(folder: Path, **config: object) -> Job:
    return make_job(folder, LATENTS, None, data="synthetic", batch_size=None, steps=STEPS, **config)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"particles": 3, "objective": "iwae", "precision": "float64"},
        {"guide": "multivariate_normal", "clip_gradient": 1.0},
        {"guide": "delta", "optimizer": "adamw"},
        {"guide": "low_rank", "optimizer": "rmsprop"},
    ],
)
@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_a_fit_taken_up_again_is_the_unbroken_one(engine: str, config: dict[str, object], tmp_path: Path) -> None:
    unbroken = fit_of(job_of(tmp_path, engine=engine, **config))
    assert unbroken.fast.engine == engine
    whole = [unbroken.advance() for _ in range(STEPS)]
    job = job_of(tmp_path, engine=engine, **config)
    first = fit_of(job)
    begun = [first.advance() for _ in range(5)]
    first.save()
    again = fit_of(job, resume=True)
    assert again.step == 5
    assert begun + [again.advance() for _ in range(STEPS - 5)] == whole


@pytest.mark.parametrize("guide", ["normal", "multivariate_normal", "laplace"])
def test_engines_make_the_same_steps(guide: str, tmp_path: Path) -> None:
    losses: list[list[float]] = []
    for engine in ("compiled", "plain"):
        fit = fit_of(job_of(tmp_path, engine=engine, guide=guide, precision="float64"))
        losses.append([value for _ in range(STEPS) for value in fit.advance()])
    # data and draws of the run are single precision in torch, where the program runs plainly
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("engine", ["compiled", "auto"])
async def test_a_run_names_the_engine_of_its_steps(tmp_path: Path, engine: str) -> None:
    events, last = await watched(job_of(tmp_path, engine=engine))
    (begun,) = [event for event in events if isinstance(event, Started)]
    assert isinstance(last, Finished) and last.posterior and last.step == STEPS
    # so few steps are not worth compiling
    assert begun.engine == ("plain" if engine == "auto" else engine)


def test_steps_on_parts_of_the_rows_stay_on_torch_and_say_so_where_that_was_asked_for(
    tmp_path: Path, text: Path
) -> None:
    assert text.exists()
    events: list[Event] = []
    for engine, told in (("auto", False), ("compiled", True)):
        made = make_job(tmp_path, MODEL, steps=2000, engine=engine, sequence_length=4)
        fit = SviFit(prepare(made, Analyzer(made.text).snapshot()), Stop())
        choice = chosen_steps(fit, events.append)
        assert choice.engine == "plain" and (choice.note is not None) == told
    assert not [event for event in events if isinstance(event, Message)]
