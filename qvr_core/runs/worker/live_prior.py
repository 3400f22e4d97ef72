"""Draws from a prior while somebody types, with what is to be said of the data beside them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qvr_core.inference.dataset import dataset
from qvr_core.inference.labelled_datasets import Tree
from qvr_core.runs.evaluation.summaries import summary_of
from qvr_core.runs.record.last_fit import shown
from qvr_core.runs.record.live import Asked
from qvr_core.runs.record.live import Drawn as Answer
from qvr_core.runs.worker.prediction import Drawn, from_prior

MOST_NUMBERS = 2_000_000
"""Numbers observed times draws: of larger data there are fewer draws."""
MOST_OUTSIDE = 0.5
"""The part of the data that may lie where 99 % of the prior's draws do not."""
INNER = (0.005, 0.995)


def prior_draws(asked: Asked) -> Answer:
    """The summary of draws from a prior.  Raises `Refused`, `DataProblem`, `RuntimeProblem`."""
    # without data a prior is shown of made-up ones, which the editor says
    job = asked.job.model_copy(update={"config": asked.job.config.drawing_data()})
    found = from_prior(job, asked.draws, asked.seed, most=MOST_NUMBERS)
    outside = dict(_outside(found))
    summary = summary_of(_tree(found))
    seen = (one.model_copy(update={"prior": one.posterior, "posterior": None}) for one in summary.predictive)
    summary = summary.model_copy(update={"predictive": tuple(seen)})
    return Answer(number=asked.number, summary=summary, notes=found.notes, outside=outside)


def _tree(found: Drawn) -> Tree:
    """The draws as a fit of one chain leaves its own."""
    values = {name: value.detach().cpu().unsqueeze(0) for name, value in found.values.items()}
    again = {name: value for name, value in values.items() if name in found.steps}
    groups = {"posterior": dataset(values, found.axes), "posterior_predictive": dataset(again, found.axes)}
    observed = {name: value.detach().cpu() for name, value in found.observed.items() if name in found.steps}
    return Tree({**groups, "observed_data": dataset(observed, found.axes, ())})


def _outside(found: Drawn) -> Iterator[tuple[str, str]]:
    """Observed steps whose data mostly lie where the prior's draws hardly do, in words."""
    for name in found.steps:
        data = found.observed.get(name)
        if data is None:
            continue
        known = data.detach().cpu().double().numpy().ravel()
        known = known[np.isfinite(known)]
        draws = found.values[name].detach().cpu().double().numpy().ravel()
        draws = draws[np.isfinite(draws)]
        if not known.size or not draws.size:
            continue
        low, high = np.quantile(draws, INNER)
        share = float(((known < low) | (known > high)).mean())
        if share > MOST_OUTSIDE:
            ends = f"{shown(float(low))} to {shown(float(high))}"
            told = f"{shown(float(known.min()))} to {shown(float(known.max()))}"
            yield (
                name,
                f"`{name}`: {share:.0%} of its data ({told}) lie outside what the prior predicts, {ends} in 99 %",
            )
