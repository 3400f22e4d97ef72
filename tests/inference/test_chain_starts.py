"""Chains that start from a family for each of their first elements."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel, Predictive
from qvr_core.runtime.programs.handlers import by_rows, condition, unconstrained
from qvr_core.runtime.programs.program import ProgramModule

TEXT = """
object Input : Real 1
object Subject : {a, b}
object Time : FinSet 4
program p : Input -> Input
    data m : Subject
    sample s <- HalfNormal(1.0)
    sample h[g : Subject, t : Time] <- Normal(0.5 * h[g, t - 1] + 0.2 * h[g, t - 2], 1.0)
        from (Normal(0.0, 2.0 * s), StudentT(4.0, m[g], 0.5))
    return h
"""
MEANS = torch.tensor([1.0, -2.0], dtype=torch.float64)
S = torch.tensor(0.6, dtype=torch.float64)
H = torch.tensor([[0.1, 0.4, 0.2, 0.9], [0.7, 0.3, -0.4, 0.8]], dtype=torch.float64)


def made(text: str) -> ProgramModule:
    return loads(text).morphism


def by_hand(h: Tensor, s: float) -> float:
    found = float(stats.halfnorm.logpdf(s))
    for chain, mean in zip(h.numpy(), MEANS.numpy(), strict=True):
        found += stats.norm.logpdf(chain[0], 0.0, 2.0 * s) + stats.t.logpdf(chain[1], 4.0, mean, 0.5)
        found += stats.norm.logpdf(chain[2:], 0.5 * chain[1:-1] + 0.2 * chain[:-2]).sum()
    return found


@pytest.mark.parametrize("option", ["", " [noncentred]"])
def test_each_first_element_has_the_density_of_its_own_family(option: str) -> None:
    model = made(TEXT.replace(", 1.0)\n        from", f", 1.0){option}\n        from"))
    found = model.log_joint(None, {"m": MEANS, "s": S, "h": H})
    assert float(found) == pytest.approx(by_hand(H, 0.6), abs=1e-10)


def test_standardised_numbers_have_the_density_of_the_values_that_they_move() -> None:
    model = made(TEXT.replace(", 1.0)\n        from", ", 1.0) [noncentred]\n        from"))
    free = torch.randn(1, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def run(free: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        moved = {"s": torch.log(S).reshape(1), "h": free}
        found = model.run(None, condition({"m": MEANS}), unconstrained(moved), by_rows(1))
        record = found.sites["h"]
        assert isinstance(record.value, Tensor) and record.log_jacobian is not None
        return record.value, found.log_joint(), record.log_jacobian

    value, joint, jacobian = run(free)
    assert float(joint) == pytest.approx(by_hand(value[0], 0.6), abs=1e-10)
    full = torch.autograd.functional.jacobian(lambda free: run(free)[0].reshape(-1), free).reshape(8, 8)
    assert float(jacobian) == pytest.approx(float(torch.linalg.slogdet(full).logabsdet), abs=1e-9)


def test_draws_have_the_moments_of_each_family() -> None:
    torch.manual_seed(3)
    text = TEXT.replace("2.0 * s", "2.0").replace("    sample s <- HalfNormal(1.0)\n", "")
    draws = Predictive(made(text), num_samples=20_000)(None, {"m": MEANS})["h"].reshape(-1, 2, 4)
    wanted = [np.zeros(2), MEANS.numpy(), 0.5 * MEANS.numpy()]
    assert np.allclose(draws.mean(0)[:, :3].numpy(), np.stack(wanted, 1), atol=0.05)
    sds = [2.0, stats.t.std(4.0, 0.0, 0.5), np.sqrt(1.0 + 0.25 * stats.t.var(4.0, 0.0, 0.5) + 0.04 * 4.0)]
    assert np.allclose(draws.std(0)[:, :3].numpy(), sds, rtol=0.05)


def test_vectors_start_from_a_family_each() -> None:
    text = """
object Input : Real 1
object Time : FinSet 3
program p : Input -> Input
    sample h[t : Time] <- MultivariateNormal(0.5 * h[t - 2], eye(2))
        from (MultivariateNormal(zeros(2), eye(2)), MultivariateNormal(ones(2), 2.0 * eye(2)))
    return h
"""
    h = torch.tensor([[0.1, 0.2], [0.8, 0.4], [-0.3, 0.6]], dtype=torch.float64)
    wanted = stats.norm.logpdf(h[0]).sum() + stats.norm.logpdf(h[1], 1.0, 2.0).sum()
    wanted += stats.norm.logpdf(h[2], 0.5 * h[0]).sum()
    assert float(made(text).log_joint(None, {"h": h})) == pytest.approx(float(wanted), abs=1e-6)


def test_nuts_finds_the_moments_of_the_prior() -> None:
    text = """
object Input : Real 1
object Time : FinSet 3
program p : Input -> Input
    sample h[t : Time] <- Normal(0.5 * h[t - 1] + 0.2 * h[t - 2], 1.0) from (Normal(3.0, 0.5), Normal(-1.0, 2.0))
    return h
"""
    fit = MCMC(NUTSKernel(), 300, 2000, 2, seed=4).run(made(text), None, {})
    h = fit.samples["h"].reshape(-1, 3)
    assert torch.allclose(h.mean(0).double(), torch.tensor([3.0, -1.0, 0.1], dtype=torch.float64), atol=0.12)
    later = np.sqrt(1.0 + 0.25 * 4.0 + 0.04 * 0.25)
    assert torch.allclose(h.std(0).double(), torch.tensor([0.5, 2.0, later], dtype=torch.float64), atol=0.12)
