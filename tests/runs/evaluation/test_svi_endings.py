"""What a variational fit says at its end: the posterior of its guide, and whether it is to be trusted."""

from __future__ import annotations

import asyncio
import math
import random
from pathlib import Path

import pytest
import torch

from qvr_core.runs.evaluation.loss_endings import ended_badly
from qvr_core.runs.fit.svi import recent
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import Event, Failed, Finished, Job, Message, Progress
from qvr_core.runs.record.store import RunDirectory, RunStore, overview
from qvr_core.runs.worker import text_generation
from tests.patience import HANG
from tests.runs.jobs import start

# Posterior of mu: precision 1/4 + n/2.25.
CONJUGATE = """\
object Row : FinSet 8
program location : Row -> Row
    sample mu <- Normal(1.0, 2.0)
    observe y : Row <- Normal(mu, 1.5)
    return mu
"""
Y = (0.3, 1.2, -0.7, 2.5, 1.1, 0.4, 1.9, 0.1)
# Five scales from its one datum, the log density of a Cauchy is curved upwards.
FLAT = """\
program far : FinSet 1 -> FinSet 1
    sample mu <- Normal(0.0, 100.0)
    observe y <- Cauchy(mu, 1.0)
    return mu
"""


def make_job(folder: Path, model: str, y: tuple[float, ...] = Y, **config: object) -> Job:
    (folder / "y.csv").write_text("\n".join(["y", *map(str, y)]) + "\n")
    asked = RunConfig.model_validate({"data": "csv:y.csv", "threads": 1, **config})
    return RunStore(folder).create(path="m.qvr", text=model, program=None, config=asked, base=str(folder))


async def watched(job: Job) -> tuple[list[str], Finished]:
    """The warnings of a run, and its end."""
    events: list[Event] = []
    worker = await start(job, events.append)
    last = await asyncio.wait_for(worker.wait(), HANG)
    assert isinstance(last, Finished), last
    return [event.text for event in events if isinstance(event, Message) and event.level == "warning"], last


async def test_laplace_ends_with_the_spread_of_the_posterior_after_a_resume_too(tmp_path: Path) -> None:
    precision = 1 / 4.0 + 8 / 2.25
    mode = (1.0 / 4.0 + sum(Y) / 2.25) / precision
    job = make_job(tmp_path, CONJUGATE, guide="laplace", learning_rate=0.05, steps=5)
    warnings, _ = await watched(job)
    assert any("standard deviations from the mode" in text for text in warnings)
    job = RunStore(tmp_path).resume(job.run_id)
    warnings, last = await watched(job.model_copy(update={"config": job.config.model_copy(update={"steps": 600})}))
    (row,) = last.posterior
    assert row.mean == pytest.approx(mode, abs=0.06)
    assert row.sd == pytest.approx(precision**-0.5, rel=0.08)
    assert not any("mode" in text for text in warnings)
    mu = text_generation.predictive(text_generation.restored(RunDirectory.of(job)), 2000, seed=1)[0]["mu"]
    assert float(mu.std()) == pytest.approx(precision**-0.5, rel=0.08)


async def test_laplace_of_rows_in_parts_has_the_spread_of_all(tmp_path: Path) -> None:
    job = make_job(tmp_path, CONJUGATE, guide="laplace", learning_rate=0.05, steps=300, batch_size=2)
    _, last = await watched(job)
    assert last.posterior[0].sd == pytest.approx((1 / 4.0 + 8 / 2.25) ** -0.5, rel=0.08)


async def test_laplace_without_downward_curvature_says_so_and_ends_with_the_mode(tmp_path: Path) -> None:
    warnings, last = await watched(make_job(tmp_path, FLAT, (5.0,), guide="laplace", steps=1))
    assert any("not curved downwards" in text and "more steps" in text for text in warnings)
    assert last.posterior[0].sd == 0


async def test_a_fit_that_ends_above_its_start_says_so(tmp_path: Path) -> None:
    warnings, last = await watched(make_job(tmp_path, CONJUGATE, learning_rate=8.0, steps=100))
    (warning,) = last.warnings
    assert warning in warnings
    assert "the loss ended at" in warning and "above its start" in warning
    assert "lower learning_rate (it is 8)" in warning


def test_losses_that_rise_are_reported_from_noise() -> None:
    config, noise = RunConfig().for_program(statistical=True), random.Random(0)
    for seed in range(200):
        noise.seed(seed)
        assert ended_badly([noise.gauss(0, 1) + 3 / (1 + i) for i in range(20 + seed)], config) is None
    fell = [noise.gauss(0, 1) + 100 * math.exp(-i / 20) for i in range(200)]
    assert ended_badly(fell, config) is None
    assert "had been at" in str(ended_badly(fell + [80 + noise.gauss(0, 1)] * 100, config))
    assert "above its start" in str(ended_badly(fell + [1e6] * 100, config))


def test_a_fit_that_begins_where_others_end_may_move_about() -> None:
    quiet = random.Random(1)
    for rise, guide, told in ((0.02, "pathfinder", False), (0.02, "normal", True), (0.5, "pathfinder", True)):
        losses = [24.26 + quiet.gauss(0, 1e-3) + (rise if i > 50 else 0.0) for i in range(400)]
        assert (ended_badly(losses, RunConfig(guide=guide, learning_rate=0.02)) is not None) == told


async def test_the_figure_of_a_fit_is_the_mean_of_its_last_steps(tmp_path: Path) -> None:
    job = make_job(tmp_path, CONJUGATE, learning_rate=0.05, steps=200)
    events: list[Event] = []
    worker = await start(job, events.append)
    last = await asyncio.wait_for(worker.wait(), HANG)
    assert isinstance(last, Finished) and last.losses is not None
    progress = [event for event in events if isinstance(event, Progress)]
    assert progress[-1].step == 200 and progress[-1].smoothed_loss == last.losses.mean_of_last
    stored = overview(RunDirectory.of(job))
    assert stored.last_loss == last.losses.mean_of_last


def test_no_early_step_counts_in_where_a_fit_is() -> None:
    falling = [float(1000 - step) for step in range(1000)]
    assert recent(falling) == pytest.approx(25.5)
    assert recent(falling[:20]) == pytest.approx(981.5)
    assert recent([math.nan, *falling[:1], math.nan]) is None
    assert recent([]) is None


LOGISTIC = """\
object Row : FinSet 300
program logistic : Row -> Row
    sample a <- Normal(0.0, 5.0)
    sample b <- Normal(0.0, 5.0)
    observe y : Row <- Bernoulli(sigmoid(a + b * x))
    return b
"""


def logistic_job(folder: Path, **config: object) -> Job:
    noise = random.Random(0)
    rows = [(x, int(noise.random() < 1 / (1 + math.exp(-1 - 4 * x)))) for x in (noise.gauss(0, 1) for _ in range(300))]
    (folder / "y.csv").write_text("\n".join(["x,y", *(f"{x},{y}" for x, y in rows)]) + "\n")
    asked = RunConfig.model_validate({"data": "csv:y.csv", "threads": 1, **config})
    return RunStore(folder).create(path="m.qvr", text=LOGISTIC, program=None, config=asked, base=str(folder))


async def test_a_fit_that_has_not_come_to_rest_says_so(tmp_path: Path) -> None:
    warnings, last = await watched(logistic_job(tmp_path, learning_rate=1e-3, steps=500))
    assert "the fit has not come to rest: `b`" in warnings[0] and "steps = 2500" in warnings[0]
    assert last.posterior[1].mean < 2.5
    # a rate that falls to nothing does not hide it
    warnings, _ = await watched(logistic_job(tmp_path, learning_rate=1e-3, steps=500, schedule="cosine"))
    assert "the fit has not come to rest: `b`" in warnings[0]


@pytest.mark.parametrize(
    "config",
    [{}, pytest.param({"batch_size": 50}, marks=pytest.mark.slow), {"guide": "multivariate_normal"}],
)
async def test_a_statistical_program_comes_to_rest_by_default_and_says_nothing(
    tmp_path: Path, config: dict[str, object]
) -> None:
    warnings, last = await watched(logistic_job(tmp_path, **config))
    assert warnings == []
    (a, b) = last.posterior
    # the mode and the curvature there, by Newton's method
    x, y = torch.tensor(
        [[float(v) for v in line.split(",")] for line in (tmp_path / "y.csv").read_text().splitlines()[1:]],
        dtype=torch.float64,
    ).T
    design, theta = torch.stack([torch.ones_like(x), x], 1), torch.zeros(2, dtype=torch.float64)
    for _ in range(20):
        p = torch.sigmoid(design @ theta)
        hessian = design.T @ (design * (p * (1 - p))[:, None]) + torch.eye(2, dtype=torch.float64) / 25
        theta += torch.linalg.solve(hessian, design.T @ (y - p) - theta / 25)
    spread = torch.linalg.inv(hessian).diagonal().sqrt()
    mean_field = hessian.diagonal().rsqrt()
    expected = spread if config.get("guide") else mean_field
    for row, mode, wide, sd in zip((a, b), theta.tolist(), spread.tolist(), expected.tolist(), strict=True):
        assert row.mean == pytest.approx(mode, abs=0.5 * wide)
        assert row.sd == pytest.approx(sd, rel=0.2)


LINE = """\
object Row : FinSet 20
program line : Row -> Row
    sample a <- Normal(0.0, 5.0)
    sample b <- Normal(0.0, 5.0)
    observe y : Row <- Normal(a + b * x, 1.0)
    return b
"""


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"guide": "normal", "objective": "iwae", "steps": 200}, "is still about"),
        # narrow, on a slope: all weights are alike, and nothing is in the tail that Pareto k looks at
        ({"guide": "spline", "objective": "iwae", "steps": 120, "learning_rate": 0.01}, "still too small"),
        pytest.param({"guide": "iaf", "steps": 60, "learning_rate": 1e-3}, "is still about", marks=pytest.mark.slow),
    ],
)
async def test_a_guide_beside_the_posterior_is_told_whatever_it_was_fitted_by(
    tmp_path: Path, config: dict[str, object], told: str
) -> None:
    rows = [(5.0 + 0.1 * at, 1.0 + 2.0 * (5.0 + 0.1 * at)) for at in range(20)]
    (tmp_path / "y.csv").write_text("\n".join(["x,y", *(f"{x},{y}" for x, y in rows)]) + "\n")
    asked = RunConfig.model_validate({"data": "csv:y.csv", "threads": 1, "particles": 8, **config})
    job = RunStore(tmp_path).create(path="m.qvr", text=LINE, program=None, config=asked, base=str(tmp_path))
    warnings, last = await watched(job)
    assert told in warnings[0] and ("objective = elbo" in warnings[0]) is ("objective" in config)
    assert [one.name for one in last.checks if not one.passed][-1:] == ["loss"]


@pytest.mark.parametrize("algorithm", ["svi", "nuts"])
async def test_a_fit_that_cannot_begin_points_at_the_operand(tmp_path: Path, algorithm: str) -> None:
    text = CONJUGATE.replace("Normal(mu, 1.5)", "Normal(mu + log(y - 100.0), 1.5)").replace("y - 100", "a - 100")
    (tmp_path / "y.csv").write_text("y,a\n" + "1.0,2.0\n" * 8)
    asked = RunConfig.model_validate({"data": "csv:y.csv", "threads": 1, "algorithm": algorithm})
    job = RunStore(tmp_path).create(path="m.qvr", text=text, program=None, config=asked, base=str(tmp_path))
    worker = await start(job, lambda event: None)
    last = await asyncio.wait_for(worker.wait(), HANG)
    assert isinstance(last, Failed) and last.range is not None
    line = text.splitlines()[last.range.start.line]
    assert line[last.range.start.character : last.range.end.character] == "a - 100.0"
    assert "`a - 100.0` is -98 there" in last.message and "learning" not in last.message
