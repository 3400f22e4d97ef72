"""A table with a column of each kind that the formulas of `formulas.tsv` speak of, drawn anew from a seed."""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path

LEVELS = {"a": 0.0, "b": 1.5, "c": -1.0}
ROWS = 160


def write(path: Path, seed: int = 1) -> None:
    """Write a csv of `ROWS` rows to `path`."""
    draw = random.Random(seed)
    groups = [f"g{j}" for j in range(8)]
    effect = {g: draw.gauss(0, 0.6) for g in groups}
    slope = {g: draw.gauss(0, 0.3) for g in groups}
    rows = [_row(i, draw, groups[i % 8], effect, slope) for i in range(ROWS)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _row(i: int, draw: random.Random, g: str, effect: dict[str, float], slope: dict[str, float]) -> dict[str, object]:
    x, z = draw.gauss(0.3, 1.0), draw.gauss(40.0, 8.0)
    f, sex = draw.choice("abc"), draw.choice(["female", "male"])
    treated = draw.random() < 0.5
    centre = 0.8 * x + LEVELS[f] + effect[g] + slope[g] * x + 0.5 * treated
    chance = 1 / (1 + math.exp(-0.7 * centre))
    expo = draw.uniform(0.5, 3.0)
    trials = draw.randint(5, 20)
    stay = draw.weibullvariate(5.0 * math.exp(0.2 * centre), 1.6)
    score = centre + draw.gauss(0, 1.2)
    return {
        "y": round(10.0 + 2.0 * centre + 0.05 * (z - 40.0) + draw.gauss(0, 1.2), 3),
        "x": round(x, 3),
        "z": round(z, 2),
        "year": 1980 + i % 40,
        "day": i + 1,
        "f": f,
        "sex": sex,
        "treated": str(treated).lower(),
        "g": g,
        "h": f"h{i // 8 % 3}",
        "subject": f"s{i // 24 % 3}",
        "expo": round(expo, 3),
        "income": round(math.exp(7.0 + 0.3 * x + draw.gauss(0, 0.4)), 1),
        "seen": int(draw.random() < chance),
        "visits": _count(draw, expo * math.exp(0.6 + 0.25 * centre)),
        "n": trials,
        "k": sum(draw.random() < chance for _ in range(trials)),
        "share": round(min(max(draw.betavariate(6 * chance, 6 * (1 - chance)), 0.004), 0.996), 4),
        "stay": round(stay, 3),
        "dead": int(stay > 9.0),
        "rain": 0.0 if draw.random() < 0.25 else round(draw.gammavariate(2.0, math.exp(0.3 * centre)), 3),
        "rating": 1 + sum(score > cut for cut in (-1.5, -0.2, 0.8, 2.2)),
        "choice": max(["bus", "car", "train"], key=lambda kind: draw.gauss(0.5 * x * (kind == "car"), 1.0)),
        "dose": 1 + i % 4,
        "wt": round(draw.uniform(0.5, 1.5), 2),
        "bmi": "" if i % 23 == 5 else round(24 + 2 * x + draw.gauss(0, 2), 1),
        "Hours/week": draw.randint(10, 45),
        "Größe cm": round(draw.gauss(172, 9)),
        "class": draw.choice(["first", "second", "third"]),
        "School Name": draw.choice(["North Hill", "South Bank", "West End", "Old Town"]),
        "row id": f"r-{i:04d}",
        "seen on": f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}",
        "planet": "earth",
    }


def _count(draw: random.Random, rate: float) -> int:
    count, left = 0, draw.expovariate(1.0)
    while left < rate:
        count, left = count + 1, left + draw.expovariate(1.0)
    return count
