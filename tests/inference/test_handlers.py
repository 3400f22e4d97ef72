"""Handlers of an execution: what each asks for, and that they compose."""

from __future__ import annotations

import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, AutoNormalGuide
from qvr_core.runtime.programs.handlers import (
    by_rows,
    condition,
    densities,
    replay,
    scale,
    seed,
    subsample,
    substitute,
    unconstrained,
)
from qvr_core.runtime.programs.program import ProgramModule

MODEL = """
program model : FinSet 1 -> Real 1
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(1.0)
    observe y : FinSet 6 <- Normal(mu, tau)
    return mu
export model
"""
Y = torch.tensor([0.5, -1.0, 2.0, 0.0, 0.3, 1.1])
LATENTS = {"mu": torch.tensor([0.2, -0.4]), "tau": torch.tensor([1.0, 2.5])}


@pytest.fixture
def model() -> ProgramModule:
    return loads(MODEL).morphism


def test_a_replayed_run_is_the_run(model: ProgramModule):
    first = model.execute(None, condition({"y": Y}), by_rows(3))
    noise = {name: site.noise for name, site in first.sites.items()}
    again = model.execute(None, condition({"y": Y}), replay(noise))
    assert torch.equal(again.log_joint(), first.log_joint())


def test_the_later_of_two_handlers_holds(model: ProgramModule):
    run = model.execute(None, condition({"y": Y}), substitute(LATENTS), substitute({"mu": torch.zeros(2)}))
    assert torch.equal(run.sites["mu"].value, torch.zeros(2))
    assert torch.equal(run.sites["tau"].value, LATENTS["tau"])
    other = model.execute(None, condition({"y": Y}), condition({"mu": torch.tensor(1.0)}), by_rows(2))
    assert other.sites["mu"].observed and other.sites["y"].observed


def test_unconstrained_numbers_go_through_the_bijector(model: ProgramModule):
    run = model.execute(None, condition({"y": Y}), unconstrained({"tau": torch.tensor([0.0, 1.0])}))
    assert torch.allclose(run.sites["tau"].value, torch.tensor([0.0, 1.0]).exp())
    assert torch.allclose(run.sites["tau"].log_jacobian, torch.tensor([0.0, 1.0]))


def test_a_seed_makes_draws_repeat(model: ProgramModule):
    first, second = (model.execute(None, seed(torch.Generator().manual_seed(3)), by_rows(4)) for _ in range(2))
    assert torch.equal(first.sites["y"].value, second.sites["y"].value)


def test_only_the_densities_that_are_wanted_are_there(model: ProgramModule):
    asked = condition({"y": Y}), by_rows(2)
    seen = model.execute(None, *asked, densities("observed"), seed(torch.Generator().manual_seed(0)))
    assert seen.sites["mu"].log_prob is None and seen.sites["y"].log_prob is not None
    named = model.execute(None, *asked, densities("observed", ["mu"]))
    assert named.sites["mu"].log_prob is not None and named.sites["tau"].log_prob is None
    assert all(site.log_prob is None for site in model.execute(None, *asked, densities(False)).sites.values())


def test_scale_weighs_observed_terms_only(model: ProgramModule):
    asked = condition({"y": Y}), substitute({"mu": LATENTS["mu"]}), seed(torch.Generator().manual_seed(0))
    plain, heavy = (
        model.execute(None, *asked, *more, seed(torch.Generator().manual_seed(0)))
        for more in ((), (scale({"y": 3.0, "tau": 7.0}),))
    )
    assert torch.equal(heavy.sites["y"].log_prob, 3.0 * plain.sites["y"].log_prob)
    assert torch.equal(heavy.sites["tau"].log_prob, plain.sites["tau"].log_prob)


@pytest.mark.filterwarnings("ignore::qvr_core.runtime.values.errors.OtherLength")
def test_parts_of_the_rows_stand_for_all(model: ProgramModule):
    whole = model.execute(None, condition({"y": Y}), substitute(LATENTS)).sites["y"].log_prob
    halves = [
        model.execute(None, condition({"y": half}), substitute(LATENTS), subsample(6, {"y"})).sites["y"].log_prob
        for half in (Y[:2], Y[2:])
    ]
    assert torch.allclose(halves[0] / 3 + halves[1] * 2 / 3, whole)


def test_an_objective_takes_handlers(model: ProgramModule):
    guide = AutoNormalGuide(model, observed_names={"y"})

    def loss(objective: ELBO) -> torch.Tensor:
        torch.manual_seed(0)
        return objective(model, guide, None, {"y": Y})

    plain, doubled, none = (loss(ELBO(5, handlers=[scale({"y": factor})])).detach() for factor in (1.0, 2.0, 0.0))
    assert torch.equal(plain, loss(ELBO(5)).detach())
    assert torch.allclose(doubled - plain, plain - none)
