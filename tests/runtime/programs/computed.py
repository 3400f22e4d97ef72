"""Programs whose outcome is a sum over a value that one latent `m` goes into: their density is two Normals by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel

Value = Callable[[float], Any]
SEEN = 0.7
"""The outcome."""


def program_of(
    head: str, lets: Sequence[str], data: Mapping[str, tuple[str, Any]], value: Value
) -> tuple[Any, dict[str, torch.Tensor]]:
    """The program, whose last let is `r`, with its data; `value` is r of m, computed elsewhere."""
    count = np.size(value(0.1))
    lines = [f"data {key} : {space}" for key, (space, _) in data.items()]
    lines += ["sample m <- Normal(0.0, 1.0)", *(f"let {let}" for let in lets), f"let q = sum(sin(reshape(r, {count})))"]
    lines += ["observe seen <- Normal(q, 2.0)", "return m"]
    text = head + "".join(f"    {line}\n" for line in lines) + "export p\n"
    held = {key: torch.as_tensor(one) for key, (_, one) in data.items()}
    return dsl.loads(text).morphism, {**held, "seen": torch.tensor(SEEN)}


def density(value: Value, m: float) -> float:
    """The log density of m and the outcome."""
    return float(st.norm.logpdf(m) + st.norm.logpdf(SEEN, np.sum(np.sin(value(m))), 2.0))


def assert_density_and_gradient(
    program: Any, data: Mapping[str, torch.Tensor], value: Value, m: float, *, step: float, near_zero: float
) -> None:
    """Value to 1e-9, gradient to 1e-5 of central differences of this step, or to `near_zero`."""
    at = torch.tensor(m, requires_grad=True)
    found = program.log_joint(None, {"m": at, **data}).sum()
    assert found.item() == pytest.approx(density(value, m), abs=1e-9)
    found.backward()
    slope = (density(value, m + step) - density(value, m - step)) / (2 * step)
    assert at.grad is not None
    assert at.grad.item() == pytest.approx(slope, rel=1e-5, abs=near_zero)


def assert_machine_code(program: Any, data: Mapping[str, torch.Tensor]) -> None:
    """A short chain runs as machine code where that is asked for, and without it."""
    for engine in ("compiled", "plain"):
        assert MCMC(NUTSKernel(), 3, 2, 1, seed=1, engine=engine).run(program, None, dict(data)).engine == engine
