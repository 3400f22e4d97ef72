"""What a fit says of every number, small enough for an editor: `summary.json` of a run directory."""

from __future__ import annotations

import json

from qvr_core.runs.record.atomic_files import DamagedFile, read_json, write_json
from qvr_core.runs.record.protocol import Frozen, PosteriorRow
from qvr_core.runs.record.store import RunDirectory

MOST_BYTES = 8_000_000
"""A larger file is not read."""


class Density(Frozen):
    """Counts of draws in bins of equal width between `low` and `high`."""

    low: float
    high: float
    posterior: tuple[int, ...]
    prior: tuple[int, ...] = ()
    """The same bins; empty where there are no draws from the prior."""
    prior_share: float | None = None
    """The part of the prior's draws that lies in them."""


class Element(PosteriorRow):
    """One number of a site.  `ranks`: how many ranks of each chain's draws among all lie in bins of equal width."""

    density: Density | None = None
    ranks: tuple[tuple[int, ...], ...] = ()


class SiteSummary(Frozen):
    """A latent or a kept let: `size` numbers, of which the first are `elements`."""

    name: str
    size: int
    low: float | None = None
    """The least mean of its numbers."""
    high: float | None = None
    sd: float | None = None
    """Their largest standard deviation."""
    r_hat: float | None = None
    """Their largest."""
    ess: float | None = None
    """Their least."""
    worst: str | None = None
    """The number that has the largest R-hat."""
    elements: tuple[Element, ...]


class ChainDraws(Frozen):
    """Some draws of one chain: their numbers, the places in `draws` of those at which it diverged, and the values of
    each of the summary's `drawn` at them."""

    draws: tuple[int, ...]
    diverging: tuple[int, ...] = ()
    values: tuple[tuple[float | None, ...], ...]


class Band(Frozen):
    """Shares of drawn values in bins: their mean over the draws, their 5 % and 95 % quantiles, and the share of all
    values that lies in no bin."""

    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    outside: float


class Predictive(Frozen):
    """An observed step: shares of its data in bins of equal width between `low` and `high`, and of what is drawn."""

    name: str
    low: float
    high: float
    observed: tuple[float, ...]
    posterior: Band | None = None
    prior: Band | None = None


class Summary(Frozen):
    """Of a whole run.  `drawn` names the numbers of which some draws stand in `traces`."""

    chains: int
    draws: int
    sites: tuple[SiteSummary, ...]
    drawn: tuple[str, ...] = ()
    traces: tuple[ChainDraws, ...] = ()
    predictive: tuple[Predictive, ...] = ()


def write_summary(run: RunDirectory, summary: Summary) -> None:
    """Write it into a run's folder.  Raises OSError."""
    # By way of JSON text: a number that is not finite is null there.
    write_json(run.summary, json.loads(summary.model_dump_json(exclude_none=True)), indent=None)


def read_summary(run: RunDirectory) -> Summary | None:
    """The summary of a run; None where it left none.  Raises `DamagedFile`, OSError."""
    try:
        if run.summary.stat().st_size > MOST_BYTES:
            raise DamagedFile(f"{run.summary} is larger than any that a run writes")
    except FileNotFoundError:
        return None
    try:
        return Summary.model_validate(read_json(run.summary))
    except ValueError as error:
        raise DamagedFile(f"{run.summary} is damaged: {error}") from error
