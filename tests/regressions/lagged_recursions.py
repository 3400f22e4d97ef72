"""Recursions whose names begin at different elements, with their densities as loops over the elements (finding A9)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

Values = Mapping[str, Any]

HEAD = """\
object Quarter : FinSet 11
object Season : FinSet 4
object Two : FinSet 2
object Shop : FinSet 3
program seasons : Quarter -> Quarter
    sample level0 <- Normal(0.0, 1.0)
    sample season0[k : Season] <- Normal(0.0, 1.0)
    sample a <- Beta(2.0, 2.0)
"""


def normal(x: float, mean: float) -> float:
    return -0.5 * (x - mean) ** 2 - 0.5 * math.log(2.0 * math.pi)


def additive(v: Values) -> float:
    y, level, season, total = v["y"], [v["level0"]], list(v["season0"]), 0.0
    for t in range(1, 11):
        last = season[t - 4] if t >= 4 else v["season0"][t]
        total += normal(y[t], level[t - 1] + last)
        level.append(v["a"] * (y[t] - last) + (1 - v["a"]) * level[t - 1])
        if t >= 4:
            season.append(0.3 * (y[t] - level[t]) + 0.7 * last)
    return total


def multiplied(v: Values) -> float:
    """No affine recursion, and what is read of data begins later still."""
    y, level, season, total = v["y"], [v["level0"]], list(v["season0"]), 0.0
    for t in range(1, 11):
        last = season[t - 4] if t >= 4 else v["season0"][t]
        total += normal(y[t], level[t - 1] * last)
        level.append(math.tanh(level[t - 1] * last) + 0.1 * t)
        if t >= 4:
            season.append(math.exp(-(level[t] ** 2)) * last + 0.1 * y[t - 2])
    return total


def summed(v: Values) -> float:
    """A lag that is an index of its own, read by the other name."""
    y, level, wave, total = v["y"], [v["level0"]], list(v["season0"][:3]), 0.0
    for t in range(1, 11):
        before = [wave[t - 1 - j] if t - 1 - j >= 0 else wave[t - 1 - j + 3] for j in range(2)]
        total += normal(y[t], level[t - 1] + before[0])
        level.append(0.5 * level[t - 1] + a_third(before))
        if t >= 3:
            wave.append(-0.4 * wave[t - 3] + 0.2 * y[t - 1])
    return total


def a_third(before: list[float]) -> float:
    return sum(before) / 3.0


def apart(v: Values) -> float:
    """Nothing but data is read: each name begins where its own are there."""
    y = v["y"]
    first = [v["level0"], *(2.0 * y[t - 1] for t in range(1, 11))]
    third = [*v["season0"][:3], *(y[t - 2] * y[t - 3] for t in range(3, 11))]
    return sum(normal(y[t], first[t] + third[t]) for t in range(11))


def of_plates(v: Values) -> float:
    total = 0.0
    for s in range(3):
        y, level, season = v["y"][s], [v["level0"]], list(v["season0"])
        for t in range(1, 11):
            last = season[t - 4] if t >= 4 else v["season0"][t]
            total += normal(y[t], level[t - 1] + last)
            level.append(v["a"] * (y[t] - last) + (1 - v["a"]) * level[t - 1])
            if t >= 4:
                season.append(0.3 * (y[t] - level[t]) + 0.7 * last)
    return total


def of_separate_lets(v: Values) -> float:
    y, level, season, total = v["y"], [v["level0"]], list(v["season0"]), 0.0
    for t in range(1, 11):
        total += normal(y[t], level[t - 1] + (season[t - 4] if t >= 4 else v["season0"][t]))
        level.append(v["a"] * y[t] + (1 - v["a"]) * level[t - 1])
        if t >= 4:
            season.append(0.3 * (y[t] - level[t]) + 0.7 * season[t - 4])
    return total


def reading_one_another(v: Values) -> float:
    y, level, season, total = v["y"], [v["level0"]], list(v["season0"]), 0.0
    for t in range(1, 11):
        last = season[t - 4] if t >= 4 else v["season0"][t]
        total += normal(y[t], math.tanh(level[t - 1]) * last)
        level.append(v["a"] * (y[t] - last) + math.sin(level[t - 1]))
        if t >= 4:
            season.append(0.3 * (y[t] - y[t - 1]) + 0.7 * last)
    return total


def read_twice_back(v: Values) -> float:
    """One let is read further back by the other than by itself."""
    y, level, season, total = v["y"], [v["level0"], 0.5], list(v["season0"]), 0.0
    for t in range(2, 11):
        last = season[t - 4] if t >= 4 else v["season0"][t]
        total += normal(y[t], level[t - 1] + last)
        level.append(v["a"] * y[t] + (1 - v["a"]) * level[t - 1])
        if t >= 4:
            season.append(0.3 * (y[t] - level[t - 2]) + 0.7 * last)
    return total


def separate_plates(v: Values) -> float:
    return sum(of_separate_lets({**v, "y": v["y"][s]}) for s in range(3))


CASES: dict[str, tuple[Callable[[Values], float], str]] = {
    "separate lets": (
        of_separate_lets,
        """\
    let level[t : Quarter] = a * y[t] + (1 - a) * level[t - 1] from level0
    let season[k : Quarter] = 0.3 * (y[k] - level[k]) + 0.7 * season[k - 4] from season0
    observe y[t : Quarter] <- Normal(level[t - 1] + season[t - 4], 1.0)
""",
    ),
    "separate lets, one reads the other": (
        reading_one_another,
        """\
    let season[t : Quarter] = 0.3 * (y[t] - y[t - 1]) + 0.7 * season[t - 4] from season0
    let level[t : Quarter] = a * (y[t] - season[t - 4]) + sin(level[t - 1]) from level0
    observe y[t : Quarter] <- Normal(tanh(level[t - 1]) * season[t - 4], 1.0)
""",
    ),
    "separate lets, read twice back": (
        read_twice_back,
        """\
    let level[t : Quarter] = a * y[t] + (1 - a) * level[t - 1] from (level0, 0.5)
    let season[t : Quarter] = 0.3 * (y[t] - level[t - 2]) + 0.7 * season[t - 4] from season0
    observe y[t : Quarter] <- Normal(level[t - 1] + season[t - 4], 1.0)
""",
    ),
    "separate lets of plates": (
        separate_plates,
        """\
    let level[s : Shop, t : Quarter] = a * y[s, t] + (1 - a) * level[s, t - 1] from level0
    let season[t : Quarter, s : Shop] = 0.3 * (y[s, t] - level[s, t]) + 0.7 * season[t - 4, s] from season0
    observe y[s : Shop, t : Quarter] <- Normal(level[s, t - 1] + season[t - 4, s], 1.0)
""",
    ),
    "additive": (
        additive,
        """\
    let (level, season)[t : Quarter] = (
        a * (y[t] - season[t - 4]) + (1 - a) * level[t - 1], 0.3 * (y[t] - level[t]) + 0.7 * season[t - 4]
    ) from (level0, season0)
    observe y[t : Quarter] <- Normal(level[t - 1] + season[t - 4], 1.0)
""",
    ),
    "multiplied": (
        multiplied,
        """\
    let (level, season)[t : Quarter] = (
        tanh(level[t - 1] * season[t - 4]) + 0.1 * t, exp(-level[t]^2) * season[t - 4] + 0.1 * y[t - 2]
    ) from (level0, season0)
    observe y[t : Quarter] <- Normal(level[t - 1] * season[t - 4], 1.0)
""",
    ),
    "summed": (
        summed,
        """\
    let (level, wave)[t : Quarter] = (
        0.5 * level[t - 1] + sum(wave[t - 1 - j] for j : Two) / 3, -0.4 * wave[t - 3] + 0.2 * y[t - 1]
    ) from (level0, (season0[0], season0[1], season0[2]))
    observe y[t : Quarter] <- Normal(level[t - 1] + wave[t - 1], 1.0)
""",
    ),
    "apart": (
        apart,
        """\
    let (first, third)[t : Quarter] = (2 * y[t - 1], y[t - 2] * y[t - 3])
        from (level0, (season0[0], season0[1], season0[2]))
    observe y[t : Quarter] <- Normal(first[t] + third[t], 1.0)
""",
    ),
    "of plates": (
        of_plates,
        """\
    let (level, season)[s : Shop, t : Quarter] = (
        a * (y[s, t] - season[s, t - 4]) + (1 - a) * level[s, t - 1],
        0.3 * (y[s, t] - level[s, t]) + 0.7 * season[s, t - 4]
    ) from (level0, season0)
    observe y[s : Shop, t : Quarter] <- Normal(level[s, t - 1] + season[s, t - 4], 1.0)
""",
    ),
}


SEPARATE = [name for name in CASES if name.startswith("separate") and "plates" not in name]
EXPORTED = ["additive", "multiplied", "apart", *SEPARATE]


def values_of(name: str, seed: int = 3) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(seed)
    shape = (3, 11) if name.endswith("of plates") else (11,)
    numbers = {"level0": 0.4 + 0.1 * seed, "season0": rng.normal(size=4), "a": 0.9 / seed, "y": rng.normal(size=shape)}
    return {key: torch.tensor(value, dtype=torch.float64) for key, value in numbers.items()}
