"""The posterior of a fit by svi: draws from its guide as a table and a file, what the program keeps included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.random_state import random_state_kept
from qvr_core.data.records import Records
from qvr_core.inference.axes import axes_of
from qvr_core.inference.guides import AutoDeltaGuide
from qvr_core.inference.guides.base import Guide, Inputs
from qvr_core.inference.inference_data import Fit, inference_data
from qvr_core.inference.objectives import weigh
from qvr_core.inference.pointwise import Given
from qvr_core.runs.evaluation.fit_checks import fit_checks, source_of
from qvr_core.runs.evaluation.posterior_table import table
from qvr_core.runs.evaluation.summaries import keep_summary
from qvr_core.runs.prepare.parts_of_rows import Parts
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runs.record.netcdf import write_netcdf
from qvr_core.runs.record.protocol import Check, Message, PosteriorRow
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runtime.programs.handlers import by_rows, condition, densities, keep, predicting
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.term_tables import of_one_size

POSTERIOR_DRAWS = 1000
MOST_WEIGHED = 1_000_000_000
"""Numbers observed times draws: with more the draws are not weighed, which takes seconds for so many."""
AT_ONCE = 20_000_000
"""The same, of one execution."""


def guide_posterior(
    prepared: Prepared, guide: Guide, *, store: bool, parts: Parts | None = None
) -> tuple[tuple[PosteriorRow, ...], list[Message], tuple[Check, ...]]:
    """The table of the latents that all rows share, of the lets that are kept and of predictions, what to say, and
    whether the draws are to be trusted; they go into the run's file where `store`.

    Of a table that is read in `parts` some rows stand there alone.  The state of the engine's generator stays.
    """
    config, model = prepared.job.config, prepared.model if parts is None else parts.model
    train = prepared.train if parts is None else parts
    if parts is not None:
        count = parts.size
    else:
        count = train.rows if model.predicted else 1  # a prediction may read any row
    rows = arrays.arange(count)
    whole = not isinstance(train, Records | Parts)
    with random_state_kept(prepared.device), arrays.no_grad():
        arrays.manual_seed(config.seed)
        _, observations = prepared.move(train.batch(rows))
        given = Given(model, None, observations)
        drawn, later, weights = _draws(model, guide, observations, weighed=whole)
        # of a table that is read in parts no let of rows is whole
        lets = given.deterministic(drawn) if whole else {}
        statistics = {} if weights is None else {"log_weight": weights}
        known, kept, said, weighed = (_of_one_chain(values) for values in (drawn, lets, later, statistics))
        likelihood = partial(_likelihood, given, drawn)
        fit = Fit(given if whole else None, known, kept, said, weighed, likelihood, config.seed)
        told, checks = _store(prepared, fit) if store and drawn else ([], ())
    return tuple(table({**drawn, **lets, **later}, axes_of(model, observations))), told, checks


def _likelihood(given: Given, drawn: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    return _of_one_chain(given.log_likelihood(drawn))


def _draws(
    model: ProgramModule, guide: Guide, observations: Mapping[str, Any], *, weighed: bool
) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor | None]:
    """Draws of the latents, missing cells among them, and of what is only known after the fit: (draws, …); and of each
    draw log p − log q (draws,), where the guide has a density and all data are in sight."""
    numbers = max(1, sum(value.numel() for value in observations.values() if isinstance(value, Tensor)))
    weighed = weighed and not isinstance(guide, AutoDeltaGuide) and numbers * POSTERIOR_DRAWS <= MOST_WEIGHED
    most = max(1, AT_ONCE // numbers) if weighed else POSTERIOR_DRAWS
    counts = [min(most, POSTERIOR_DRAWS - start) for start in range(0, POSTERIOR_DRAWS, most)]
    parts = [_some_draws(model, guide, observations, count, weighed=weighed) for count in counts]
    found, predicted, weights = zip(*parts, strict=True)
    return _joined(found), _joined(predicted), arrays.cat(weights) if weighed else None


def _some_draws(
    model: ProgramModule, guide: Guide, observations: Mapping[str, Any], count: int, *, weighed: bool
) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
    """The same for some of the draws; without weights where they are not `weighed`."""
    after = [predicting, keep(model.predicted)] if model.predicted else []
    weights = arrays.empty(0)
    if weighed:
        run, weights = weigh(model, guide, None, observations, count, handlers=after)
    else:
        asked = (
            condition(observations),
            guide.propose(count, inputs=Inputs(model, None, observations)),
            densities(False),
            by_rows(count),
        )
        run = model.run(None, *asked, *after)
    found = {name: run.sites[name].reported for name, site in model.sites.items() if not site.info.observed}
    found |= {name: run.sites[name].imputed for name in model.missing(observations)}
    later = {**{name: site.reported for name, site in run.sites.items()}, **run.kept}
    predicted = {name: later[name] for name in model.predicted if name in later}
    return _by_draw(found, count), _by_draw(predicted, count), weights


def _by_draw(values: Mapping[str, object], count: int) -> dict[str, Tensor]:
    return {
        name: value.detach()
        for name, value in values.items()
        if isinstance(value, Tensor) and value.shape[:1] == (count,)
    }


def _joined(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    return {name: arrays.cat(of_one_size([part[name] for part in parts])) for name in parts[0]}


def _store(prepared: Prepared, fit: Fit) -> tuple[list[Message], tuple[Check, ...]]:
    """Write the draws as those of one chain; what to say of it."""
    groups = inference_data(fit)
    tree = groups.tree()
    directory = RunDirectory.of(prepared.job)
    told = [Message(level="info", text=note) for note in groups.notes]
    try:
        write_netcdf(directory.posterior, tree)
        directory.seal_posterior()
    except OSError as error:
        told.append(Message(level="warning", text=f"the draws could not be stored: {error}"))
    told += keep_summary(directory, tree)
    return told, fit_checks(tree, prepared.job.config, source_of(prepared), hurry=True)


def _of_one_chain(draws: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().unsqueeze(0).cpu() for name, value in draws.items()}
