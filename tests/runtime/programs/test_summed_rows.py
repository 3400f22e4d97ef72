"""Index notation below `marginalize z : Row <- …`, against the sum over the values of z in each row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import Tensor
from torch.distributions import Normal

from qvr_core import dsl
from qvr_core.inference.machine.density import text_of
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.runtime.programs.handlers import condition, pointwise
from tests.inference.machine.interpreted import interpreted

SETS = """
object Row : FinSet 4
object Item : FinSet 2
object Feature : FinSet 3
object Group : FinSet 2
object State : FinSet 3
object Time : FinSet 5
program p : Row -> Real 1
    data x : Row * Feature
    data w : Row
    data v : Group
    data group : Row -> Group
    sample mu[s : State] <- Normal(0.0, 2.0)
    sample b[f : Feature] <- Normal(0.0, 1.0)
    sample pi : Row <- Dirichlet([1.0, 1.0, 1.0])
{body}
    return mu
"""
MU, B = torch.tensor([-1.0, 0.5, 2.0]), torch.tensor([0.3, -0.2, 0.8])
PI = torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])
X, W = torch.linspace(-1.0, 1.0, 12).reshape(4, 3), torch.tensor([0.5, -0.5, 1.5, 1.0])
V, GROUP = torch.tensor([1.0, 2.0]), torch.tensor([0, 1, 1, 0])
DATA = {"x": X, "w": W, "v": V, "group": GROUP}
LATENTS = {"mu": MU[None], "b": B[None], "pi": PI[None]}

Density = Callable[[int, int, Tensor, Tensor], Any]
"""log p(observed of row i | z = k), of k, i, mu and y."""

CASES: dict[str, tuple[str, tuple[int, ...], Density]] = {
    "observed": (
        """
        observe y[i : Row] <- Normal(mu[z[i]] + sum(b[f] * x[i, f] for f : Feature), 1.5)""",
        (4,),
        lambda k, i, mu, y: Normal(mu[k] + X[i] @ B, 1.5).log_prob(y[i]),
    ),
    "let": (
        """
        let (m, s)[i : Row] = (mu[z[i]] * w[i], 1.0 + mu[z[i]]^2)
        observe y : Row <- Normal(m + sum(b[f] for f : Feature), s)""",
        (4,),
        lambda k, i, mu, y: Normal(mu[k] * W[i] + B.sum(), 1 + mu[k] ** 2).log_prob(y[i]),
    ),
    "plain let": (
        """
        let m = mu[z] * w
        observe y[i : Row] <- Normal(m[i] + max(x[i, f] for f : Feature), 1.0)""",
        (4,),
        lambda k, i, mu, y: Normal(mu[k] * W[i] + X[i].max(), 1.0).log_prob(y[i]),
    ),
    "more axes": (
        """
        observe y[j : Item, i : Row] <- Normal(mu[z[i]] + j, 1.0)""",
        (2, 4),
        lambda k, i, mu, y: sum(Normal(mu[k] + j, 1.0).log_prob(y[j, i]) for j in range(2)),
    ),
    "sum over another set": (
        """
        let c[i : Row, f : Feature] = mu[z[i]] * x[i, f]
        observe y[i : Row] <- Normal(sum(c[i, f] for f : Feature), 1.0)""",
        (4,),
        lambda k, i, mu, y: Normal(mu[k] * X[i].sum(), 1.0).log_prob(y[i]),
    ),
    "series": (
        """
        observe y[i : Row, t : Time] <- Normal(tanh(mu[z[i]]) * y[i, t - 1], 1.0)""",
        (4, 5),
        lambda k, i, mu, y: Normal(mu[k].tanh() * y[i, :-1], 1.0).log_prob(y[i, 1:]).sum(),
    ),
    "recursion": (
        """
        let r[i : Row, t : Time] = tanh(mu[z[i]]) * r[i, t - 1] + w[i] from 0.5
        observe y[t : Time, i : Row] <- Normal(r[i, t], 1.0)""",
        (5, 4),
        lambda k, i, mu, y: _recursion(mu[k].tanh(), W[i], y[:, i]),
    ),
    "along the rows": (
        """
        observe y[i : Row] <- Normal(mu[z[i]] + 0.5 * y[i - 1], 1.0)""",
        (4,),
        lambda k, i, mu, y: Normal(mu[k] + 0.5 * y[i - 1], 1.0).log_prob(y[i]) if i else torch.zeros(()),
    ),
    "the value itself": (
        """
        observe y[i : Row] <- Normal(where(z[i] == 1, w[i], mu[z[i]]), 1.0 + z[i])""",
        (4,),
        lambda k, i, mu, y: Normal(W[i] if k == 1 else mu[k], 1.0 + k).log_prob(y[i]),
    ),
}


def _recursion(phi: Tensor, shift: Tensor, y: Tensor) -> Tensor:
    v, total = torch.tensor(0.5), torch.zeros(())
    for t in range(5):
        v = phi * v + shift if t else v
        total = total + Normal(v, 1.0).log_prob(y[t])
    return total


def _loaded(body: str) -> Any:
    return dsl.loads(SETS.format(body=body.strip("\n"))).morphism


def _run(body: str, **given: Tensor) -> Any:
    model = _loaded(body)
    data = {name: DATA[name] for name in model.wanted_data if name in DATA}
    return model.execute(None, condition({**data, **LATENTS, **given}), pointwise)


def _mixed(values: Any) -> Tensor:
    return torch.stack(list(values)).logsumexp(0)


@pytest.mark.parametrize("case", CASES)
def test_each_row_sums_its_own_values(case: str) -> None:
    body, shape, density = CASES[case]
    torch.manual_seed(3)
    y = torch.randn(shape)
    mu = MU.clone().requires_grad_()
    run = _run(f"    marginalize z : Row <- Categorical(pi){body}", y=y, mu=mu[None])
    rows = torch.stack([_mixed(PI[i, k].log() + density(k, i, mu, y) for k in range(3)) for i in range(4)])
    torch.testing.assert_close(run.sites["z"].pointwise[0], rows)
    torch.testing.assert_close(run.sites["z"].log_prob[0], rows.sum())
    (wanted,) = torch.autograd.grad(rows.sum(), mu)
    (found,) = torch.autograd.grad(run.sites["z"].log_prob.sum(), mu)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("case", CASES)
def test_the_compiled_engine_has_them(case: str) -> None:
    body, shape, _ = CASES[case]
    torch.manual_seed(3)
    model = _loaded(f"    marginalize z : Row <- Categorical(pi){body}")
    data = {**{name: DATA[name] for name in model.wanted_data if name in DATA}, "y": torch.randn(shape)}
    potential = potential_of(model, None, data)
    q = potential.initial(np.random.default_rng(0)).unsqueeze(0)
    value, gradient = interpreted(text_of(potential)[0], potential.width)(q[0].numpy())
    wanted = potential.value_and_grad(q)
    torch.testing.assert_close(torch.tensor(value, dtype=torch.float64), wanted[0][0])
    torch.testing.assert_close(torch.as_tensor(gradient), wanted[1][0])


def test_a_row_may_have_two_values() -> None:
    body = """
    marginalize z : Row <- Categorical(pi)
        let c[i : Row] = mu[z[i]] * w[i]
        marginalize u : Row <- Categorical([0.5, 0.3, 0.2])
            let d[i : Row] = c[i] - mu[u[i]]
            observe y[i : Row] <- Normal(d[i], 1.0)"""
    y = torch.tensor([0.3, -1.0, 2.0, 0.5])
    inner = torch.tensor([0.5, 0.3, 0.2])
    rows = [
        _mixed(
            PI[i, k].log() + inner[m].log() + Normal(MU[k] * W[i] - MU[m], 1.0).log_prob(y[i])
            for k in range(3)
            for m in range(3)
        )
        for i in range(4)
    ]
    torch.testing.assert_close(_run(body, y=y).sites["z"].log_prob[0], torch.stack(rows).sum())


def test_a_group_has_one_value() -> None:
    body = """
    marginalize z : State <- Categorical([0.2, 0.3, 0.5]) [over=Group]
        let m[g : Group] = mu[z] * v[g]
        observe y : Row <- Normal(m, 1.0) [via=group]
        observe q[g : Group, j : Item] <- Normal(m[g] + j, 1.0)"""
    y, q, share = torch.tensor([0.3, -1.0, 2.0, 0.5]), torch.tensor([[0.1, 1.0], [-0.4, 2.0]]), [0.2, 0.3, 0.5]
    groups = [
        _mixed(
            math.log(share[k])
            + Normal(MU[k] * V[g], 1.0).log_prob(y[g == GROUP]).sum()
            + Normal(MU[k] * V[g] + torch.arange(2), 1.0).log_prob(q[g]).sum()
            for k in range(3)
        )
        for g in range(2)
    ]
    torch.testing.assert_close(_run(body, y=y, q=q).sites["z"].log_prob[0], torch.stack(groups).sum())


def test_one_value_for_all() -> None:
    body = """
    marginalize z : State <- Categorical([0.2, 0.3, 0.5])
        let m[i : Row] = mu[z] * w[i]
        observe y : Row <- Normal(m, 1.0)
        observe q[i : Row, j : Item] <- Normal(m[i] + j, 1.0)
        score s = -0.5 * sum(m[i]^2 for i : Row)"""
    y, q, share = torch.tensor([0.3, -1.0, 2.0, 0.5]), torch.linspace(-1.0, 2.0, 8).reshape(4, 2), [0.2, 0.3, 0.5]
    wanted = _mixed(
        math.log(share[k])
        + Normal(MU[k] * W, 1.0).log_prob(y).sum()
        + Normal((MU[k] * W)[:, None] + torch.arange(2), 1.0).log_prob(q).sum()
        - 0.5 * (MU[k] * W).square().sum()
        for k in range(3)
    )
    torch.testing.assert_close(_run(body, y=y, q=q).sites["z"].log_prob[0], wanted)


def test_rows_of_two_sets() -> None:
    body = """
    marginalize z : Row * Item <- Categorical(pi)
        observe q[j : Item, i : Row, t : Time] <- Normal(mu[z[i, j]] + t, 1.0)"""
    q = torch.linspace(-2.0, 6.0, 40).reshape(2, 4, 5)
    cells = [
        _mixed(PI[i, k].log() + Normal(MU[k] + torch.arange(5), 1.0).log_prob(q[j, i]).sum() for k in range(3))
        for i in range(4)
        for j in range(2)
    ]
    run = _run(body, q=q)
    torch.testing.assert_close(run.sites["z"].pointwise[0].flatten(), torch.stack(cells))


def test_an_interval_is_integrated_in_each_row() -> None:
    body = """
    marginalize u : Row <- Beta(1.3, 2.0)
        observe y[i : Row] <- Normal(u[i] * w[i], 1.0)"""
    y = torch.tensor([0.3, -1.0, 2.0, 0.5])
    rows = [
        integrate.quad(lambda u, i=i: stats.beta.pdf(u, 1.3, 2.0) * stats.norm.pdf(float(y[i]) - u * float(W[i])), 0, 1)
        for i in range(4)
    ]
    found = _run(body, y=y).sites["u"].pointwise[0]
    torch.testing.assert_close(found, torch.tensor([math.log(row[0]) for row in rows]), rtol=1e-4, atol=1e-4)


def test_draws_go_with_the_rows() -> None:
    body = """
    marginalize z : Row <- Categorical(pi)
        let m[i : Row] = mu[z[i]] * w[i]
        observe q[j : Item, i : Row] <- Normal(m[i] + 100 * j, 0.001)
        observe y[i : Row] <- Normal(m[i], 0.001)"""
    torch.manual_seed(0)
    sites = _run(body).sites
    means = MU[sites["z"].value[0]] * W
    torch.testing.assert_close(sites["y"].value[0], means, rtol=0.0, atol=0.01)
    torch.testing.assert_close(sites["q"].value[0], torch.stack([means, means + 100]), rtol=0.0, atol=0.01)
