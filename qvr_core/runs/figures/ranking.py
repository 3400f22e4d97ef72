"""Runs ranked by their expected log predictive density, estimated by PSIS-LOO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.runs.figures.loo import Loo, loo_of, spread_of_sum
from qvr_core.runs.record.netcdf import read_netcdf
from qvr_core.runs.record.store import RunDirectory


@dataclass(frozen=True)
class Ranked:
    """A run's elpd with its standard error, the effective number of parameters, what it lacks to the best one with the
    standard error of that difference, and how many of its observations have a Pareto k above `good`."""

    run: str
    elpd: float
    se: float
    parameters: float
    difference: float
    difference_se: float
    observations: int
    bad: int
    good: float


@dataclass(frozen=True)
class Ranking:
    """The best first; none where runs have nothing to compare, and `note` says why, or how much it can be trusted."""

    rows: tuple[Ranked, ...] = ()
    note: str | None = None


def ranking(runs: Sequence[RunDirectory]) -> Ranking:
    """Runs by predictive accuracy on the data that they were fitted to.  Raises `DamagedFile`, OSError."""
    found: dict[str, tuple[Loo, NDArray[np.float32]]] = {}
    for run in runs:
        read = _read(run)
        if read is None:
            return Ranking(note=f"no predictive accuracy: run {run.run_id} stored no pointwise log likelihood")
        if read[0].joint:
            why = "observes all its data as one, so that no observation can be left out"
            return Ranking(note=f"no predictive accuracy: run {run.run_id} {why}")
        found[run.run_id] = read
    first, *others = found.items()
    for name, (_, observed) in others:
        if not np.array_equal(observed, first[1][1], equal_nan=True):
            note = f"no predictive accuracy: {first[0]} and {name} observed different data, or in another order"
            return Ranking(note=note)
    return ranked({name: loo for name, (loo, _) in found.items()})


def _read(run: RunDirectory) -> tuple[Loo, NDArray[np.float32]] | None:
    """The LOO of a run, and what it observed, whatever the program calls it."""
    if not run.posterior.exists():
        return None
    run.check_posterior()
    tree = read_netcdf(run.posterior, ("posterior", "log_likelihood", "observed_data"))
    loo = loo_of(tree)
    return None if loo is None else (loo, _observed(tree))


def _observed(tree: Any) -> NDArray[np.float32]:
    values = [value.to_numpy().astype(np.float64).ravel() for value in tree["observed_data"].data_vars.values()]
    # data read in single precision are the same data
    return np.concatenate(values).astype(np.float32)


def ranked(found: dict[str, Loo]) -> Ranking:
    """Estimates of the same observations, the best first.

    Runs that score other steps are ranked by those that all of them score: a predictor whose missing cells are filled
    in is no outcome, but where its gaps are dropped it is one.  Runs that score other elements of a step cannot be
    compared.
    """
    note = None
    sizes = {name: len(loo.elpd) for name, loo in found.items()}
    if len(set(sizes.values())) > 1:
        shared = _scored_by_all(list(found.values()))
        if not shared:
            words = ", ".join(f"{name} {size}" for name, size in sizes.items())
            return Ranking(
                note=f"no predictive accuracy: runs score different numbers of observations ({words}): "
                "`[mask=…]` leaves out of one what the other does not score"
            )
        alone = sorted({step for loo in found.values() for step in loo.steps} - shared)
        found = {name: loo.of(shared) for name, loo in found.items()}
        note = f"of {_quoted(sorted(shared))} alone, which every run scores, and not of {_quoted(alone)}"
    rows = _rows(found)
    return Ranking(tuple(rows), "\n".join(filter(None, (note, _trust(rows)))) or None)


def _quoted(steps: Sequence[str]) -> str:
    return ", ".join(f"`{step}`" for step in steps)


def _scored_by_all(each: Sequence[Loo]) -> frozenset[str]:
    """The steps that every run scores; none where two runs score other elements of one, or a single one is left."""
    steps = frozenset.intersection(*(frozenset(loo.steps) for loo in each))
    kept = {loo.of(steps).names for loo in each}
    return steps if len(kept) == 1 and len(kept.pop()) > 1 else frozenset()


def _rows(found: dict[str, Loo]) -> list[Ranked]:
    order = sorted(found, key=lambda name: -found[name].total)
    best = found[order[0]]
    return [
        Ranked(
            run=name, elpd=loo.total, se=loo.se, parameters=float(loo.parameters.sum()),
            difference=loo.total - best.total, difference_se=spread_of_sum(loo.elpd - best.elpd),
            observations=len(loo.elpd), bad=len(loo.bad), good=loo.good,
        )
        for name in order
        for loo in (found[name],)
    ]  # fmt: skip


def _trust(rows: Sequence[Ranked]) -> str | None:
    """What to say of how sure the order is."""
    told: list[str] = []
    if bad := [row.run for row in rows if row.bad]:
        rough = f"Pareto k is too large in {', '.join(bad)}: those figures are rough"
        told.append(f"{rough} (`qvr check-fit` says which observations)")
    close = [row.run for row in rows[1:] if abs(row.difference) < 4 or abs(row.difference) < 2 * row.difference_se]
    if close:
        told.append(f"the difference to {', '.join(close)} is small: less than 4, or than twice its standard error")
    return "\n".join(told) or None
