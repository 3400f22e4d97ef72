"""Graphs against draws: in linear Gaussian programs, independence is a partial correlation of zero."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest
import torch

from qvr_core.dependence import separation
from qvr_core.dsl import loads
from qvr_core.inference import Predictive
from tests.dependence.programs import HEAD, linear

DRAWS = 40_000
NAMES = "abcdef"


def random_edges(source: random.Random) -> dict[tuple[str, str], float]:
    """An acyclic graph of `NAMES` in which about 40 of 100 pairs are joined."""
    names = list(NAMES)
    source.shuffle(names)
    pairs = [pair for pair in combinations(names, 2) if source.random() < 0.4]
    return {pair: source.choice((-1, 1)) * source.uniform(0.6, 1.4) for pair in pairs}


def covariance(weights: dict[tuple[str, str], float]) -> np.ndarray:
    """The exact covariance of the names."""
    effects = np.zeros((len(NAMES), len(NAMES)))
    for (source, target), weight in weights.items():
        effects[NAMES.index(target), NAMES.index(source)] = weight
    mixing = np.linalg.inv(np.eye(len(NAMES)) - effects)
    return mixing @ mixing.T


def partial_correlation(matrix: np.ndarray, first: int, second: int, given: list[int]) -> float:
    held = [first, second, *given]
    precision = np.linalg.inv(matrix[np.ix_(held, held)])
    return float(-precision[0, 1] / np.sqrt(precision[0, 0] * precision[1, 1]))


def drawn(steps: str, names: list[str], count: int = DRAWS) -> dict[str, np.ndarray]:
    """Draws of names from the prior, a row each."""
    lines = "\n".join(f"    {line}" for line in steps.splitlines())
    model = loads(f"{HEAD}program p : One -> One\n{lines}\n").programs["p"]
    torch.manual_seed(1)
    found = Predictive(model, num_samples=count)(None, {})
    return {name: found[name].double().reshape(count, -1).numpy() for name in names}


@pytest.mark.parametrize("seed", range(4))
def test_random_linear_programs(seed: int) -> None:
    source = random.Random(seed)
    weights = random_edges(source)
    edges = ", ".join([*NAMES, *(f"{one} > {other}" for one, other in weights)])
    steps = linear(edges, observed=source.sample(NAMES, 2), weights=weights)
    graph = (
        loads(f"{HEAD}program p : One -> One\n" + "\n".join(f"    {s}" for s in steps.splitlines()))
        .programs["p"]
        .graph()
    )
    rows = drawn(steps, list(NAMES))
    sampled = np.cov(np.hstack([rows[name] for name in NAMES]).T)
    exact = covariance(weights)
    asked = 0
    for first, second in combinations(range(len(NAMES)), 2):
        rest = [one for one in range(len(NAMES)) if one not in (first, second)]
        for count in range(3):
            for given in combinations(rest, count):
                answer = separation(graph, NAMES[first], NAMES[second], [NAMES[one] for one in given])
                truth = partial_correlation(exact, first, second, list(given))
                assert answer.independent == (abs(truth) < 1e-9)
                assert abs(partial_correlation(sampled, first, second, list(given)) - truth) < 0.03
                asked += 1
    assert asked == 165


CHAIN = """\
sample start <- Normal(0.0, 1.0)
sample level <- Normal(0.0, 1.0)
sample x[t : Time] <- Normal(0.7 * x[t - 1] + 0.5 * level, 1.0) from Normal(start, 1.0)
sample other <- Normal(0.0, 1.0)
observe y[t : Time] <- Normal(x[t] + other, 1.0)
return start"""
PLATES = """\
sample mu <- Normal(0.0, 1.0)
sample nu <- Normal(0.0, 1.0)
sample level : Kind <- Normal(mu, 1.0)
let mean = level - nu
observe y : Kind <- Normal(mean, 1.0)
sample far : Kind <- Normal(level, 1.0)
return mu"""


@pytest.mark.parametrize(
    ("steps", "names", "given"),
    [(CHAIN, ["start", "level", "other"], ["x", "y"]), (PLATES, ["mu", "nu", "y", "far"], ["level", "y", "mean"])],
    ids=["chain", "plates"],
)
def test_names_with_elements(steps: str, names: list[str], given: list[str]) -> None:
    """What is left of a name when all elements of the given ones are regressed out."""
    rows = drawn(steps, [*names, *(name for name in given if name != "mean")])
    if "mean" in given:
        rows["mean"] = rows["level"] - rows["nu"]
    lines = "\n".join(f"    {line}" for line in steps.splitlines())
    graph = loads(f"{HEAD}program p : One -> One\n{lines}\n").programs["p"].graph()
    for first, second in combinations(names, 2):
        for count in range(3):
            for held in combinations([name for name in given if name not in (first, second)], count):
                known = np.hstack([np.ones((DRAWS, 1)), *(rows[name] for name in held)])
                left = [
                    rows[name] - known @ np.linalg.lstsq(known, rows[name], rcond=None)[0] for name in (first, second)
                ]
                if min(part.std() for part in left) < 1e-6:  # `nu` is `level - mean`
                    assert separation(graph, first, second, held).independent
                    continue
                most = max(abs(np.corrcoef(one, other)[0, 1]) for one in left[0].T for other in left[1].T)
                assert separation(graph, first, second, held).independent == (most < 0.025), (first, second, held, most)
