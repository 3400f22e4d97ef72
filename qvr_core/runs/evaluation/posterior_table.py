"""Posterior draws as a table."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np

from qvr_core.arrays.engine import Tensor
from qvr_core.inference.axes import Axes, each_element
from qvr_core.inference.dataset import stored_name
from qvr_core.inference.diagnostics.by_site import MixingBySite
from qvr_core.inference.diagnostics.verdicts import r_hat_is_large
from qvr_core.inference.mcmc import MCMCResult
from qvr_core.runs.record.protocol import PosteriorRow

# A site with more elements than this is left out of the table; its draws are in the file.
TABLED = 64
# Numbers whose R-hat and effective sample size take some 0.3 s.
HURRIED = 500_000


def table(draws: Mapping[str, Tensor], axes: Axes | None = None) -> Iterator[PosteriorRow]:
    """A row per scalar of `draws`, {site: (draws, …)}, by the labels of its `axes` where they have some; none for an
    element that does not exist, all of whose draws are NaN."""
    yield from (row for row in _rows(draws, axes) if row is not None)


def _rows(draws: Mapping[str, Tensor], axes: Axes | None) -> Iterator[PosteriorRow | None]:
    for name, values in draws.items():
        flat = values.double().reshape(len(values), -1)
        if flat.shape[1] > TABLED:
            continue
        # numpy takes a tenth of the time of torch.quantile, which also has a largest size.
        for label, column in zip(
            labels(name, values.shape[1:], labels_of(axes, name)), flat.T.cpu().contiguous().numpy(), strict=True
        ):
            if np.isnan(column).all():
                yield None
                continue
            low, median, high = np.quantile(column, (0.05, 0.5, 0.95)).tolist()
            # of equal numbers the mean may round to another one
            equal = bool((column == column[0]).all())
            sd = math.nan if len(column) < 2 else 0.0 if equal else float(column.std(ddof=1))
            yield PosteriorRow(name=label, mean=float(column.mean()), sd=sd, q05=low, median=median, q95=high)


def labels_of(axes: Axes | None, name: str) -> list[tuple[str | int, ...] | None]:
    """What the elements along each axis of a site are called; None where they have only numbers."""
    return [axis.labels for axis in (axes or {}).get(name, ())]


def chain_table(
    result: MCMCResult,
    sites: Collection[str],
    axes: Axes | None = None,
    *,
    hurry: bool = False,
    mixed: MixingBySite | None = None,
) -> Iterator[PosteriorRow]:
    """The same for the `sites` of chains, with R-hat and effective sample size; in a `hurry` of the first numbers only,
    since they take most of the time.  `mixed` is what others ask about the draws as they are stored."""
    mixed = mixed or mixing_by_site(result)
    small = {n: value for n, value in result.samples.items() if n in sites and value[0, 0].numel() <= TABLED}
    seen = list(accumulate(value.numel() for value in small.values()))
    diagnosed = {
        name: mixed.of(stored_name(name), np.arange(value[0, 0].numel()))
        for (name, value), count in zip(small.items(), seen, strict=True)
        if count <= HURRIED or not hurry
    }
    numbers = sum(len(one.r_hat) for one in diagnosed.values())
    large = {
        name: r_hat_is_large(result.diverging.shape, one.r_hat, one.inefficiency, numbers)
        for name, one in diagnosed.items()
    }
    for name, value in small.items():
        for i, row in enumerate(_rows({name: value.flatten(0, 1)}, axes)):
            if row is None:
                continue
            if name in diagnosed:
                one = diagnosed[name]
                told = {"r_hat": float(one.r_hat[i]), "ess": float(one.bulk[i]), "unmixed": bool(large[name][i])}
                row = row.model_copy(update=told)
            yield row


def mixing_by_site(result: MCMCResult) -> MixingBySite:
    """Of its draws, by the names under which they are stored."""
    return MixingBySite({stored_name(name): value.cpu().numpy() for name, value in result.samples.items()})


def left_out(result: MCMCResult, sites: Collection[str]) -> list[str]:
    """What the table leaves out: large sites, and network parameters."""
    return [n for n, value in result.samples.items() if n not in sites or value[0, 0].numel() > TABLED]


def labels(name: str, shape: tuple[int, ...], axes: Sequence[tuple[str | int, ...] | None] = ()) -> list[str]:
    """`mu`, or `theta[0]`, `theta[1]`, …, or `beta[floor]` where the axis has labels."""
    return list(each_element(name, shape, axes))
