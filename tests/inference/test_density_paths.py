"""Fused, expanded, batched, recorded and compiled paths give what plain operations give under the same noise."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import (
    ELBO,
    MCMC,
    SVI,
    AutoMultivariateNormalGuide,
    AutoNormalGuide,
    AutoPriorGuide,
    NUTSKernel,
    bayesian_lift_parameters,
)
from qvr_core.inference.machine.density import machine_density
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.runtime.loops import chain, engine
from qvr_core.runtime.programs.handlers import condition, replay
from tests.inference import posteriors
from tests.inference.test_walkthroughs import example
from tests.inference.walkthroughs import WALKTHROUGHS, Walkthrough

EACH = pytest.mark.parametrize("shown", WALKTHROUGHS, ids=lambda shown: shown.name)

NETWORK = """
object X : Real 2
object H : Real 3
object Y : FinSet 3
morphism f : X -> H [role=kernel, hidden_dim=4, scale=0.3] ~ Normal
morphism g : H -> H [role=kernel, hidden_dim=4, scale=0.3] ~ Normal
morphism head : H -> Y [role=kernel, hidden_dim=4] ~ Categorical
let path = f >> g
program p : X -> Y
    sample h <- path
    observe y : Y <- head(h)
    return y
"""


def closest(found: Any, wanted: Any) -> float:
    """The largest difference, relative to the largest number of each tensor."""
    return max(float((a - b).abs().max() / b.abs().max().clamp(min=1e-12)) for a, b in zip(found, wanted, strict=True))


@EACH
def test_compiled_loops_and_chains_equal_plain_operations(shown: Walkthrough) -> None:
    """In double precision: a recurrent network with these weights amplifies the rounding of single precision."""
    model, x, observations = example(shown)
    model.double()
    guide = AutoNormalGuide(model, observed_names=set(observations))
    parameters = [*model.parameters(), *guide.parameters()]

    def loss_and_gradients() -> list[Tensor]:
        torch.manual_seed(5)
        loss = ELBO()(model, guide, x, observations)
        return [loss.detach(), *torch.autograd.grad(loss, parameters)]

    ours = loss_and_gradients()
    calls = []
    plainly = {"side_effect": lambda: calls.append(1) or True}
    with mock.patch.object(engine, "traced", **plainly), mock.patch.object(chain, "traced", **plainly):
        plain = loss_and_gradients()
    assert calls
    assert closest(ours, plain) < 1e-9


@EACH
def test_particles_cost_one_execution_and_give_the_mean_of_separate_ones(shown: Walkthrough) -> None:
    model, x, observations = example(shown)
    model.double()
    (site,) = observations
    rows, particles = len(x), 3
    parameters = list(model.parameters())
    guide = AutoPriorGuide(model, observed_names=set(observations))
    kept: list[Any] = []
    run_on = model.run

    def watched(*args: Any, **keywords: Any) -> Any:
        kept.append(run_on(*args, **keywords))
        return kept[-1]

    with mock.patch.object(model, "run", watched):
        loss = ELBO(num_particles=particles)(model, guide, x, observations)
    (run,) = kept
    together = [loss.detach(), *torch.autograd.grad(loss, parameters)]
    noise = {name: record.noise for name, record in run.sites.items() if record.noise and not record.observed}
    total = torch.zeros((), dtype=torch.float64)
    for index in range(particles):
        own = {n: {k: u[index * rows : (index + 1) * rows] for k, u in each.items()} for n, each in noise.items()}
        total = total - model.execute(x, condition(observations), replay(own)).sites[site].log_prob.mean() / particles
    assert closest(together, [total.detach(), *torch.autograd.grad(total, parameters)]) < 1e-9


# ---------------------------------------------------------------- chains


def lifted(scale: Any = 0.5) -> tuple[Any, Any, Any]:
    model = loads(NETWORK).morphism.double()
    x = torch.randn(4, 2, dtype=torch.float64)
    return bayesian_lift_parameters(model, x, {"y": torch.tensor([0, 2, 1, 2])}, prior_scale=scale)


def test_lifted_chains_at_once_are_the_chains_one_by_one() -> None:
    potential = potential_of(*lifted())
    q = torch.stack([potential.initial(np.random.default_rng(i)) for i in range(3)])
    one_by_one = [potential.value_and_grad(row.unsqueeze(0)) for row in q]
    expected = [torch.cat([each[k] for each in one_by_one]) for k in range(2)]
    assert closest(potential.value_and_grad(q), expected) < 1e-10
    assert not potential._one_by_one
    compiled = machine_density(potential.in_double(), q[0].numpy())
    value, gradient = compiled((q[1] + 0.1).numpy())
    found = torch.tensor([value], dtype=torch.float64), torch.from_numpy(gradient)[None]
    assert closest(found, potential.value_and_grad(q[1:2] + 0.1)) < 1e-10
    together = MCMC(NUTSKernel(max_tree_depth=4), 8, 6, 2, seed=1, chains="together").run(*lifted())
    torch.manual_seed(0)
    apart = MCMC(NUTSKernel(max_tree_depth=4), 8, 6, 2, seed=1, chains="sequential")
    assert together.samples["h"].shape == apart.run(*lifted()).samples["h"].shape == (2, 6, 4, 3)


def test_a_lifted_program_that_looks_at_values_runs_chain_by_chain() -> None:
    text = """
object X : Real 2
object Y : Real 1
morphism f : X -> Y [role=linear]
deduction d : FinSet 2 -> FinSet 1 [semiring=LogProb, start=S]
    atoms S, a
    rule join : span(I, J, S), span(J, K, S) |- span(I, K, S) #[learnable, init=-0.5]
    lexicon
        "a" : S = a
program p(x) : X -> Y
    let chart = parse(d, "a a a")
    let w = chart.goal_weight()
    observe y : Y <- Normal(f(x) + w, 1.0)
    return y
"""
    model = loads(text).morphism
    x = torch.randn(5, 2)
    potential = potential_of(*bayesian_lift_parameters(model, x, {"y": torch.randn(5)}))
    q = torch.stack([potential.initial(np.random.default_rng(i)) for i in range(2)])
    value, gradient = potential.value_and_grad(q)
    assert value.shape == (2,) and bool(torch.isfinite(gradient).all())


@EACH
def test_the_density_that_chains_explore_repeats_bit_for_bit(shown: Walkthrough) -> None:
    model, x, observations = example(shown)
    potential = potential_of(*bayesian_lift_parameters(model, x, observations))
    q = potential.initial(np.random.default_rng(0)).unsqueeze(0)
    first, second = (potential.value_and_grad(q) for _ in range(2))
    assert torch.equal(first[0], second[0]) and torch.equal(first[1], second[1])


# ---------------------------------------------------------------- compiled


def fit(compile: bool, text: str, x: Any, data: dict[str, Any], objective: Any, kind: Any = AutoNormalGuide) -> Any:
    """Losses and gradients of three steps."""
    torch.manual_seed(0)
    model = loads(text).morphism
    guide = kind(model, observed_names=set(data) & set(model.sites))
    parameters = [*model.parameters(), *guide.parameters()]
    svi = SVI(model, guide, torch.optim.Adam(parameters, lr=1e-2), objective, compile=compile)
    found: list[Tensor] = []
    for _ in range(3):
        found.append(torch.tensor(svi.step(x, data)))
        found.extend(p.grad.clone() for p in parameters)
    return [*found, torch.rand(3)]


@pytest.mark.statistical
def test_compiled_steps_equal_plain_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small program, since the compiler takes seconds for each of its loops."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    text = """
object X : Real 2
object H : Real 2
object Y : Real 1
morphism f : X -> H [role=kernel, param_source=linear] ~ Normal
morphism g : H -> Y [role=kernel, param_source=linear] ~ Normal
program p : X -> Y
    sample h <- f
    observe y <- g(h)
    return y
"""
    x, data = torch.randn(4, 2), {"y": torch.randn(4, 1)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        ours = fit(True, text, x, data, ELBO(2))
    assert closest(ours, fit(False, text, x, data, ELBO(2))) < 1e-5
    assert any(tmp_path.iterdir())


@pytest.mark.statistical
def test_without_a_compiler_a_step_says_so_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.config as inductor

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    data = {"y": torch.tensor([0.3, 1.2, -0.7, 2.5, 1.1, 0.4, 1.9, 0.1])}
    # not by `monkeypatch`, which would leave the setting deleted: torch's settings look like classes
    nowhere = inductor.patch({"cpp.cxx": ("/nowhere/c++",), "force_disable_caches": True})
    with nowhere, pytest.warns(UserWarning, match=r"compile=True has no effect: no working C\+\+ compiler was found"):
        ours = fit(True, posteriors.NORMAL_NORMAL, None, data, ELBO(), AutoMultivariateNormalGuide)
    plain = fit(False, posteriors.NORMAL_NORMAL, None, data, ELBO(), AutoMultivariateNormalGuide)
    assert closest(ours, plain) == 0.0


def test_what_cannot_be_recorded_says_so_and_runs() -> None:
    """The prior guide draws the rate by a sampler that takes its parameters from values."""
    text = posteriors.GAMMA_POISSON.replace("Gamma(2.0, 0.5)", "Gamma(exp(w), 0.5)")
    text = text.replace("    sample rate", "    sample w <- Normal(0.0, 1.0)\n    sample rate")
    model = loads(text).morphism
    w = torch.nn.Parameter(torch.zeros(()))
    svi = SVI(model, AutoPriorGuide(model), torch.optim.SGD([w], lr=0.1), ELBO(), compile=True)
    with pytest.warns(UserWarning, match="compile=True has no effect: the objective cannot be recorded"):
        loss = svi.step(None, {"y": torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5]), "w": torch.zeros(1, requires_grad=True)})
    assert loss > 0.0
