"""`[sum_to_zero]`: the density of the coordinates in an orthonormal basis that scipy finds, on all engines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch
from scipy.linalg import null_space

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel, Predictive
from qvr_core.runtime.programs.handlers import by_rows, condition, unconstrained

TEXT = """object G : FinSet 2
object S : FinSet 4
program p : One -> One
    data at : S
    sample tau[g : G] <- HalfNormal(1.0)
    sample u[g : G, s : S] <- Normal(0.0, tau[g]) [sum_to_zero{more}]
    sample v[s : S] <- Normal(0, 0.7) [sum_to_zero{more}]
    let eta[s : S] = u[0, s] - u[1, s] + v[s]
    observe y[s : S] <- Normal(eta[s] + at[s], 1.0)
    return v
export p
"""
AT, Y = np.array([0.1, -0.4, 0.3, 1.0]), np.array([0.5, 1.0, -1.0, 0.2])
DATA = {"at": torch.as_tensor(AT), "y": torch.as_tensor(Y)}
BASIS = null_space(np.ones((1, 4)))
"""(4, 3): orthonormal columns, each of which sums to 0; not the contrasts that the sampler moves by."""

pytestmark = pytest.mark.usefixtures("double_precision")


def model(more: str = "") -> Any:
    return dsl.loads(TEXT.format(more=more)).morphism


def expected(tau: Any, u: Any, v: Any) -> float:
    eta = u[0] - u[1] + v
    density = st.halfnorm.logpdf(tau).sum() + st.norm.logpdf(v @ BASIS, 0.0, 0.7).sum()
    density += sum(st.norm.logpdf(one @ BASIS, 0.0, scale).sum() for one, scale in zip(u, tau, strict=True))
    return float(density + st.norm.logpdf(Y, eta + AT, 1.0).sum())


def points() -> list[tuple[Any, Any, Any]]:
    random = np.random.default_rng(7)
    return [
        (np.exp(random.normal(size=2)), random.normal(size=(2, 3)) @ BASIS.T, random.normal(size=3) @ BASIS.T)
        for _ in range(5)
    ]


@pytest.mark.parametrize("more", ["", ", noncentred"])
def test_the_density_is_that_of_the_coordinates(more: str) -> None:
    program = model(more)
    for tau, u, v in points():
        values = {"tau": torch.as_tensor(tau), "u": torch.as_tensor(u), "v": torch.as_tensor(v)}
        found = program.log_joint(None, {**values, **DATA}).sum().item()
        assert found == pytest.approx(expected(tau, u, v), abs=1e-9)
        values["v"] = values["v"] + 0.1
        assert program.log_joint(None, {**values, **DATA}).sum().item() == -math.inf


@pytest.mark.parametrize("more", ["", ", noncentred"])
def test_what_a_sampler_moves_has_this_density_and_the_volume_of_the_map(more: str) -> None:
    program, random = model(more), np.random.default_rng(8)
    numbers = {name: torch.as_tensor(random.normal(size=(1, *shape))) for name, shape in
               (("tau", (2,)), ("u", (2, 3)), ("v", (3,)))}  # fmt: skip
    run = program.run(None, condition(DATA), unconstrained(numbers), by_rows(1))
    tau, u, v = (run.sites[name].value[0] for name in ("tau", "u", "v"))
    assert u.sum(-1).abs().max() < 1e-12
    assert v.sum(-1).abs().max() < 1e-12
    assert run.log_joint().item() == pytest.approx(expected(tau.numpy(), u.numpy(), v.numpy()), abs=1e-9)

    def value(z: torch.Tensor) -> torch.Tensor:
        given = unconstrained({**numbers, "u": z[None]})
        return program.run(None, condition(DATA), given, by_rows(1)).sites["u"].value[0]

    jacobian: Any = torch.autograd.functional.jacobian(value, numbers["u"][0])
    columns = jacobian.reshape(8, 6)
    volume = 0.5 * torch.linalg.slogdet(columns.mT @ columns).logabsdet.item()
    assert run.sites["u"].log_jacobian.item() == pytest.approx(volume, abs=1e-9)
    scales = 3.0 * float(tau.log().sum()) if more else 0.0
    assert volume == pytest.approx(scales, abs=1e-9)


@pytest.mark.parametrize("more", ["", pytest.param(", noncentred", marks=pytest.mark.slow)])
def test_chains_are_machine_code_of_the_same_density(more: str) -> None:
    found = {
        engine: MCMC(NUTSKernel(), 30, 20, 1, seed=1, engine=engine).run(model(more), None, DATA)
        for engine in ("compiled", "plain")
    }
    assert {key: one.engine for key, one in found.items()} == {"compiled": "compiled", "plain": "plain"}
    for one in found.values():
        assert one.samples["u"].shape[-2:] == (2, 4)
        assert one.samples["u"].sum(-1).abs().max() < 1e-9


def test_draws_from_the_prior_have_the_covariance_of_what_has_no_mean() -> None:
    torch.manual_seed(3)
    drawn = Predictive(model(), num_samples=4000)(None, {"at": DATA["at"]})["v"].reshape(-1, 4).double().numpy()
    assert np.abs(drawn.sum(-1)).max() < 1e-9
    np.testing.assert_allclose(np.cov(drawn.T), 0.49 * (np.eye(4) - 0.25), atol=0.03)
