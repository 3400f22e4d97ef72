"""Runs ranked by their expected log predictive density, of one estimate at a time: LOO, or refits of one plan.

Two estimates are never compared with each other: K-fold refits see fewer data than LOO, and groups that are left out
are harder to predict than single observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from qvr_core.inference.labelled_datasets import Tree
from qvr_core.runs.evaluation.loo import Loo, Pointwise, loo_of, spread_of_sum
from qvr_core.runs.evaluation.refitted import Refits, asked_by, cross_validations, with_refits
from qvr_core.runs.record.netcdf import read_netcdf
from qvr_core.runs.record.store import RunDirectory

Observed = Mapping[str, NDArray[np.float32]]
"""What a run observed, by the name of the step."""


@dataclass(frozen=True)
class Ranked:
    """A run's elpd with its standard error, what it lacks to the best one with the standard error of that difference;
    of LOO the effective number of parameters, how many observations have a Pareto k above `good`, and how many were
    refitted."""

    run: str
    elpd: float
    se: float
    difference: float
    difference_se: float
    observations: int
    parameters: float | None = None
    bad: int | None = None
    good: float | None = None
    exact: int | None = None


@dataclass(frozen=True)
class Ranking:
    """The best first; none where runs have nothing to compare, and `note` says why, or how much it can be trusted.
    `estimate` is what all of them were estimated by."""

    rows: tuple[Ranked, ...] = ()
    note: str | None = None
    estimate: str = "LOO"


def ranking(runs: Sequence[RunDirectory]) -> Ranking:
    """Runs by predictive accuracy on the data that they were fitted to.  Raises `DamagedFile`, OSError."""
    found: dict[str, tuple[Loo, Observed]] = {}
    for run in runs:
        read = _read(run)
        if read is None:
            return Ranking(note=f"no predictive accuracy: run {run.run_id} stored no pointwise log likelihood")
        if read[0].joint:
            why = "observes all its data as one, so that no observation can be left out"
            return Ranking(note=f"no predictive accuracy: run {run.run_id} {why}")
        found[run.run_id] = read
    if (other := _apart({name: observed for name, (_, observed) in found.items()})) is not None:
        return Ranking(note=f"no predictive accuracy: {other}")
    return ranked({name: loo for name, (loo, _) in found.items()})


def _read(run: RunDirectory) -> tuple[Loo, Observed] | None:
    """The LOO of a run, and what it observed."""
    if not run.posterior.exists():
        return None
    run.check_posterior()
    tree = read_netcdf(run.posterior, ("posterior", "log_likelihood", "observed_data"))
    loo = loo_of(tree)
    return None if loo is None else (with_refits(loo, run, asked_by(run)), _observed(tree))


def _observed(tree: Tree) -> Observed:
    # data read in single precision are the same data
    values = tree["observed_data"].data_vars.items()
    return {name: value.to_numpy().astype(np.float64).ravel().astype(np.float32) for name, value in values}


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
    steps = frozenset(each[0].steps).intersection(*(loo.steps for loo in each[1:]))
    kept = {loo.of(steps).names for loo in each}
    return steps if len(kept) == 1 and len(kept.pop()) > 1 else frozenset()


def _rows(found: Mapping[str, Pointwise]) -> list[Ranked]:
    order = sorted(found, key=lambda name: -found[name].total)
    best = found[order[0]]
    return [_row(name, found[name], best) for name in order]


def _row(name: str, one: Pointwise, best: Pointwise) -> Ranked:
    row = Ranked(
        run=name, elpd=one.total, se=one.se, difference=one.total - best.total,
        difference_se=spread_of_sum(one.elpd - best.elpd), observations=len(one.elpd),
    )  # fmt: skip
    if not isinstance(one, Loo):
        return row
    return replace(row, parameters=float(one.parameters.sum()), bad=len(one.bad), good=one.good, exact=len(one.exact))


def cross_validated(runs: Sequence[RunDirectory]) -> list[Ranking]:
    """A ranking for each plan of refits that a run has; without rows where another run lacks it, or has other folds.
    Raises `DamagedFile`, OSError."""
    found = {run.run_id: cross_validations(run, asked_by(run)) if run.posterior.exists() else {} for run in runs}
    plans = dict.fromkeys(words for plans in found.values() for words in plans)
    if plans and (other := _other_data(runs)) is not None:
        return [Ranking(note=f"no comparison by {words}: {other}", estimate=words) for words in plans]
    return [_of_plan(words, {name: plans.get(words) for name, plans in found.items()}) for words in plans]


def _other_data(runs: Sequence[RunDirectory]) -> str | None:
    """Which runs did not observe the same."""
    have = [run for run in runs if run.posterior.exists()]
    seen = {run.run_id: _observed(read_netcdf(run.posterior, ("observed_data",))) for run in have}
    return _apart(seen)


def _apart(seen: Mapping[str, Observed]) -> str | None:
    """Which runs observed other data.  One may observe a predictor besides, whose missing cells it fills in; else the
    data are the same whatever the programs call them."""
    first, *others = seen.items()
    for name, observed in others:
        shared = set(first[1]) & set(observed)
        if len(shared) < min(len(first[1]), len(observed)):
            one, other = (np.concatenate(list(each.values())) for each in (first[1], observed))
            same = np.array_equal(one, other, equal_nan=True)
            differing = ""
        else:
            unlike = sorted(one for one in shared if not np.array_equal(first[1][one], observed[one], equal_nan=True))
            same, differing = not unlike, f" of {_quoted(unlike)}" if unlike else ""
        if not same:
            return f"{first[0]} and {name} observed different data{differing}, or in another order"
    return None


def _of_plan(words: str, found: Mapping[str, Refits | None]) -> Ranking:
    have = {name: one for name, one in found.items() if one is not None}
    first = next(iter(have))
    lacking = [name for name in found if name not in have]
    if lacking:
        command = have[first].plan.command.replace("RUN", lacking[0])
        note = f"no comparison by {words}: only {', '.join(have)} has it; `{command}` gives it to {lacking[0]}"
        return Ranking(note=note, estimate=words)
    for name, one in have.items():
        if (one.fold, one.count) != (have[first].fold, have[first].count):
            why = "leave other observations out together (they have other seeds, or score other observations)"
            return Ranking(note=f"no comparison by {words}: the folds of {first} and {name} {why}", estimate=words)
    rows = _rows({name: one.pointwise() for name, one in have.items()})
    warn = [name for name, one in have.items() if any(refit.divergences for refit in one.done.values())]
    rough = f"refits of {', '.join(warn)} have divergences" if warn else None
    return Ranking(tuple(rows), "\n".join(filter(None, (rough, _trust(rows)))) or None, words)


def _trust(rows: Sequence[Ranked]) -> str | None:
    """What to say of how sure the order is."""
    told: list[str] = []
    if bad := [row.run for row in rows if row.bad]:
        rough = f"Pareto k is too large in {', '.join(bad)}: those figures are rough"
        told.append(
            f"{rough} (`qvr check-fit` says which observations, `qvr loo {bad[0]} --exact` refits without them)"
        )
    close = [row.run for row in rows[1:] if abs(row.difference) < 4 or abs(row.difference) < 2 * row.difference_se]
    if close:
        told.append(f"the difference to {', '.join(close)} is small: less than 4, or than twice its standard error")
    return "\n".join(told) or None
