"""Whether chains have mixed: R-hat and effective sample sizes in words, of the number that is worst off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from qvr_core.inference.axes import Axes, each_element

DIAGNOSED = 4_000_000
"""Numbers that are looked at, some two seconds' worth: of larger results evenly spread elements."""
SHORT, SHORTEST = 100, 20
"""Draws of a chain below which R-hat is noisy, and below which it says nothing."""


def statistic(name: str, method: str, draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """A statistic of arviz-stats ('rhat', 'ess', 'mcse') for each element of draws (chains, draws, elements)."""
    from arviz_stats.base.array import array_stats

    options = {"prob": (0.05, 0.95)} if method == "tail" else {}
    with np.errstate(all="ignore"):
        return np.asarray(getattr(array_stats, name)(draws, chain_axis=0, draw_axis=1, method=method, **options))


def divergence_warnings(diverging: Tensor, advice: str) -> list[str]:
    """At most one sentence: how many transitions diverged, and what to do."""
    count = int(diverging.sum())
    return [f"{count} of {diverging.numel()} transitions diverged: {advice}"] if count else []


def mixing_warnings(samples: Mapping[str, Tensor], diagnosed: int = DIAGNOSED, axes: Axes | None = None) -> list[str]:
    """At most one sentence: chains that disagree, else too few effective draws; `axes` say what elements are called."""
    if not samples:
        return []
    chains, draws = next(iter(samples.values())).shape[:2]
    if draws < SHORTEST:
        return []
    total = sum(value.numel() for value in samples.values())
    stride = math.ceil(total / diagnosed)
    names, r_hats, sizes = list[str](), list[float](), list[float]()
    for name, value in samples.items():
        shape = tuple(value.shape[2:])
        flat = value.reshape(chains, draws, -1)[:, :, ::stride].double().cpu().numpy()
        labels = [axis.labels for axis in (axes or {}).get(name, ())]
        names += islice(each_element(name, shape, labels), 0, None, stride)
        r_hats += statistic("rhat", "rank", flat).tolist()
        sizes += statistic("ess", "bulk", flat).tolist()
    most = 1.05 if draws >= SHORT else 1.2
    r_hat, ess = np.array(r_hats), np.array(sizes)
    # what does not move has neither
    apart = np.nan_to_num(r_hat, nan=1.0, posinf=math.inf)
    if (bad := int((apart > most).sum())) > 0:
        worst = int(apart.argmax())
        return [
            f"the chains have not mixed: R-hat of `{names[worst]}` is {apart[worst]:.2f} (above {most:g}), its "
            f"effective sample size {ess[worst]:.0f} of {chains * draws:,} draws{_others(bad)}; the posterior is not "
            "to be trusted yet: take more warm-up and more draws"
        ]
    least = chains * min(100.0, draws / 4)
    few = np.nan_to_num(ess, nan=math.inf)
    if draws >= SHORT and (bad := int((few < least).sum())) > 0:
        worst = int(few.argmin())
        return [
            f"few effective draws: the effective sample size of `{names[worst]}` is {few[worst]:.0f} of "
            f"{chains * draws:,} draws, less than {least:.0f}{_others(bad)}; take more draws, or more warm-up"
        ]
    return []


def _others(bad: int) -> str:
    return f", and {bad - 1:,} more are like it" if bad > 1 else ""
