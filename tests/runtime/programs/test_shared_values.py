"""A `let` of a function is computed once, however often it is read: fifty calls are machine code of what they share."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel

FUNCTION = """def f(x, k = 2.0)
    let a = exp(x) + k
    let b = a * a + log(a) + sqrt(a)
    let c = b * b + log(b) + sqrt(b)
    let d = c * c + log(c) + sqrt(c)
    return d
"""
CALLS = 50


def program() -> str:
    lines = [f"    let v{at} = f(m * {at / 100:.2f})" for at in range(CALLS)]
    total = " + ".join(f"log(v{at})" for at in range(CALLS))
    return "\n".join([
        "object Row : FinSet 4", FUNCTION + "program p : One -> One", "    sample m <- Normal(0.0, 1.0)", *lines,
        f"    let s = {total}", "    observe y[i : Row] <- Normal(s, 10.0)", "    return m", "export p\n",
    ])  # fmt: skip


def f(x: float) -> float:
    value = np.exp(x) + 2.0
    for _ in range(3):
        value = value * value + np.log(value) + np.sqrt(value)
    return float(value)


@pytest.mark.usefixtures("double_precision")
def test_fifty_calls_are_machine_code_of_the_density_by_hand() -> None:
    model = dsl.loads(program()).morphism
    y = np.array([400.0, 410.0, 420.0, 430.0])
    given = {"y": torch.as_tensor(y)}
    for m in (-1.0, 0.3, 2.0):
        found = float(model.log_joint(None, {**given, "m": torch.tensor(m)}))
        total = sum(np.log(f(m * at / 100)) for at in range(CALLS))
        assert found == pytest.approx(st.norm.logpdf(m) + st.norm.logpdf(y, total, 10.0).sum(), rel=1e-9)
    result = MCMC(NUTSKernel(), num_warmup=5, num_samples=2, num_chains=1, seed=2, engine="compiled").run(
        model, None, given
    )
    assert result.engine == "compiled"


@pytest.mark.usefixtures("double_precision")
def test_a_function_in_an_equation_is_computed_at_each_time() -> None:
    """What is kept is kept for one evaluation: the rate has another value at each state."""
    text = """object Time : FinSet 3
def rate(t, z)
    let a = z * z
    let b = a + a * t
    return b
program p : Time -> Time
    data when : Time
    sample m <- Beta(2.0, 2.0)
    let z[t : Time] = solve(rate, m, start=0.0, at=when, method=rk4, steps=50)
    observe y[t : Time] <- Normal(z[t], 1.0)
    return m
export p
"""
    when, y, m = np.array([0.2, 0.5, 0.9]), np.array([0.1, 0.2, 0.9]), 0.4
    solution = 1.0 / (1.0 / m - when - when**2 / 2)  # dz/dt = z² (1 + t)
    found = float(dsl.loads(text).morphism.log_joint(
        None, {"y": torch.as_tensor(y), "when": torch.as_tensor(when), "m": torch.tensor(m)}
    ))  # fmt: skip
    assert found == pytest.approx(st.beta.logpdf(m, 2, 2) + st.norm.logpdf(y, solution).sum(), rel=1e-6)
