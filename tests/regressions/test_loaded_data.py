"""B0 and B9: what is drawn where data came with `load(path, data=…)`, and where there is no prior to draw from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel, Predictive
from qvr_core.runs.record.protocol import Message, Progress
from tests.runs.jobs import make_job, watched

X = torch.linspace(-1.0, 1.0, 7)
Y = 100.0 + X
LINE = """
object Row : FinSet 7
program m : Row -> Row
    data x : Row
    sample b <- Normal(0.0, 1.0)
    let line[i : Row] = b * x[i]
    observe y : Row <- Normal(line, 1.0)
    return b
"""
SERIES = """
object Time : FinSet 7
program m : Time -> Time
    sample b <- Normal(0.0, 0.1)
    observe y[t : Time] <- Normal(b * y[t - 1], 1.0) from Normal(0.0, 1.0)
    return b
"""


@pytest.mark.parametrize("text", [LINE, SERIES])
def test_b0_a_posterior_of_loaded_data_has_every_group(text: str) -> None:
    loaded = loads(text, data={"x": X, "y": Y} if text is LINE else {"y": Y}).morphism
    groups = MCMC(NUTSKernel(), 30, 30, 1, seed=1).run(loaded, None, {}).to_arviz(prior_draws=200).children
    assert set(groups) >= {"posterior", "posterior_predictive", "log_likelihood", "prior", "prior_predictive"}
    assert groups["posterior_predictive"]["y"].shape == (1, 30, 7)
    assert groups["observed_data"]["y"].values.tolist() == Y.tolist()
    assert text is SERIES or groups["constant_data"]["x"].values.tolist() == X.tolist()
    # from the prior nothing is near 100; given what the data say the next element is, or the line is not
    assert abs(groups["prior_predictive"]["y"].values).max() < 50.0


@pytest.mark.parametrize("text", [LINE, SERIES])
def test_b0_draws_from_the_prior_draw_what_is_observed(text: str) -> None:
    loaded = loads(text, data={"x": X, "y": Y} if text is LINE else {"y": Y}).morphism
    drawn = Predictive(loaded, num_samples=200)(None)
    assert drawn["y"].shape == (200, 7) and abs(drawn["y"]).max() < 50.0


async def test_b9_a_run_says_before_its_chains_that_a_prior_is_improper(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(
        "x,y\n" + "\n".join(f"{x},{y}" for x, y in zip(X.tolist(), Y.tolist(), strict=True))
    )
    text = LINE.replace("Normal(0.0, 1.0)", "Flat()", 1)
    job = make_job(tmp_path, text, algorithm="nuts", data="csv:d.csv", warmup=20, samples=20, chains=1)
    events, _ = await watched(job)
    said = [at for at, event in enumerate(events) if isinstance(event, Message) and "from the prior" in event.text]
    assert len(said) == 1 and "`b` is improper" in events[said[0]].text  # pyright: ignore
    assert said[0] < next(at for at, event in enumerate(events) if isinstance(event, Progress))
