"""Functions of arithmetic (`def`): what they compute, compared with numpy and with their bodies written out."""

from __future__ import annotations

import numpy as np
import torch

from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.runtime.programs.handlers import condition, substitute

TEXT = """
object Row : FinSet 4
object Feature : FinSet 2
def logistic(x, k = 1.5) = 1.0 / (1.0 + exp(-k * x))
def scaled(x, by)
    let centred = x - mean(x)
    let both = logistic(centred, k=by)
    return both
program p : Row -> Real 1
    data x : Row
    data z : Row * Feature
    sample m <- Normal(0.0, 1.0)
    let a = scaled(x, m)
    let b[i : Row] = logistic(z[i, 1]) * a[i]
    observe y : Row <- Normal(a + b, 0.5)
    return m
"""


def test_values_and_density() -> None:
    made = torch.Generator().manual_seed(2)
    data = {"x": torch.randn(4, generator=made), "z": torch.randn(4, 2, generator=made), "y": torch.randn(4)}
    m = 0.7
    run = loads(TEXT).morphism.execute(None, substitute({"m": torch.tensor(m)}), condition(data))
    x, z, y = (data[name].double().numpy() for name in ("x", "z", "y"))
    a = 1 / (1 + np.exp(-m * (x - x.mean())))
    b = a / (1 + np.exp(-1.5 * z[:, 1]))
    expected = (-0.5 * ((y - a - b) / 0.5) ** 2 - np.log(0.5) - 0.5 * np.log(2 * np.pi)).sum()
    np.testing.assert_allclose(float(run.sites["y"].log_prob), expected, rtol=1e-5)
    assert MCMC(NUTSKernel(), 10, 10, 1, seed=0).run(loads(TEXT).morphism, None, data).samples["m"].shape == (1, 10)


def test_each_call_has_types_of_its_own() -> None:
    text = "object A : FinSet 2\nobject B : FinSet 3\ndef norm2(v) = sum(v * v)\nprogram p : A -> Real 1\n"
    text += "    data u : A\n    data v : A * B\n    sample m <- Normal(0.0, 1.0)\n"
    text += "    let s = norm2(u) + m\n    let t = norm2(v)\n    observe y : A <- Normal(s + t, 1.0)\n    return m\n"
    u, v, y = torch.tensor([1.0, 2.0]), torch.arange(6.0).reshape(2, 3), torch.zeros(2)
    run = loads(text).morphism.execute(None, substitute({"m": torch.tensor(0.5)}), condition({"u": u, "v": v, "y": y}))
    mean = 5.5 + (v * v).sum(-1)
    expected = torch.distributions.Normal(mean, 1.0).log_prob(y).sum()
    torch.testing.assert_close(run.sites["y"].log_prob, expected[None])
