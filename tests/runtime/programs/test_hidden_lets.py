"""`let` steps below hidden chains, against the sum over all paths: 3 states, 5 times, 2 subjects."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from qvr_core import dsl
from qvr_core.runtime.programs.handlers import condition

PROGRAM = """
object Time : FinSet 5
object Subject : FinSet 2
object State : FinSet 3
object Row : FinSet 8
program p : Row -> Real 1
    data x : Subject * Time
    data subject : Row -> Subject
    data time : Row -> Time
    sample P : State <- Dirichlet([1.0, 1.0, 1.0])
    sample p0 <- Dirichlet([1.0, 1.0, 1.0])
    sample mu[s : State] <- Normal(0.0, 2.0)
    sample b[g : Subject] <- Normal(0.0, 1.0)
    marginalize z[g : Subject, t : Time] : State <- Categorical(P[z[g, t - 1]]) from Categorical(p0)
{body}
    return mu
"""
TABLE = """
        let scale = exp(0.1 * b[0])
        let m[g : Subject, t : Time] = mu[z[g, t]] + b[g] * x[g, t]
        let (c, d)[g : Subject, t : Time] = (m[g, t]^2, scale * 0.5)
        observe y[g : Subject, t : Time] <- Normal(m[g, t] + 0.1 * c[g, t], scale + d[g, t])"""
LONG = """
        let m[g : Subject, t : Time] = mu[z[g, t]] + b[g] * x[g, t]
        observe y[i : Row] <- Normal(m[subject[i], time[i]] + 0.5 * mu[z[subject[i], time[i]]], 1.0)"""
STATES = """
        let k[i : Row] = z[subject[i], time[i]]
        let double[k : State] = 2 * mu[k]
        observe y[i : Row] <- Normal(mu[k[i]] + double[k[i]] + b[subject[i]], 1.0)"""
BEFORE = """
        let step[g : Subject, t : Time] = mu[z[g, t]] - mu[z[g, t - 1]]
        observe y[g : Subject, t : Time] <- Normal(step[g, t], 1.0)"""
SUBJECT, TIME = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]), torch.tensor([0, 1, 2, 0, 1, 2, 3, 4])


def _run(body: str, y: Tensor) -> Any:
    torch.manual_seed(0)
    data = {"y": y, "x": torch.linspace(-1.0, 1.0, 10).reshape(2, 5), "subject": SUBJECT, "time": TIME}
    model = dsl.loads(PROGRAM.format(body=body.strip("\n"))).morphism
    return model.execute(None, condition({name: data[name] for name in (*model.wanted_data, "y")}))


def _seen(kind: str, path: tuple[int, ...], g: int, at: dict[str, Tensor], y: Tensor) -> Any:
    """What is observed of one chain, given its path."""
    mu, b, x = at["mu"], at["b"], torch.linspace(-1.0, 1.0, 10).reshape(2, 5)
    rows = [i for i in range(8) if SUBJECT[i] == g]
    match kind:
        case "table":
            scale = (0.1 * b[0]).exp()
            means = [mu[path[t]] + b[g] * x[g, t] for t in range(5)]
            return sum(Normal(m + 0.1 * m**2, 1.5 * scale).log_prob(y[g, t]) for t, m in enumerate(means))
        case "long":
            return sum(Normal(1.5 * mu[path[int(TIME[i])]] + b[g] * x[g, TIME[i]], 1.0).log_prob(y[i]) for i in rows)
        case "states":
            return sum(Normal(3 * mu[path[int(TIME[i])]] + b[g], 1.0).log_prob(y[i]) for i in rows)
        case _:
            return sum(Normal(mu[path[t]] - mu[path[t - 1]], 1.0).log_prob(y[g, t]) for t in range(1, 5))


@pytest.mark.parametrize(("kind", "body"), [("table", TABLE), ("long", LONG), ("states", STATES), ("before", BEFORE)])
def test_all_paths_are_summed(kind: str, body: str) -> None:
    y = torch.randn(8) if kind in ("long", "states") else torch.randn(2, 5)
    run = _run(body, y)
    at = {name: run.sites[name].value[0] for name in ("P", "p0", "mu", "b")}
    found: list[Tensor] = []
    for g in range(2):
        terms = [
            at["p0"][path[0]].log()
            + sum(at["P"][path[t - 1], path[t]].log() for t in range(1, 5))
            + _seen(kind, path, g, at, y)
            for path in itertools.product(range(3), repeat=5)
        ]
        found.append(torch.logsumexp(torch.stack(terms), 0))
    torch.testing.assert_close(run.sites["z"].log_prob[0], sum(found))
