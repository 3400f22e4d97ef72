"""Chains for so many seconds, which the tests count as evaluations and looks at a clock of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.diagnostics.convergence import mcse_mean
from qvr_core.inference.mcmc import budgeted
from qvr_core.inference.mcmc.budgeted import Found, Learned, OutOfTime, sampled
from qvr_core.inference.mcmc.potential import ProgramPotential, potential_of

GROUPS = """\
object Group : FinSet 6
object Row : FinSet 60
program groups : Row -> Group
    data group : Row -> Group
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfNormal(2.0)
    sample level : Group <- Normal(mu, tau)
    observe y[i : Row] <- Normal(level[group[i]], 1.0)
    return level
"""
MORE = GROUPS.replace("Normal(level[group[i]], 1.0)", "Normal(level[group[i]], sigma)").replace(
    "    sample level", "    sample sigma <- HalfNormal(1.0)\n    sample level"
)


def asked(text: str = GROUPS) -> tuple[Any, dict[str, Any], ProgramPotential, Any]:
    generator = torch.Generator().manual_seed(3)
    group = torch.arange(60) % 6
    level = 4.0 + 1.5 * torch.randn(6, generator=generator)
    data = {"group": group, "y": level[group] + torch.randn(60, generator=generator)}
    program = dsl.loads(text).programs["groups"]
    potential = potential_of(program, None, program.taken(data))
    assert isinstance(potential, ProgramPotential)
    density = MCMC(NUTSKernel(), 1, 1, 1, seed=0).choose(potential).density
    assert density is not None
    return program, data, potential, density


def stopped() -> float:
    """A clock on which no time goes by."""
    return 0.0


class Leaping:
    """A clock on which each look takes so long."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now = seconds, 0.0

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


def found(potential: ProgramPotential, density: Any, **more: Any) -> list[Found]:
    given = {"draws": 1000, "seed": 1, "budget": 2.0, "learned": Learned(), "clock": stopped, **more}
    return list(sampled(potential, density, NUTSKernel(), **given))


def test_means_are_those_of_a_whole_run_within_monte_carlo_error() -> None:
    program, data, potential, density = asked()
    told = found(potential, density)
    assert [one.method for one in told] == ["nuts"] * len(told) and [one.last for one in told][-1]
    assert [one.last for one in told].count(True) == 1 and len(told) > 2
    # warm, from what the first ones have learned
    again = found(potential, density, seed=2, learned=told[-1].learned)
    whole = MCMC(NUTSKernel(), 500, 1000, 4, seed=7).run(program, None, data)
    for draws in (told[-1].columns["q"], again[-1].columns["q"]):
        values = potential.report(torch.from_numpy(draws.reshape(-1, potential.width)))
        for name, value in values.items():
            one = value.reshape(4, -1, *value.shape[1:]).flatten(2) if value.ndim > 1 else value.reshape(4, -1, 1)
            other = whole.samples[name].flatten(2) if whole.samples[name].ndim > 2 else whole.samples[name][..., None]
            error = np.hypot(mcse_mean(one.numpy()), mcse_mean(other.numpy()))
            # eight numbers, each looked at twice
            assert (np.abs((one.mean((0, 1)) - other.mean((0, 1))).numpy()) < 4.5 * error).all(), name


def test_warm_chains_take_what_sites_have_in_common_and_shorter_trees() -> None:
    _, _, potential, density = asked()
    learned = found(potential, density)[-1].learned
    assert set(learned.latents) == {"mu//family", "tau//family", "level//family"} and learned.step_size
    evaluations = {
        name: int(one.columns["steps"][:, :100].sum())
        for name, one in (
            ("cold", found(potential, density)[0]),
            ("warm", found(potential, density, learned=learned)[0]),
        )
    }
    assert evaluations["warm"] <= 2 * evaluations["cold"]
    # another program with the same sites and one more: those that it has in common are where they were
    _, _, more, other = asked(MORE)
    begun = budgeted._Budgeted(more, other, NUTSKernel(), 10, 1, 2.0, learned, stopped)
    begins, places = begun._begins(), begun.places
    assert begun.step_size is None  # the new one's scale is not known
    np.testing.assert_array_equal(begins[:, places["level//family"]], learned.latents["level//family"].positions)
    np.testing.assert_array_equal(begun.metric[places["mu//family"]], learned.latents["mu//family"].variances)
    assert (begun.metric[places["sigma//family"]] == 1.0).all()


def test_what_does_not_get_through_its_warm_up_is_approximated() -> None:
    _, _, potential, density = asked()
    exact = found(potential, density)[-1].columns["q"].reshape(-1, potential.width)
    looks = 0

    def late() -> float:
        nonlocal looks
        looks += 1
        return 0.0 if looks == 1 else 1.2

    (told,) = found(potential, density, clock=late, budget=2.0)
    assert (told.method, told.last, told.learned.step_size) == ("pathfinder", True, None)
    draws = told.columns["q"][0]
    place = dict(budgeted._places(potential))["level//family"]
    spread = exact[:, place].std(0)
    assert (np.abs(draws[:, place].mean(0) - exact[:, place].mean(0)) < 0.5 * spread).all()
    # the next ones begin there, and look for a step size of their own
    assert found(potential, density, learned=told.learned)[-1].method == "nuts"


def test_an_approximation_that_is_not_finished_in_time_is_the_best_on_the_way() -> None:
    _, _, potential, density = asked()
    clock = Leaping(2e-3)
    chains = budgeted._Budgeted(potential, density, NUTSKernel(), 1000, 1, 2.0, Learned(), clock)
    begins = chains._begins()
    # 80 evaluations on the way and 100 draws of what was found: time for a way or two
    told = chains._approximated(begins, clock.now + 1.0)
    assert told is not None and told.method == "pathfinder"
    draws = told.columns["q"][0]
    assert 25 <= len(draws) < budgeted.APPROXIMATE
    values = [density(q)[0] for q in draws]
    assert np.median(values) > max(density(q)[0] for q in begins)
    # and none where there is no time to draw from it
    assert chains._approximated(begins, clock.now + 0.1) is None


def test_an_approximation_is_told_before_chains_that_will_take_long() -> None:
    _, _, potential, density = asked()
    told = found(potential, density, clock=Leaping(1e-4), budget=20.0)
    assert [one.method for one in told[:2]] == ["pathfinder", "nuts"] and not told[0].last
    assert told[-1].method == "nuts" and told[-1].last
    # and it stands where these do not get through their warm-up
    clock = Leaping(1e-4)
    chains = sampled(potential, density, NUTSKernel(), draws=1000, seed=1, budget=20.0, learned=Learned(), clock=clock)
    first = next(chains)
    clock.now += 11.0
    (last,) = chains
    assert (last.method, last.last) == ("pathfinder", True)
    np.testing.assert_array_equal(last.columns["q"], first.columns["q"])


def test_where_there_is_no_time_for_anything_it_is_said() -> None:
    _, _, potential, density = asked()
    with pytest.raises(OutOfTime):
        found(potential, density, clock=Leaping(1.0))
