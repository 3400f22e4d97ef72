"""What looks wrong about chains, in sentences with advice; the thresholds are those of `inference.diagnostics`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor
from qvr_core.inference.axes import Axes, each_element
from qvr_core.inference.diagnostics.labels import order_advice
from qvr_core.inference.diagnostics.thresholds import LOW_ENERGY
from qvr_core.inference.diagnostics.verdicts import Mixed, Verdict, energy_of, mixing_of

DIAGNOSED = 4_000_000
"""Numbers that are looked at, some two seconds' worth: of larger results evenly spread elements."""


def divergence_warnings(diverging: Tensor, advice: str) -> list[str]:
    """At most one sentence: how many transitions diverged, and what to do."""
    count = int(diverging.sum())
    return [f"{count} of {diverging.numel()} transitions diverged: {advice}"] if count else []


def energy_warnings(energy: Tensor | None) -> list[str]:
    """At most one sentence: the energies (chains, draws) move too little from one transition to the next."""
    found = None if energy is None else energy_of(energy.double().cpu().numpy())
    if found is None or found.passed:
        return []
    advice = "the tails are heavier than the chains can follow: take more warm-up, or write scales `[noncentred]`"
    return [f"E-BFMI is low: {found.text} (below {LOW_ENERGY:g}); {advice}"]


def mixed(samples: Mapping[str, Tensor], diagnosed: int = DIAGNOSED, axes: Axes | None = None) -> Mixed:
    """How the chains of `samples`, (chains, draws, …) by site, mix; `axes` say what elements are called."""
    total = sum(value.numel() for value in samples.values())
    if not total:
        return Mixed(())
    names, columns = list[str](), list[NDArray[np.float64]]()
    stride = math.ceil(total / diagnosed)
    for name, value in samples.items():
        shape = tuple(value.shape[2:])
        every = value.reshape(*value.shape[:2], -1)[:, :, ::stride].double().cpu().numpy()
        labels = [axis.labels for axis in (axes or {}).get(name, ())]
        there = np.flatnonzero(~np.isnan(every).all((0, 1)))  # an element that does not exist has no draws
        columns.append(every if len(there) == every.shape[2] else every[:, :, there])
        each = list(islice(each_element(name, shape, labels), 0, None, stride))
        names += [each[at] for at in there.tolist()]
    return mixing_of(names, columns)


def mixing_warnings(samples: Mapping[str, Tensor], diagnosed: int = DIAGNOSED, axes: Axes | None = None) -> list[str]:
    """At most one sentence: chains that disagree, else too few effective draws, else rough means."""
    if not samples:
        return []
    chains, draws = next(iter(samples.values())).shape[:2]
    found = mixed(samples, diagnosed, axes)
    failed = {one.name: one for one in found.verdicts if not one.passed}
    return list(islice(_sentences(failed, found, chains, draws), 1))


def _sentences(failed: Mapping[str, Verdict], found: Mixed, chains: int, draws: int) -> Iterator[str]:
    """What is wrong, the worst first."""
    sizes = {one.name: one for one in found.verdicts if one.name.endswith("ESS")}
    if (one := failed.get("mixing")) is not None:
        yield f"{one.text}: take more draws"
    if (one := failed.get("chains")) is not None:
        yield f"{one.text}; the posterior is not to be trusted: take more warm-up, or another seed"
    apart, more = failed.get("R-hat"), "take more draws"
    more += "" if found.draws is None else f" ({found.draws:,} a chain)"
    if found.exchanged is not None:
        yield f"the chains have not mixed: {order_advice(found.exchanged)}"
    if apart is not None and chains > 1:
        yield (
            f"the chains have not mixed: R-hat of `{apart.worst}` is {apart.value:.2f} (above {apart.limit:.3g})"
            f"{_others(apart)}, of {chains * draws:,} draws; the posterior is not to be trusted yet: take more warm-up "
            "and more draws"
        )
    few = min((one for one in sizes.values() if not one.passed), key=lambda one: one.value or 0.0, default=None)
    if few is not None:
        yield (
            f"few effective draws: the {few.name} of `{few.worst}` is {few.value:.0f} of {chains * draws:,} draws, "
            f"less than {few.limit:.0f}{_others(few)}; {more}, or more warm-up"
        )
    if (one := failed.get("MCSE")) is not None:
        yield f"rough means: their Monte Carlo standard error is {one.text}; {more}"
    if apart is not None and chains < 2:
        yield f"{apart.text}: take num_chains = 4"


def _others(one: Verdict) -> str:
    return f", and {one.others:,} more are like it" if one.others else ""
