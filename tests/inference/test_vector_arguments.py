"""A plate of numbers as a vector argument: its last axis is the event, the others are plates; densities as in torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from scipy.stats import multivariate_normal, norm
from torch import Tensor
from torch import distributions as d

from qvr_core import dsl
from qvr_core.analysis import analyse
from qvr_core.inference import trace
from qvr_core.runtime.values.errors import RuntimeProblem

HEAD = """\
object K : FinSet 3
object G : FinSet 5
object E : FinSet 2
object Row : FinSet 6
object Species : {cat, dog}
object Sex : {female, male}
program p : Row -> Row
"""
DATA = {
    "g": torch.tensor([0, 1, 2, 3, 4, 0]),
    "e": torch.tensor([0, 1, 1, 0, 1, 0]),
    "species": torch.tensor([0, 1, 1, 0, 1, 0]),
    "sex": torch.tensor([1, 1, 0, 0, 1, 0]),
}
G, E = DATA["g"], DATA["e"]


def _ordered(predictor: Tensor, cuts: Tensor) -> d.Categorical:
    below = torch.sigmoid(cuts - predictor[..., None])
    edges = torch.cat([torch.zeros_like(below[..., :1]), below, torch.ones_like(below[..., :1])], -1)
    return d.Categorical(probs=edges.diff(dim=-1))


def _mixture(w: Tensor, mu: Tensor, s: Tensor) -> d.MixtureSameFamily:
    return d.MixtureSameFamily(d.Categorical(probs=w), d.Normal(mu, s))


# steps; the site; its density given the values of all sites
CASES: list[tuple[str, str, Callable[[dict[str, Tensor]], Tensor]]] = [
    (
        "sample b : K <- Normal(0.0, 1.0)\nobserve y : Row <- Categorical(logits=b)",
        "y",
        lambda v: d.Categorical(logits=v["b"]).log_prob(v["y"]),
    ),
    (
        "sample b : G * K <- Normal(0.0, 1.0)\nobserve y : Row <- Categorical(logits=b[g])",
        "y",
        lambda v: d.Categorical(logits=v["b"][G]).log_prob(v["y"]),
    ),
    (
        "sample m : Row <- Normal(0.0, 1.0)\nsample c : K <- Normal(0.0, 1.0)\nlet cuts = cumsum(exp(c), 0)\n"
        "observe y : Row <- OrderedLogistic(m, cuts)",
        "y",
        lambda v: _ordered(v["m"], v["c"].exp().cumsum(0)).log_prob(v["y"]),
    ),
    (
        "sample alpha : K <- Gamma(2.0, 1.0)\nsample th <- Dirichlet(alpha)\nobserve y : Row <- Categorical(th)",
        "th",
        lambda v: d.Dirichlet(v["alpha"]).log_prob(v["th"]),
    ),
    (
        "sample alpha : K <- Gamma(2.0, 1.0)\nsample th : K <- Dirichlet(alpha)\nobserve y : Row <- Categorical(th)",
        "th",
        lambda v: d.Dirichlet(v["alpha"]).log_prob(v["th"]),
    ),
    (
        "sample alpha : K <- Gamma(2.0, 1.0)\nsample th : G <- Dirichlet(alpha)\nobserve y : Row <- Categorical(th[g])",
        "th",
        lambda v: d.Dirichlet(v["alpha"]).log_prob(v["th"]),
    ),
    (
        "sample alpha : G * K <- Gamma(2.0, 1.0)\nsample th <- Dirichlet(alpha)\nobserve y : Row <- Categorical(th[g])",
        "th",
        lambda v: d.Dirichlet(v["alpha"]).log_prob(v["th"]),
    ),
    *(
        (
            f"sample mu : {plate} <- Normal(0.0, 1.0)\nsample L <- LKJCholesky(1.0, 2)\n"
            f"sample z{over} <- MultivariateNormal(mu, L)\nobserve y : Row <- Normal(z[{index}], 1.0)",
            "z",
            lambda v: d.MultivariateNormal(v["mu"], scale_tril=v["L"]).log_prob(v["z"]),
        )
        for plate, over, index in (
            ("G * E", "", "g, e"),
            ("G * E", " : G", "g, e"),
            ("E", " : G", "g, e"),
            ("E", "", "e"),
        )
    ),
    (
        "sample mu : G * E <- Normal(0.0, 1.0)\nsample L <- LKJCholesky(1.0, 2)\n"
        "observe y : Row <- MultivariateNormal(mu[g], L)",
        "y",
        lambda v: d.MultivariateNormal(v["mu"][G], scale_tril=v["L"]).log_prob(v["y"]),
    ),
    (
        "sample w <- Dirichlet(1.0) [over=K]\nsample mu : K <- Normal(0.0, 1.0)\nsample s : K <- HalfNormal(1.0)\n"
        "observe y : Row <- MixtureNormal(w, mu, s)",
        "y",
        lambda v: _mixture(v["w"], v["mu"], v["s"]).log_prob(v["y"]),
    ),
    (
        "sample w : K <- Gamma(2.0, 1.0)\nsample mu : K <- Normal(0.0, 1.0)\nsample s <- HalfNormal(1.0)\n"
        "observe y : Row <- MixtureNormal(w / sum(w), mu, s)",
        "y",
        lambda v: _mixture(v["w"] / v["w"].sum(), v["mu"], v["s"].expand(3)).log_prob(v["y"]),
    ),
    (
        "sample m : Species * Sex <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(m[species, sex], 1.0)",
        "y",
        lambda v: d.Normal(v["m"][DATA["species"], DATA["sex"]], 1.0).log_prob(v["y"]),
    ),
    (
        "sample m : Species * Sex <- Normal(0.0, 1.0)\n"
        "observe y : Row <- Normal(m[species, male] - m[dog, female], 1.0)",
        "y",
        lambda v: d.Normal(v["m"][DATA["species"], 1] - v["m"][1, 0], 1.0).log_prob(v["y"]),
    ),
]


@pytest.mark.parametrize(("steps", "site", "density"), CASES, ids=[steps for steps, _, _ in CASES])
def test_density_of_a_plate_as_a_vector_argument(
    steps: str, site: str, density: Callable[[dict[str, Tensor]], Tensor]
) -> None:
    body = "".join(f"    {step}\n" for step in steps.splitlines())
    text = f"{HEAD}{body}    return {steps.split()[1]}\n"
    assert not [found for found in analyse(text).diagnostics() if found.code.name != "unused"]
    torch.manual_seed(0)
    model = dsl.loads(text).morphism
    found = trace(model, None, DATA)
    values = {name: one.value[0] for name, one in found.sites.items()}
    assert found.sites[site].log_prob.sum().item() == pytest.approx(density(values).sum().item(), abs=1e-4)


def test_a_bound_name_hides_a_label() -> None:
    body = "    let dog = 0\n    sample u : Species <- Normal(0.0, 1.0)\n    observe y : Row <- Normal(u[dog], 1.0)\n"
    model = dsl.loads(f"{HEAD}{body}    return u\n").morphism
    values = {"u": torch.tensor([1.0, 5.0]), "y": torch.zeros(6)}
    expected = d.Normal(0.0, 1.0).log_prob(values["u"]).sum() + d.Normal(1.0, 1.0).log_prob(values["y"]).sum()
    assert model.log_joint(None, values).item() == pytest.approx(expected.item(), abs=1e-4)


def test_a_covariance_is_not_taken_for_a_factor() -> None:
    """Only its lower half would count: refused, while the same matrix as `covariance_matrix` has scipy's density."""
    source = """
program p : FinSet 2 -> FinSet 2
    sample mu <- Normal(0.0, 1.0)
    observe y <- MultivariateNormal(mu * ones(2), {argument})
    return mu
"""
    sigma, y = torch.tensor([[4.0, 1.0], [1.0, 9.0]]), torch.tensor([1.0, 2.0])
    values = {"mu": torch.tensor([0.5]), "y": y}
    with pytest.raises(RuntimeProblem, match="is a Cholesky factor, but it has numbers above its diagonal"):
        dsl.loads(source.format(argument="sigma"), data={"sigma": sigma}).programs["p"].log_joint(None, values)
    given = dsl.loads(source.format(argument="covariance_matrix=sigma"), data={"sigma": sigma}).programs["p"]
    expected = multivariate_normal([0.5, 0.5], sigma.numpy()).logpdf(y.numpy()) + norm.logpdf(0.5)
    assert float(given.log_joint(None, values)) == pytest.approx(expected, abs=1e-4)
