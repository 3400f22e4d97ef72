"""The posterior of a fit by svi: draws from its guide as a table and a file, what the program keeps included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from qvr_core.data.records import Records
from qvr_core.inference.axes import axes_of, observed_axes
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.pointwise import Given
from qvr_core.runs.figures.posterior import table, write_netcdf
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runs.record.protocol import Message, PosteriorRow
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runtime.programs.handlers import by_rows, condition, densities, keep, predicting
from qvr_core.runtime.programs.program import ProgramModule

POSTERIOR_DRAWS = 1000


def guide_posterior(prepared: Prepared, guide: Guide, *, store: bool) -> tuple[tuple[PosteriorRow, ...], list[Message]]:
    """The table of the latents that all rows share, of the lets that are kept and of predictions, and what to say; the
    draws go into the run's file where `store`.  The state of torch's generator stays."""
    config, model = prepared.job.config, prepared.model
    # a prediction may read any row
    rows = torch.arange(prepared.train.rows if model.predicted else 1)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(config.seed)
        _, observations = prepared.move(prepared.train.batch(rows))
        drawn, later = _draws(model, guide, observations)
        if not isinstance(prepared.train, Records):
            # of a table that is read in parts no let of rows is whole
            drawn |= Given(model, None, observations).deterministic(drawn)
    axes = axes_of(model, observations)
    told = _store(prepared, drawn, later, observations) if store and drawn else []
    return tuple(table({**drawn, **later}, axes)), told


def _draws(
    model: ProgramModule, guide: Guide, observations: Mapping[str, Any]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Draws of the latents, missing cells among them, and of what is only known after the fit: (draws, …)."""
    after = [predicting, keep(model.predicted)] if model.predicted else []
    asked = (condition(observations), guide.propose(POSTERIOR_DRAWS), densities(False), by_rows(POSTERIOR_DRAWS))
    run = model.run(None, *asked, *after)
    found = {name: run.sites[name].value for name, site in model.sites.items() if not site.info.observed}
    found |= {name: run.sites[name].imputed for name in model.missing(observations)}
    later = {**{name: site.value for name, site in run.sites.items()}, **run.kept}
    return _tensors(found), _tensors({name: later[name] for name in model.predicted if name in later})


def _tensors(values: Mapping[str, object]) -> dict[str, Tensor]:
    return {
        name: value.detach()
        for name, value in values.items()
        if isinstance(value, Tensor) and value.shape[:1] == (POSTERIOR_DRAWS,)
    }


def _store(
    prepared: Prepared, drawn: Mapping[str, Tensor], later: Mapping[str, Tensor], observations: Mapping[str, Any]
) -> list[Message]:
    """Write the draws as those of one chain."""
    import xarray

    from qvr_core.inference.mcmc.dataset import dataset

    model = prepared.model
    axes = axes_of(model, observations)
    groups = {"/posterior": dataset(_of_one_chain(drawn), axes)}
    if later:
        groups["/posterior_predictive"] = dataset(_of_one_chain(later), axes)
    observed = Given(model, None, observations).observed_data()
    if observed and not isinstance(prepared.train, Records):
        given = {name: value.cpu() for name, value in observed.items()}
        groups["/observed_data"] = dataset(given, observed_axes(model), lead=())
    directory = RunDirectory.of(prepared.job)
    try:
        write_netcdf(directory.posterior, xarray.DataTree.from_dict(groups))
        directory.seal_posterior()
    except OSError as error:
        return [Message(level="warning", text=f"the draws could not be stored: {error}")]
    return []


def _of_one_chain(draws: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.unsqueeze(0).cpu() for name, value in draws.items()}
