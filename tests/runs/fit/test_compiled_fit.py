"""A fit on machine code: named by its run, taken up again bit for bit, refused where it cannot be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from qvr_core.analysis import Analyzer
from qvr_core.runs.fit.step_engine import chosen_steps
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.atomic_files import read_json, write_json
from qvr_core.runs.record.protocol import Event, Failed, Finished, Job, Message, Started
from qvr_core.runs.record.store import RunDirectory, RunStore
from qvr_core.runs.worker.engine_choice import wants_torch
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
        {"particles": 3, "objective": "renyi", "alpha": 0.25},
        {"particles": 2, "gradient": "sticking"},
        {"guide": "multivariate_normal", "clip_gradient": 1.0},
        {"guide": "delta", "optimizer": "adamw"},
        {"guide": "low_rank", "optimizer": "rmsprop"},
    ],
)
@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.sampled(3)
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


@pytest.mark.parametrize("objective", ["iwae", "renyi"])
def test_a_gradient_that_would_be_biased_is_refused(objective: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=f"sticking is right for the elbo alone; that of {objective}"):
        fit_of(job_of(tmp_path, objective=objective, gradient="sticking"))


def test_the_gradient_through_the_draws_is_torchs_and_of_several_particles(tmp_path: Path) -> None:
    job = job_of(tmp_path, objective="iwae", gradient="doubly", particles=4)
    assert wants_torch(job)
    fit = fit_of(job)
    assert fit.fast.engine == "plain"
    assert all(math.isfinite(loss) for loss, _ in (fit.advance() for _ in range(3)))
    with pytest.raises(Refused, match="for the elbo it is sticking"):
        fit_of(job_of(tmp_path, gradient="doubly"))


def test_the_gradient_of_a_way_is_the_plain_one(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="dais has that of a way: leave gradient out"):
        fit_of(job_of(tmp_path, guide="dais", gradient="sticking"))


def test_a_bound_that_would_be_the_elbo_is_told(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="iwae of one particle is the elbo: particles = 8"):
        fit_of(job_of(tmp_path, objective="iwae"))
    with pytest.raises(Refused, match="alpha is the order of renyi, and the objective is iwae"):
        fit_of(job_of(tmp_path, objective="iwae", particles=4, alpha=0.3))


@pytest.mark.parametrize("guide", ["mixture", "pathfinder", "dais", "iaf", "spline"])
@pytest.mark.sampled(3)
def test_a_fit_of_a_guide_of_torchs_taken_up_again_is_the_unbroken_one(guide: str, tmp_path: Path) -> None:
    unbroken = fit_of(job_of(tmp_path, guide=guide))
    assert unbroken.fast.engine == "plain"
    whole = [unbroken.advance() for _ in range(STEPS)]
    job = job_of(tmp_path, guide=guide)
    first = fit_of(job)
    begun = [first.advance() for _ in range(5)]
    first.save()
    again = fit_of(job, resume=True)
    assert begun + [again.advance() for _ in range(STEPS - 5)] == whole


@pytest.mark.parametrize("guide", ["normal", "multivariate_normal", "low_rank", "laplace"])
@pytest.mark.parametrize("config", [{"learning_rate": 0.05}, {"optimizer": "sgd", "clip_gradient": 0.5}])
def test_engines_make_the_same_steps(
    guide: str, config: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, plain = (fit_of(job_of(tmp_path, engine=e, guide=guide, **config)) for e in ("compiled", "plain"))
    assert fit.fast.steps is not None
    ours = [fit.advance()]
    left = torch.from_numpy(fit.fast.steps.noise.copy())

    def drawn(*size: Any, **_: Any) -> torch.Tensor:
        nonlocal left
        shape = torch.Size(size if isinstance(size[0], int) else size[0])
        own, left = left[: shape.numel()], left[shape.numel() :]
        return own.reshape(shape)

    theirs: list[tuple[float, float]] = []
    with monkeypatch.context() as here:
        here.setattr(torch, "randn", drawn)
        for step in range(STEPS):
            theirs.append(plain.advance())
            if step + 1 < STEPS:
                ours.append(fit.advance())
                left = torch.from_numpy(fit.fast.steps.noise.copy())
    assert np.array(ours) == pytest.approx(np.array(theirs), rel=1e-9)


@pytest.mark.parametrize("engine", ["compiled", "auto", "plain"])
async def test_a_run_names_the_engine_of_its_steps(tmp_path: Path, engine: str) -> None:
    events, last = await watched(job_of(tmp_path, engine=engine))
    (begun,) = [event for event in events if isinstance(event, Started)]
    assert isinstance(last, Finished) and last.posterior and last.step == STEPS
    assert begun.engine == ("compiled" if engine == "auto" else engine)


async def test_a_fit_goes_on_only_with_the_steps_that_it_began_with(tmp_path: Path) -> None:
    job = job_of(tmp_path, engine="compiled")
    await watched(job)
    longer = RunStore(tmp_path).resume(job.run_id)
    plain = job.config.model_copy(update={"steps": 2 * STEPS, "engine": "plain"})
    _, last = await watched(longer.model_copy(update={"config": plain}))
    assert isinstance(last, Failed) and last.code == "other-engine"
    assert "began as machine code" in last.message
    again = job.config.model_copy(update={"steps": 2 * STEPS})
    _, last = await watched(longer.model_copy(update={"config": again}))
    assert isinstance(last, Finished) and last.step == 2 * STEPS


async def test_a_fit_of_an_earlier_release_goes_on_as_torch_operations(tmp_path: Path) -> None:
    job = job_of(tmp_path, engine="plain")
    await watched(job)
    (newest,) = sorted(RunDirectory.of(job).checkpoints.glob("step-*"))[-1:]
    state = read_json(newest / "state.json")
    del state["state"]["engine"]  # no release before this one wrote it
    write_json(newest / "state.json", state)
    longer = RunStore(tmp_path).resume(job.run_id)
    auto = job.config.model_copy(update={"steps": 2 * STEPS, "engine": "auto"})
    events, last = await watched(longer.model_copy(update={"config": auto}))
    (begun,) = [event for event in events if isinstance(event, Started)]
    assert begun.engine == "plain" and isinstance(last, Finished)


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
