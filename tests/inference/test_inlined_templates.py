"""A template that never reads its input, drawn in a program: the same model as its steps written out."""

from __future__ import annotations

import torch

from qvr_core.dsl import loads
from qvr_core.inference import MCMC, AutoNormalGuide, NUTSKernel, Predictive, trace
from qvr_core.runtime.programs.handlers import condition, substitute

SETS = "object County : FinSet 3\nobject House : FinSet 6\n"
TEMPLATE = (
    SETS
    + """
program intercepts(G : Object, R : Object, sd : Real = 1.0) : G -> Real 1
    data group : R -> G
    sample tau <- HalfNormal(sd)
    sample a : G <- Normal(0.0, tau)
    let eta[i : R] = a[group[i]]
    observe seen : R <- Normal(eta, 2.0)
    return (a, eta)
program effect(G : Object, sd : Real = 1.0) : G -> Real 1
    sample tau <- HalfNormal(sd)
    sample a : G <- Normal(0.0, tau)
    return a
program nested(G : Object, sd : Real) : G -> Real 1
    sample e <- effect(G, sd)
    let twice = 2.0 * e
    return twice
program p : House -> House
    data county : House -> County
    sample (u, m) <- intercepts(County, House, 2.0, group=county)
    sample v <- effect(County)
    sample w <- nested(County, 0.5)
    let mu[i : House] = m[i] + v[county[i]] + w[county[i]]
    observe y : House <- Normal(mu, 1.5)
    return u
"""
)
WRITTEN = (
    SETS
    + """
program p : House -> House
    data county : House -> County
    sample t1 <- HalfNormal(2.0)
    sample a1 : County <- Normal(0.0, t1)
    observe seen : House <- Normal(a1[county], 2.0)
    sample t2 <- HalfNormal(1.0)
    sample a2 : County <- Normal(0.0, t2)
    sample t3 <- HalfNormal(0.5)
    sample a3 : County <- Normal(0.0, t3)
    observe y : House <- Normal(a1[county] + a2[county] + 2.0 * a3[county], 1.5)
    return a1
"""
)
NAMES = {"u_m.tau": "t1", "u_m.a": "a1", "v.tau": "t2", "v": "a2", "w.e.tau": "t3", "w.e": "a3"}
DATA = {"county": torch.tensor([0, 0, 1, 1, 2, 2]), "y": torch.tensor([0.1, 0.4, -1.0, -0.7, 1.2, 0.3])}
SEEN = torch.tensor([0.5, 0.2, -0.4, 1.0, 0.9, -0.2])


def test_density_is_that_of_the_steps_written_out() -> None:
    inlined, written = loads(TEMPLATE).morphism, loads(WRITTEN).morphism
    torch.manual_seed(0)
    for _ in range(3):
        values = {name: torch.rand(3) if name.split(".")[-1] in ("a", "v", "e") else torch.rand(()) for name in NAMES}
        one = inlined.execute(None, substitute(values), condition({**DATA, "u_m.seen": SEEN})).log_joint()
        held = {NAMES[name]: value for name, value in values.items()}
        other = written.execute(None, substitute(held), condition({**DATA, "seen": SEEN})).log_joint()
        torch.testing.assert_close(one, other)


def test_its_sites_are_latents_of_the_program() -> None:
    model = loads(TEMPLATE).morphism
    given = {**DATA, "u_m.seen": SEEN}
    assert {name for name, site in trace(model, None, given).sites.items() if not site.observed} == set(NAMES)
    result = MCMC(NUTSKernel(), 20, 20, 1, seed=1).run(model, None, given)
    assert set(result.samples) == set(NAMES)
    assert result.samples["v"].shape == (1, 20, 3)
    guide = AutoNormalGuide(model, observed_names=list(given))
    assert sum(p.numel() for p in guide.parameters()) == 2 * (3 + 3 * 3)


def test_data_of_a_call_have_names_of_their_own() -> None:
    text = TEMPLATE.replace(", group=county)", ")")
    groups = torch.tensor([2, 2, 1, 1, 0, 0])
    values = {
        name: torch.tensor([0.3, 0.6, 0.9]) if name in ("u_m.a", "v", "w.e") else torch.tensor(1.0) for name in NAMES
    }
    run = loads(text).morphism.execute(
        None, substitute(values), condition({**DATA, "u_m.seen": SEEN, "u_m.group": groups})
    )
    a = torch.tensor([0.3, 0.6, 0.9])
    expected = torch.distributions.Normal(a[groups], 2.0).log_prob(SEEN).sum()
    torch.testing.assert_close(run.sites["u_m.seen"].log_prob, expected[None])


def test_what_a_template_observes_may_be_named_at_the_call() -> None:
    text = TEMPLATE.replace("group=county)", "group=county, seen=height)")
    values = {name: torch.ones(3) if name in ("u_m.a", "v", "w.e") else torch.tensor(1.0) for name in NAMES}
    run = loads(text).morphism.execute(None, substitute(values), condition({**DATA, "height": SEEN}))
    expected = torch.distributions.Normal(torch.ones(6), 2.0).log_prob(SEEN).sum()
    torch.testing.assert_close(run.sites["height"].log_prob, expected[None])


def test_predictive_draws_what_a_template_observes() -> None:
    model = loads(TEMPLATE).morphism
    drawn = Predictive(model, num_samples=5)(None, observations={"county": DATA["county"]})
    assert drawn["u_m.seen"].shape[-1] == 6


def test_defaults_and_positions_from_python() -> None:
    made = loads(TEMPLATE)
    tau = torch.tensor(0.7)
    for instance, sd in (
        (made.effect("County"), 1.0),
        (made.effect("County", 3.0), 3.0),
        (made.effect("County", sd=2), 2.0),
    ):
        run = instance.morphism.execute(None, substitute({"tau": tau}))
        expected = torch.distributions.HalfNormal(sd).log_prob(tau)
        torch.testing.assert_close(run.sites["tau"].log_prob, expected[None])
