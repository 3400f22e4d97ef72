"""Posterior draws as a table and as a NetCDF file."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from qvr_core.inference.mcmc import MCMCResult
from qvr_core.runs.files import sync_folder
from qvr_core.runs.protocol import PosteriorRow

# A site with more elements than this is left out of the table; its draws are in the file.
TABLED = 64


def table(draws: Mapping[str, Tensor]) -> Iterator[PosteriorRow]:
    """A row per scalar of `draws`, {site: (draws, …)}."""
    for name, values in draws.items():
        flat = values.double().reshape(len(values), -1)
        if flat.shape[1] > TABLED:
            continue
        low, median, high = torch.quantile(flat, torch.tensor([0.05, 0.5, 0.95], dtype=flat.dtype), 0)
        sd = flat.std(0) if len(flat) > 1 else torch.full_like(median, math.nan)
        for i, label in enumerate(labels(name, values.shape[1:])):
            yield PosteriorRow(
                name=label,
                mean=float(flat[:, i].mean()),
                sd=float(sd[i]),
                q05=float(low[i]),
                median=float(median[i]),
                q95=float(high[i]),
            )


def chain_table(result: MCMCResult, sites: Collection[str]) -> Iterator[PosteriorRow]:
    """The same for the `sites` of chains, with R-hat and effective sample size."""
    small = {n: value for n, value in result.samples.items() if n in sites and value[0, 0].numel() <= TABLED}
    tabled = replace(result, samples=small)
    r_hat = {name: value.reshape(-1) for name, value in tabled.r_hat.items()}
    ess = {name: value.reshape(-1) for name, value in tabled.ess.items()}
    for name, value in small.items():
        joined = value.flatten(0, 1)
        for i, row in enumerate(table({name: joined})):
            yield row.model_copy(update={"r_hat": float(r_hat[name][i]), "ess": float(ess[name][i])})


def left_out(result: MCMCResult, sites: Collection[str]) -> list[str]:
    """What the table leaves out: large sites, and network parameters."""
    return [n for n, value in result.samples.items() if n not in sites or value[0, 0].numel() > TABLED]


def labels(name: str, shape: tuple[int, ...]) -> list[str]:
    """`mu`, or `theta[0]`, `theta[1]`, …"""
    if math.prod(shape) == 1:
        return [name]
    return [f"{name}[{', '.join(map(str, index))}]" for index in torch.cartesian_prod(
        *(torch.arange(size) for size in shape)).reshape(-1, len(shape)).tolist()]  # fmt: skip


def write_netcdf(path: Path, data: Any) -> None:
    """Write an arviz.InferenceData whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        data.to_netcdf(str(partial), engine="h5netcdf")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)
