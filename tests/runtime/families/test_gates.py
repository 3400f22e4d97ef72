"""Counts behind a gate against scipy: densities at five points, tails, draws, machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel, Predictive
from qvr_core.runtime.families.registry import RUNTIME_FAMILIES

pytestmark = pytest.mark.usefixtures("double_precision")

Y = np.array([0.0, 3.0, 0.0, 1.0, 7.0, 0.0])
POINTS = ((0.3, 0.4), (0.8, -1.0), (0.05, 1.5), (0.5, 0.0), (0.99, 0.7))
OWN = """family Own(rate : Real 1 [low=0.0]) : Nat
    density(x) = x * log(rate) - rate - lgamma(x + 1.0)
    draw = Poisson(rate)
"""
FAMILIES: dict[str, Callable[[float], Any]] = {
    "Poisson(exp(m))": lambda m: st.poisson(np.exp(m)),
    "NegativeBinomial(mean=exp(m), dispersion=0.5)": lambda m: st.nbinom(2.0, 1.0 / (1.0 + 0.5 * np.exp(m))),
    "Binomial(10, probs=sigmoid(m))": lambda m: st.binom(10, 1.0 / (1.0 + np.exp(-m))),
    "Geometric(sigmoid(m))": lambda m: st.geom(1.0 / (1.0 + np.exp(-m)), loc=-1),
    "BetaBinomial(10, exp(m), 2.0)": lambda m: st.betabinom(10, np.exp(m), 2.0),
    "Own(exp(m))": lambda m: st.poisson(np.exp(m)),
}


def _model(outcome: str) -> Any:
    return dsl.loads(f"""
object Row : FinSet 6
{OWN}program p : Row -> Row
    sample g <- Beta(2.0, 3.0)
    sample m <- Normal(0.0, 1.0)
    {outcome}
    return m
export p
""").morphism


def _mass(kind: str, counts: Any, gate: float, k: Any) -> Any:
    open_ = (1.0 - gate) * counts.pmf(k)
    if kind == "Hurdle":
        return np.where(k == 0, gate, open_ / counts.sf(0))
    return np.where(k == 0, gate + open_, open_)


def _prior(gate: float, m: float) -> float:
    return float(st.beta(2.0, 3.0).logpdf(gate) + st.norm.logpdf(m))


@pytest.mark.parametrize("kind", ["ZeroInflated", "Hurdle"])
@pytest.mark.parametrize("family", FAMILIES)
def test_density_and_machine_code(kind: str, family: str) -> None:
    model = _model(f"observe y[i : Row] <- {kind}(g, {family})")
    data = {"y": torch.as_tensor(Y)}
    for gate, m in POINTS:
        wanted = np.log(_mass(kind, FAMILIES[family](m), gate, Y)).sum() + _prior(gate, m)
        found = model.log_joint(None, {"g": torch.tensor(gate), "m": torch.tensor(m), **data}).item()
        assert found == pytest.approx(wanted, abs=1e-9, rel=1e-9)
    run = MCMC(NUTSKernel(), 3, 2, 1, seed=1, engine="compiled").run(model, None, data)
    assert run.engine == "compiled"


@pytest.mark.parametrize("kind", ["ZeroInflated", "Hurdle"])
@pytest.mark.parametrize("family", list(FAMILIES)[:4])
def test_censored_and_truncated(kind: str, family: str) -> None:
    censored = _model(f"observe y[i : Row] <- {kind}(g, {family}) [right_censored=c]")
    truncated = _model(f"observe y[i : Row] : Nat [low=1, high=8] <- {kind}(g, {family})")
    late, above = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 0.0]), np.where(Y == 0, 2.0, Y)
    for gate, m in POINTS:
        mass = _mass(kind, FAMILIES[family](m), gate, np.arange(3000.0))
        at = Y.astype(int)
        # of a count that is right-censored: as many, or more
        beyond = np.array([mass[k:].sum() for k in at])
        latents = {"g": torch.tensor(gate), "m": torch.tensor(m)}
        given = {"y": torch.as_tensor(Y), "c": torch.as_tensor(late)}
        wanted = np.where(late > 0, np.log(beyond), np.log(mass[at])).sum() + _prior(gate, m)
        assert censored.log_joint(None, {**latents, **given}).item() == pytest.approx(wanted, rel=1e-9)
        wanted = np.log(mass[above.astype(int)] / mass[1:9].sum()).sum() + _prior(gate, m)
        found = truncated.log_joint(None, {**latents, "y": torch.as_tensor(above)}).item()
        assert found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("kind", ["ZeroInflated", "Hurdle"])
@pytest.mark.parametrize("family", ["Poisson(exp(0.4))", "Binomial(10, probs=sigmoid(0.4))", "Own(exp(0.4))"])
def test_draws(kind: str, family: str) -> None:
    """Own has no cdf, and is drawn until it is above 0."""
    torch.manual_seed(5)
    model = _model(f"observe y[i : Row] <- {kind}(0.3, {family})")
    drawn = Predictive(model, num_samples=1000)(None, {})["y"].reshape(-1).numpy()
    wanted = _mass(kind, FAMILIES[family.replace("0.4", "m")](0.4), 0.3, np.arange(12.0))
    counts = np.bincount(drawn.astype(int), minlength=12)[:12]
    used = wanted * len(drawn) > 5
    assert st.chisquare(counts[used], wanted[used] / wanted[used].sum() * counts[used].sum()).pvalue > 1e-3


def test_a_gate_of_a_hidden_state() -> None:
    model = dsl.loads("""
object Row : FinSet 6
object State : FinSet 2
program p : Row -> Row
    sample m <- Exponential(1.0)
    marginalize z[i : Row] : State <- Categorical([0.4, 0.6])
        observe y[i : Row] <- Hurdle(0.2, Poisson(m + 2.0 * z[i]))
    return m
export p
""").morphism
    for m in (0.3, 0.8, 1.0, 2.5, 6.0):
        each = [_mass("Hurdle", st.poisson(m + 2.0 * z), 0.2, Y) for z in (0, 1)]
        wanted = np.log(0.4 * each[0] + 0.6 * each[1]).sum() - m
        found = model.log_joint(None, {"m": torch.tensor(m), "y": torch.as_tensor(Y)}).item()
        assert found == pytest.approx(wanted, rel=1e-9)


def test_the_gate_of_a_poisson_is_the_familys_own() -> None:
    """`ZeroInflated(g, Poisson(r))` is ZeroInflatedPoisson(g, r), tails included."""
    built, made = RUNTIME_FAMILIES["ZeroInflatedPoisson"], RUNTIME_FAMILIES["ZeroInflated(Poisson)"]
    given = {"gate": torch.tensor(0.3), "rate": torch.tensor(2.5)}
    for value in torch.arange(6.0):
        for one in ("log_prob", "log_cdf", "log_survival"):
            left, right = (getattr(each, one)(value, *each.canonical(given)) for each in (built, made))
            assert left.item() == pytest.approx(right.item(), abs=1e-12)


def test_a_component_of_a_mixture_may_have_a_gate() -> None:
    model = _model(
        "observe y[i : Row] <- Mixture([0.3, 0.2, 0.5], ZeroInflated(g, Poisson(exp(m))), Own(exp(m) + 3.0), "
        "Hurdle(gate_logits=m, Own(2.0)))"
    )
    data = {"y": torch.as_tensor(Y)}
    for gate, m in POINTS:
        parts = (
            0.3 * _mass("ZeroInflated", st.poisson(np.exp(m)), gate, Y),
            0.2 * st.poisson(np.exp(m) + 3.0).pmf(Y),
            0.5 * _mass("Hurdle", st.poisson(2.0), 1.0 / (1.0 + np.exp(-m)), Y),
        )
        wanted = np.log(sum(parts)).sum() + _prior(gate, m)
        found = model.log_joint(None, {"g": torch.tensor(gate), "m": torch.tensor(m), **data}).item()
        assert found == pytest.approx(wanted, abs=1e-9, rel=1e-9)
    run = MCMC(NUTSKernel(), 3, 2, 1, seed=1, engine="compiled").run(model, None, data)
    assert run.engine == "compiled"
    censored = _model(
        "observe y[i : Row] <- Mixture([0.3, 0.7], Hurdle(g, Poisson(exp(m))), Poisson(9.0)) [right_censored=c]"
    )
    late = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    for gate, m in POINTS:
        every = np.arange(3000.0)
        mass = 0.3 * _mass("Hurdle", st.poisson(np.exp(m)), gate, every) + 0.7 * st.poisson(9.0).pmf(every)
        at = Y.astype(int)
        terms = [mass[k:].sum() if c else mass[k] for k, c in zip(at, late, strict=True)]
        values = {"g": torch.tensor(gate), "m": torch.tensor(m), "c": torch.as_tensor(late), **data}
        found = censored.log_joint(None, values).item()
        assert found == pytest.approx(np.log(terms).sum() + _prior(gate, m), abs=1e-9, rel=1e-9)
