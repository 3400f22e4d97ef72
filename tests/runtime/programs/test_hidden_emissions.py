"""What hidden chains explain beside numbers, against the sum over all paths: 3 states, 5 times, 2 subjects."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Dirichlet, Multinomial, MultivariateNormal, Normal

from qvr_core import dsl
from qvr_core.inference.machine.density import text_of
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.runtime.programs.handlers import condition, pointwise
from tests.inference.machine.interpreted import interpreted

PROGRAM = """
object Time : FinSet 5
object Subject : FinSet 2
object State : FinSet 3
object Dim : FinSet 2
object Word : FinSet 4
program p : Time -> Real 1
    data x : Subject * Time
    data seen : Subject * Time -> Bool
    sample P : State <- Dirichlet([1.0, 1.0, 1.0])
    sample p0 <- Dirichlet([1.0, 1.0, 1.0])
    sample mu[s : State, d : Dim] <- Normal(0.0, 2.0)
    sample words[s : State] <- Dirichlet(1.0) [over=Word]
    marginalize z[g : Subject, t : Time] : State <- Categorical(P[z[g, t - 1]]) from Categorical(p0)
{body}
    return mu
"""
P = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
P0 = torch.tensor([0.5, 0.3, 0.2])
MU = torch.tensor([[-1.0, 0.5], [0.3, 1.0], [2.0, -0.4]])
WORDS = torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.4, 0.1]])
X = torch.linspace(-1.0, 1.0, 10).reshape(2, 5)
SEEN = torch.tensor([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]]).bool()
L = torch.tensor([[1.0, 0.0], [0.5, 0.8]])

Density = Callable[[int, int, int, Tensor, Tensor], Any]
"""log p(what is observed of subject g at time t | state k), of k, g, t, mu and y."""

VECTORS = torch.randn(2, 5, 2, generator=torch.Generator().manual_seed(0))
GAPS = VECTORS.masked_fill(~SEEN[..., None], torch.nan)
NUMBERS = VECTORS[..., 0].contiguous()
SHARES = torch.softmax(torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(1)), -1)
COUNTS = torch.tensor([[[2, 1, 1, 0], [0, 0, 4, 0], [1, 1, 1, 1], [3, 0, 0, 1], [0, 2, 2, 0]]]).expand(2, 5, 4)
ZERO = torch.zeros(())


def _trend(g: int) -> Tensor:
    made = [ZERO]
    for t in range(1, 5):
        made.append(0.5 * made[-1] + X[g, t])
    return torch.stack(made)


CASES: dict[str, tuple[str, Tensor, Density]] = {
    "vectors": (
        "observe y[g : Subject, t : Time] <- MultivariateNormal(mu[z[g, t]], scale_tril=[[1.0, 0.0], [0.5, 0.8]])",
        VECTORS,
        lambda k, g, t, mu, y: MultivariateNormal(mu[k], scale_tril=L).log_prob(y[g, t]),
    ),
    "entries": (
        "observe y[g : Subject, t : Time, d : Dim] <- Normal(mu[z[g, t], d], 1.5)",
        VECTORS,
        lambda k, g, t, mu, y: Normal(mu[k], 1.5).log_prob(y[g, t]).sum(),
    ),
    "shares": (
        "observe y[g : Subject, t : Time] <- Dirichlet(exp(mu[z[g, t], 0]) + 3.0 * words[z[g, t]])",
        SHARES,
        lambda k, g, t, mu, y: Dirichlet(mu[k, 0].exp() + 3.0 * WORDS[k]).log_prob(y[g, t]),
    ),
    "counts": (
        "observe y[g : Subject, t : Time] <- Multinomial(4, softmax(words[z[g, t]] * mu[z[g, t], 0]))",
        COUNTS,
        lambda k, g, t, mu, y: Multinomial(4, logits=WORDS[k] * mu[k, 0]).log_prob(y[g, t].float()),
    ),
    "masked": (
        "observe y[g : Subject, t : Time] <- Normal(mu[z[g, t], 0], 1.0) [mask=seen]",
        NUMBERS,
        lambda k, g, t, mu, y: Normal(mu[k, 0], 1.0).log_prob(y[g, t]) if SEEN[g, t] else None,
    ),
    "weighted": (
        "observe y[g : Subject, t : Time] <- Normal(mu[z[g, t], 0], 1.0) [weight=x]",
        NUMBERS,
        lambda k, g, t, mu, y: X[g, t] * Normal(mu[k, 0], 1.0).log_prob(y[g, t]),
    ),
    "missing vectors": (
        "observe y[g : Subject, t : Time] : Real 2 <- MultivariateNormal(mu[z[g, t]], eye(2)) [missing=drop]",
        GAPS,
        lambda k, g, t, mu, y: Normal(mu[k], 1.0).log_prob(y[g, t]).sum() if SEEN[g, t] else None,
    ),
    "missing in a series": (
        "observe y[g : Subject, t : Time] <- Normal(mu[z[g, t], 0] + 0.5 * y[g, t - 1], 1.0) [missing=drop]",
        GAPS[..., 0].contiguous(),
        lambda k, g, t, mu, y: (
            Normal(mu[k, 0] + 0.5 * y[g, t - 1], 1.0).log_prob(y[g, t]) if t and SEEN[g, t] and SEEN[g, t - 1] else None
        ),
    ),
    "censored": (
        "observe y[g : Subject, t : Time] <- Normal(mu[z[g, t], 0], 1.0) [right_censored=seen]",
        NUMBERS,
        lambda k, g, t, mu, y: (
            torch.special.log_ndtr(mu[k, 0] - y[g, t]) if SEEN[g, t] else Normal(mu[k, 0], 1.0).log_prob(y[g, t])
        ),
    ),
    "lets": (
        """let trend[g : Subject, t : Time] = 0.5 * trend[g, t - 1] + x[g, t] from 0.0
        let m[g : Subject, t : Time] = mu[z[g, t]] + trend[g, t]
        observe y[g : Subject, t : Time] <- MultivariateNormal(m[g, t] + m[g, t, 0], eye(2))""",
        VECTORS,
        lambda k, g, t, mu, y: Normal(mu[k] + mu[k, 0] + 2.0 * _trend(g)[t], 1.0).log_prob(y[g, t]).sum(),
    ),
    "scored": (
        """observe y[g : Subject, t : Time] : Word <- Categorical(words[z[g, t]])
        score s = sum(mu[z[g, t], 0] * x[g, t] for g : Subject, t : Time if seen[g, t])
        score r = mu[z[1, 2], 1]""",
        torch.tensor([[0, 1, 2, 3, 0], [3, 3, 1, 0, 2]]),
        lambda k, g, t, mu, y: (
            Categorical(WORDS[k]).log_prob(y[g, t])
            + mu[k, 0] * X[g, t] * SEEN[g, t]
            + (mu[k, 1] if (g, t) == (1, 2) else 0.0)
        ),
    ),
}


def _loaded(case: str) -> tuple[Any, dict[str, Tensor]]:
    body, y, _ = CASES[case]
    model = dsl.loads(PROGRAM.format(body="        " + body)).morphism
    known = {"x": X, "seen": SEEN, "y": y}
    return model, {name: known[name] for name in {*model.wanted_data, "y"} if name in known}


def _paths(case: str, g: int, mu: Tensor) -> Tensor:
    _, y, density = CASES[case]
    seen = [[density(k, g, t, mu, y) for k in range(3)] for t in range(5)]
    terms = [
        P0[path[0]].log()
        + sum(P[path[t - 1], path[t]].log() for t in range(1, 5))
        + sum(ZERO if (one := seen[t][path[t]]) is None else one for t in range(5))
        for path in itertools.product(range(3), repeat=5)
    ]
    return torch.logsumexp(torch.stack(terms), 0)


@pytest.mark.parametrize("case", CASES)
def test_all_paths_are_summed(case: str) -> None:
    model, data = _loaded(case)
    mu = MU.clone().requires_grad_()
    latents = {"P": P[None], "p0": P0[None], "mu": mu[None], "words": WORDS[None]}
    run = model.execute(None, condition({**data, **latents}), pointwise)
    found = run.sites["z"].log_prob[0]
    (slope,) = torch.autograd.grad(found, mu, retain_graph=True)
    other = MU.clone().requires_grad_()
    wanted = _paths(case, 0, other) + _paths(case, 1, other)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(slope, torch.autograd.grad(wanted, other)[0], rtol=1e-4, atol=1e-4)
    each = next(record.pointwise for record in run.sites.values() if record.pointwise is not None)
    torch.testing.assert_close(each.nansum(), found, rtol=1e-5, atol=1e-4)
    absent = torch.tensor([[CASES[case][2](0, g, t, MU, CASES[case][1]) is None for t in range(5)] for g in range(2)])
    if each.ndim == 3:
        assert torch.equal(each[0].isnan(), absent)


@pytest.mark.parametrize("case", CASES)
def test_the_compiled_engine_has_them(case: str) -> None:
    model, data = _loaded(case)
    potential = potential_of(model, None, data)
    q = potential.initial(np.random.default_rng(0)).unsqueeze(0)
    wanted = potential.value_and_grad(q)
    value, gradient = interpreted(text_of(potential)[0], potential.width)(q[0].numpy())
    torch.testing.assert_close(torch.tensor(value, dtype=torch.float64), wanted[0][0])
    torch.testing.assert_close(torch.as_tensor(gradient), wanted[1][0])


@pytest.mark.parametrize("case", ["vectors", "shares", "counts"])
def test_vectors_are_drawn_at_their_states(case: str) -> None:
    model, data = _loaded(case)
    del data["y"]
    torch.manual_seed(0)
    latents = {"P": P[None], "p0": P0[None], "mu": 100.0 * MU[None], "words": WORDS[None]}
    run = model.execute(None, condition({**data, **latents}))
    drawn, path = run.sites["y"].value[0], run.sites["z"].value[0]
    assert drawn.shape == CASES[case][1].shape
    if case == "vectors":
        torch.testing.assert_close(drawn, 100.0 * MU[path], rtol=0.0, atol=5.0)
    if case == "counts":
        assert torch.equal(drawn.sum(-1), torch.full((2, 5), 4))
