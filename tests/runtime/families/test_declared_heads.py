"""Families that a file declares as heads of kernels: links by what their parameters take, densities, draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st
import torch
from torch import Tensor

from qvr_core.dsl import load, loads
from qvr_core.runtime.programs.handlers import by_rows, condition, seed

pytestmark = pytest.mark.usefixtures("double_precision")

FAMILIES = """family Lean(loc, scale : Real 1 [low=0.0], tilt : Real 1 [low=2.0]) : Real 1
    density(x) = -0.5 * ((x - loc) / scale)^2 - log(scale) - 0.9189385332046727 - tilt
    draw = Normal(loc, scale)
family Between(low_mean : Real 1 [low=1.0, high=3.0], p : Real 1 [low=0.0, high=1.0]) : Real 1 [low=0.0]
    density(x) = where(p > 0.5, log(p), log1p(-p)) - x / low_mean - log(low_mean)
    draw = Exponential(1.0 / low_mean)
family Layers(weights : Simplex 2, cuts : Ordered 3, level : Real 2) : Real 1
    density(x) = log(weights[0] * exp(-abs(x - cuts[0])) + weights[1] * exp(-abs(x - cuts[2])))
        + cuts[1] - level[0] * level[1]
    draw = cuts[1] + Normal(0.0, 1.0)
family Spread(loc : Real k, shared : Real 1 [low=0.0]) : Real k
    density(x) = sum(-0.5 * ((x - loc) / shared)^2 - log(shared) - 0.9189385332046727)
    draw = loc + shared * Normal(0.0, 1.0)
family Counted(rate : Real 1 [low=0.0]) : Nat
    density(x) = x * log(rate) - rate - lgamma(x + 1.0)
    draw = Poisson(rate)
"""
X = torch.tensor([[0.3, -1.0, 0.8], [1.5, 0.2, -0.4], [-0.7, 0.9, 0.1], [0.0, 0.0, 0.0], [2.0, -2.0, 1.0]])


def model(family: str, space: str = "Real 1", options: str = "") -> Any:
    torch.manual_seed(3)
    return loads(
        f"{FAMILIES}object H : Real 3\n"
        f"morphism net : H -> {space} [role=kernel, param_source=linear{options}] ~ {family}\n"
        f"program p(x) : H -> {space}\n    observe y <- net(x)\n    return y\nexport p\n"
    ).morphism.double()


def raw(made: Any) -> np.ndarray[Any, Any]:
    weights = dict(made.named_parameters())
    return (X.double() @ weights["net.output.weight"].T + weights["net.output.bias"]).detach().numpy()


def softplus(x: Any) -> Any:
    return np.logaddexp(0.0, x + 0.541325) + 0.001


def found(made: Any, y: Tensor) -> Any:
    return made.log_joint(X.double(), {"y": y.double()}).detach().numpy()


def test_numbers_above_a_bound_go_through_softplus() -> None:
    made, y = model("Lean", "Real 2", ", scale=0.5"), torch.randn(5, 2).double()
    out = raw(made).reshape(5, 3, 2)
    wanted = st.norm.logpdf(y, out[:, 0], 0.5 * softplus(out[:, 1])) - (2.0 + softplus(out[:, 2]))
    np.testing.assert_allclose(found(made, y), wanted.sum(1), rtol=1e-9)


def test_numbers_between_two_bounds_go_through_a_sigmoid() -> None:
    made, y = model("Between", "Real 1 [low=0.0]"), torch.rand(5, 1).double()
    out = raw(made)
    mean, p = 1.0 + 2.0 * (1e-6 + (1 - 2e-6) * sp.expit(out[:, 0])), 1e-6 + (1 - 2e-6) * sp.expit(out[:, 1])
    wanted = np.where(p > 0.5, np.log(p), np.log1p(-p)) + st.expon.logpdf(y.numpy()[:, 0], scale=mean)
    np.testing.assert_allclose(found(made, y), wanted, rtol=1e-9)


def test_vectors_are_on_a_simplex_in_order_or_free() -> None:
    made, y = model("Layers", "Real 2"), torch.randn(5, 2).double()
    out = raw(made)
    weights, cuts, level = (part.reshape(5, 2, -1) for part in np.split(out, [4, 10], axis=1))
    weights = (sp.softmax(weights, -1) + 1e-6) / (1.0 + 2e-6)
    cuts = np.concatenate([cuts[..., :1], cuts[..., :1] + np.cumsum(softplus(cuts[..., 1:]), -1)], -1)
    near, far = np.exp(-abs(y.numpy() - cuts[..., 0])), np.exp(-abs(y.numpy() - cuts[..., 2]))
    wanted = np.log(weights[..., 0] * near + weights[..., 1] * far)
    wanted += cuts[..., 1] - level[..., 0] * level[..., 1]
    np.testing.assert_allclose(found(made, y), wanted.sum(1), rtol=1e-9)


def test_one_vector_has_single_numbers_for_all_of_it() -> None:
    made, y = model("Spread", "Real 4"), torch.randn(5, 4).double()
    out = raw(made)
    assert out.shape == (5, 5)
    wanted = st.norm.logpdf(y, out[:, :4], softplus(out[:, 4:])).sum(1)
    np.testing.assert_allclose(found(made, y), wanted, rtol=1e-9)
    counted, n = model("Counted"), torch.tensor([[0.0], [3.0], [1.0], [7.0], [2.0]])
    wanted = st.poisson.logpmf(n.numpy()[:, 0], softplus(raw(counted))[:, 0])
    np.testing.assert_allclose(found(counted, n), wanted, rtol=1e-9)


SPACES = {
    "Lean": "Real 1", "Between": "Real 1 [low=0.0]", "Layers": "Real 1", "Spread": "Real 2", "Counted": "Real 1",
}  # fmt: skip


@pytest.mark.parametrize(("family", "space"), SPACES.items(), ids=SPACES)
def test_parameters_are_legal_whatever_the_network_gives(family: str, space: str) -> None:
    made = model(family, space)
    for size in (-1e6, 1e6):
        with torch.no_grad():
            for weight in made.parameters():
                weight.fill_(size)
        density = made.log_joint(X.double(), {"y": torch.ones(5, 2 if family == "Spread" else 1).double()})
        assert not bool(density.isnan().any())
        gradients = torch.autograd.grad(density[density.isfinite()].sum(), list(made.parameters()))
        assert not any(bool(one.isnan().any()) for one in gradients)


def test_draws_and_fits() -> None:
    made = model("Lean", "Real 2")
    drawn = made.run(X.double().repeat(400, 1), by_rows(2000), seed(torch.Generator().manual_seed(1))).sites["y"].value
    out = raw(made).reshape(5, 3, 2)
    np.testing.assert_allclose(drawn.reshape(400, 5, 2).mean(0).detach(), out[:, 0], atol=0.25)
    cell = loads(
        f"{FAMILIES}object H : Real 2\nmorphism step : H * H -> H [role=kernel, param_source=linear] ~ Lean\n"
        "let run = scan(step)\nprogram p(x) : H -> H\n    sample z <- run(x)\n    observe y : H <- Normal(z, 1.0)\n"
        "    return z\nexport p\n"
    ).morphism
    sequence = torch.randn(6, 4, 2)
    ended = cell.run(sequence, condition({"y": torch.zeros(6, 2)}), seed(torch.Generator().manual_seed(2)))
    assert bool(ended.log_joint().isfinite().all())
    target = (X.double() @ torch.tensor([[1.0], [-0.5], [2.0]]).double()).repeat(20, 1)
    one = model("Lean")
    optim, losses = torch.optim.Adam(one.parameters(), lr=0.05), []
    for _ in range(60):
        optim.zero_grad()
        loss = -one.log_joint(X.double().repeat(20, 1), {"y": target}).sum()
        loss.backward()
        optim.step()
        losses.append(float(loss))
    assert losses[-1] < losses[0] - 20.0


def test_a_family_of_the_library_is_a_head(tmp_path: Any) -> None:
    (tmp_path / "main.qvr").write_text(
        'from "std/families.qvr" import Logistic\nobject H : Real 3\n'
        "morphism net : H -> Real 1 [role=kernel, param_source=linear] ~ Logistic\n"
        "morphism same : H -> Real 1 [role=kernel] ~ Logistic(0.5, 2.0)\n"
        "program p(x) : H -> Real 1\n    observe y <- net(x)\n    observe u <- same(x)\n    return y\nexport p\n"
    )
    made, y = load(tmp_path / "main.qvr").morphism.double(), torch.randn(5, 1).double()
    out = raw(made)
    wanted = st.logistic.logpdf(y.numpy()[:, 0], out[:, 0], softplus(out[:, 1]))
    wanted = wanted + st.logistic.logpdf(0.3, 0.5, 2.0)
    given = {"y": y, "u": torch.full((5, 1), 0.3).double()}
    np.testing.assert_allclose(made.log_joint(X.double(), given).detach(), wanted, rtol=1e-9)


FINITE = """family Coin(p : Real 1 [low=0.0, high=1.0]) : Bool
    density(x) = log(where(x == 1, p, 1 - p))
    draw = Bernoulli(p)
family Pick(w : Simplex k, heat : Real 1 [low=0.0]) : FinSet k
    density(x) = heat * log(w[x]) - log(sum(w ^ heat))
    draw = Categorical(w ^ heat / sum(w ^ heat))
family Word(w : Simplex 4, heat : Real 1 [low=0.0]) : Token
    density(x) = heat * log(w[x]) - log(sum(w ^ heat))
    draw = Categorical(w ^ heat / sum(w ^ heat))
"""


def finite(family: str, space: str) -> Any:
    torch.manual_seed(3)
    return loads(
        f"object H : Real 3\nobject Token : {{a, b, c, d}}\n{FINITE}"
        f"morphism net : H -> {space} [role=kernel, param_source=linear] ~ {family}\n"
        f"program p(x) : H -> {space}\n    observe y <- net(x)\n    return y\nexport p\n"
    ).morphism.double()


def tempered(out: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Probabilities of raw numbers of which the last is the heat's."""
    powers = softplus(out[:, -1:]) * sp.log_softmax(out[:, :-1], -1)
    return sp.softmax(powers, -1)


@pytest.mark.parametrize(
    ("family", "space", "by_hand"),
    [
        ("Coin", "FinSet 2", lambda out: np.stack([1 - sp.expit(out[:, 0]), sp.expit(out[:, 0])], -1)),
        ("Pick", "Token", tempered),
        ("Word", "Token", tempered),
        # joint: one table of all pairs
        ("Pick", "FinSet 2 * FinSet 3", tempered),
        # a table for each factor; the raw numbers of a parameter stand together
        (
            "Word",
            "Token * Token",
            lambda out: np.einsum(
                "bi,bj->bij", tempered(out[:, [0, 1, 2, 3, 8]]), tempered(out[:, [4, 5, 6, 7, 9]])
            ).reshape(len(out), -1),
        ),
    ],
)
def test_a_family_of_a_finite_set_is_a_head(family: str, space: str, by_hand: Any) -> None:
    made = finite(family, space)
    wanted = by_hand(raw(made))
    np.testing.assert_allclose(made.logits(X.double()).exp().detach().numpy(), wanted, rtol=1e-5, atol=1e-6)
    run = made.execute(X[:1].repeat(20_000, 1).double(), seed(torch.Generator().manual_seed(1)))
    drawn, counts = run.sites["y"].value, wanted.shape[1]
    if isinstance(drawn, tuple):
        drawn = drawn[0] * (counts // 2 if space.startswith("FinSet") else 4) + drawn[1]
    shares = np.bincount(drawn.numpy(), minlength=counts) / 20_000
    np.testing.assert_allclose(shares, wanted[0], atol=0.02)
