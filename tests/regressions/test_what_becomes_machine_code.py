"""B7: what kept a density from being machine code, an operation without a loop, a long chain, a long recursion, a
Gaussian process whose rounding differs, does so no more."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.inference.machine.density import machine_density
from qvr_core.inference.mcmc.potential import potential_of

LONG = 5_000
MISSING_CATEGORY = """
object Row : FinSet 6
object Kind : FinSet 3
program p : Row -> Row
    sample w : Kind <- Dirichlet(1.0) [over=Kind]
    sample level[k : Kind] <- Normal(0.0, 1.0)
    observe kind[i : Row] : Kind <- Categorical(w) [missing=impute]
    observe y[i : Row] <- Normal(level[kind[i]], 0.5)
    return level
export p
"""
HIDDEN_CHAIN = f"""
object Time : FinSet {LONG}
object State : FinSet 2
program p : Time -> Time
    sample stay <- Beta(8.0, 2.0)
    sample mean[s : State] <- Normal(0.0, 1.0)
    let move[s : State, r : State] = where(s == r, stay, 1.0 - stay)
    marginalize z[t : Time] : State <- Categorical(move[z[t - 1]]) from Categorical([0.5, 0.5])
        observe y[t : Time] <- Normal(mean[z[t]], 1.0)
    return mean
export p
"""
RECURSION = f"""
object Time : FinSet {LONG}
program p : Time -> Time
    sample a <- Uniform(0.0, 0.5)
    sample b <- Uniform(0.0, 0.4)
    let v[t : Time] = 0.1 + a * y[t - 1]^2 + b * v[t - 1] from 0.2
    observe y[t : Time] <- Normal(0.0, sqrt(v[t]))
    return a
export p
"""
PROCESS = """
object Place : FinSet 12
program p : Place -> Place
    data x : Place
    sample rho <- InverseGamma(5.0, 5.0)
    sample alpha <- HalfNormal(1.0)
    let k[s : Place, t : Place] = alpha^2 * exp(-0.5 * ((x[s] - x[t]) / rho)^2) + 0.1 * (s == t)
    observe y : Place <- MultivariateNormal(0.0 * x, covariance_matrix=k)
    return rho
export p
"""


def series(count: int) -> torch.Tensor:
    return torch.sin(torch.arange(count, dtype=torch.float64))


DATA = {
    "imputed categories": (
        MISSING_CATEGORY,
        {"kind": torch.tensor([0.0, 2.0, torch.nan, 1.0, torch.nan, 2.0], dtype=torch.float64), "y": series(6)},
    ),
    "a hidden chain of 5,000": (HIDDEN_CHAIN, {"y": series(LONG)}),
    "a recursion of 5,000": (RECURSION, {"y": series(LONG)}),
    "a Gaussian process": (PROCESS, {"x": torch.linspace(0.0, 3.0, 12, dtype=torch.float64), "y": series(12)}),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.sampled(2)
def test_b7_it_is_machine_code(name: str) -> None:
    text, data = DATA[name]
    potential = potential_of(loads(text).morphism, None, data)
    start = np.linspace(-0.4, 0.3, potential.width)
    value, slope = machine_density(potential, start)(start)
    wanted, theirs = potential.value_and_grad(torch.from_numpy(start)[None])
    assert value == pytest.approx(float(wanted), rel=1e-9)
    np.testing.assert_allclose(slope, theirs[0].numpy(), rtol=1e-8, atol=1e-8 * abs(value))
