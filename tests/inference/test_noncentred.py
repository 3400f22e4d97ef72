"""`[noncentred]`: the sampler moves the standardised value, and everything else stays as it is."""

import math
from collections.abc import Mapping, Sequence

import pytest
import torch
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import (
    ELBO,
    MCMC,
    SVI,
    AutoDeltaGuide,
    AutoMultivariateNormalGuide,
    AutoNormalGuide,
    MCMCResult,
    NUTSKernel,
    Predictive,
)
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.runtime.programs.handlers import by_rows, condition, unconstrained
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.semantics.language.families import FAMILIES

FUNNEL = """
object Dim : FinSet 9
program funnel : Dim -> Dim
    sample v <- Normal(0.0, 3.0)
    sample z : Dim <- Normal(0.0, exp(v / 2)) {option}
    return v
"""
EIGHT_SCHOOLS = """
object School : FinSet 8
program schools : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample theta : School <- Normal(mu, tau) {option}
    observe y : School <- Normal(theta, sigma)
    return mu
"""
SCHOOLS = {
    "y": torch.tensor([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
    "sigma": torch.tensor([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
}
DRAWS = {
    "Normal": "Normal(a, s)",
    "LogNormal": "LogNormal(a, s)",
    "StudentT": "StudentT(4.0, a, s)",
    "Cauchy": "Cauchy(a, s)",
    "Laplace": "Laplace(a, s)",
    "Gumbel": "Gumbel(a, s)",
    "HalfNormal": "HalfNormal(s)",
    "HalfCauchy": "HalfCauchy(s)",
    "HalfStudentT": "HalfStudentT(4.0, s)",
    "Exponential": "Exponential(s)",
    "MultivariateNormal": "MultivariateNormal([a, 1.0, a], s * tril)",
    "GaussianRandomWalk": "GaussianRandomWalk(s, a, 0.5)",
}
OWN = """family Sech(loc, scale : Real 1 [low=0.0]) : Real 1
    density(x) = -log(scale) - log(3.141592653589793) - log(cosh((x - loc) / scale))
    standard(z) = loc + scale * z
family Turned(slope, loc, shape : Real 1 [low=0.0]) : Real 1
    let width = exp(slope) / 2.0
    density(x) = -0.5 * ((x + loc) / width)^2 - log(width) - 0.1 * shape * x^4
    standard(z) = -(loc - width * (0.5 * z - 1.0)) + z * shape
family Lifetime(scale : Real 1 [low=0.0], shape = 2.0) : Real 1 [low=0.0]
    density(x) = log(shape) - log(scale) + (shape - 1.0) * log(x / scale) - (x / scale)^shape
    standard(z) = scale * z
"""
OWN_DRAWS = {
    "location and scale": "Sech(a, s)",
    "another affine form": "Turned(a, 0.3, s)",
    "positive": "Lifetime(s)",
}
EVERY = {**DRAWS, **OWN_DRAWS}
TRIL = torch.tensor([[1.0, 0.0, 0.0], [0.3, 0.8, 0.0], [-0.5, 0.2, 0.6]], dtype=torch.float64)


def program(draw: str, option: str = "[noncentred]") -> ProgramModule:
    # a plate of three, or one vector of three
    plate = "" if "Multi" in draw else ": Real 3 " if "Walk" in draw else ": Dim "
    return loads(
        f"object Dim : FinSet 3\n{OWN}program p : Dim -> Dim\n    sample a <- Normal(0.0, 1.0)\n"
        f"    sample s <- HalfNormal(1.0)\n    sample z {plate}<- {draw} {option}\n"
        "    observe y <- Normal(sum(z), 1.0)\n    return z\n"
    ).morphism


def data(draw: str) -> dict[str, Tensor]:
    return {"y": torch.tensor(0.7), **({"tril": TRIL} if "tril" in draw else {})}


def moved(model: ProgramModule, numbers: Mapping[str, Tensor], given: Mapping[str, Tensor]):
    return model.run(None, condition(given), unconstrained(numbers), by_rows(4))


def test_every_family_that_says_so_is_tried() -> None:
    assert set(DRAWS) == {name for name, family in FAMILIES.items() if family.noncentred}


@pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY)
def test_the_density_is_that_of_the_centred_program(draw: str) -> None:
    torch.manual_seed(1)
    model, centred, given = program(draw), program(draw, ""), data(draw)
    numbers = {name: torch.randn(4, *shape, dtype=torch.float64) for name, shape in (("a", ()), ("s", ()), ("z", (3,)))}
    run = moved(model, numbers, given)
    values = {name: run.sites[name].value for name in ("a", "s", "z")}
    assert not torch.equal(values["z"], moved(centred, numbers, given).sites["z"].value)
    torch.testing.assert_close(run.log_joint(), centred.log_joint(None, {**values, **given}))
    torch.testing.assert_close(model.log_joint(None, {**values, **given}), run.log_joint())


@pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY)
def test_the_jacobian_is_that_of_the_map(draw: str) -> None:
    torch.manual_seed(2)
    model, given = program(draw), data(draw)
    numbers = {"a": torch.tensor([0.4]), "s": torch.tensor([0.3]), "z": torch.randn(1, 3)}
    numbers = {name: value.double() for name, value in numbers.items()}

    def value(z: Tensor) -> Tensor:
        found = model.run(None, *_handlers({**numbers, "z": z.unsqueeze(0)}, given)).sites["z"].value
        assert isinstance(found, Tensor)
        return found[0]

    jacobian = torch.autograd.functional.jacobian(value, numbers["z"][0])
    record = model.run(None, *_handlers(numbers, given)).sites["z"]
    assert record.log_jacobian is not None
    assert isinstance(jacobian, Tensor)
    assert float(record.log_jacobian) == pytest.approx(float(jacobian.slogdet().logabsdet), rel=1e-9)


def _handlers(numbers: Mapping[str, Tensor], given: Mapping[str, Tensor]):
    return condition(given), unconstrained(numbers), by_rows(1)


def test_a_declared_family_that_is_standardised_is_fitted_by_machine_code() -> None:
    """An own Normal by its own form: the draws of the built-in one, whose noise and steps are the same."""
    own = (
        "family Own(loc, scale : Real 1 [low=0.0]) : Real 1\n"
        "    density(x) = -0.5 * ((x - loc) / scale)^2 - log(scale) - 0.9189385332046727\n"
        "    standard(z) = loc + scale * z\n"
    )
    text = EIGHT_SCHOOLS.format(option="[noncentred]")
    found = []
    for written in (own + text.replace("<- Normal(mu, tau)", "<- Own(mu, tau)"), text):
        kernel = NUTSKernel(step_size=0.1)
        run = MCMC(kernel, 0, 20, 1, seed=3, engine="compiled").run(loads(written).morphism, None, SCHOOLS)
        assert run.engine == "compiled"
        found.append(run.samples["theta"])
    torch.testing.assert_close(found[0], found[1], rtol=1e-6, atol=1e-6)


def test_a_chain_of_a_declared_family_moves_its_innovations() -> None:
    text = (
        f"object Time : FinSet 5\n{OWN}program p : One -> One\n    sample s <- HalfNormal(1.0)\n"
        "    sample h[t : Time] <- Sech(0.7 * h[t - 1], s) from Sech(1.0, s) {}\n"
        "    observe y <- Normal(sum(h), 1.0)\n    return h\n"
    )
    model, centred = (loads(text.format(option)).morphism for option in ("[noncentred]", ""))
    numbers = {"s": torch.tensor([0.4, -0.3]), "h": torch.randn(2, 5, generator=torch.Generator().manual_seed(4))}
    numbers = {name: value.double() for name, value in numbers.items()}
    given = {"y": torch.tensor(0.7)}
    run = model.run(None, condition(given), unconstrained(numbers), by_rows(2))
    s, h = run.sites["s"].value, run.sites["h"].value
    assert isinstance(s, Tensor)
    assert isinstance(h, Tensor)
    wanted, before = torch.zeros_like(h), torch.ones_like(s) / 0.7
    for t in range(5):
        wanted[:, t] = 0.7 * before + s * numbers["h"][:, t]
        before = wanted[:, t]
    torch.testing.assert_close(h, wanted)
    torch.testing.assert_close(run.log_joint(), centred.log_joint(None, {"s": s, "h": h, **given}))


def test_a_chain_moves_a_standard_normal() -> None:
    """In its coordinates the density of z is N(0, 1), whatever the scale is."""
    potential = ProgramPotential(loads(FUNNEL.format(option="[noncentred]")).morphism, None, {})
    for v in (-40.0, 0.0, 3.0):
        q = torch.zeros(1, 10, dtype=torch.float64)
        q[0, 0], q[0, 1] = v, 1.5
        value, gradient = potential.value_and_grad(q)
        exact = -0.5 * v * v / 9 - math.log(3) - 0.5 * 1.5**2 - 5 * math.log(2 * math.pi)
        assert float(value) == pytest.approx(exact, rel=1e-12)
        torch.testing.assert_close(gradient[0, :2], torch.tensor([-v / 9, -1.5], dtype=torch.float64))


def nuts(text: str, given: Mapping[str, Tensor], draws: int, seed: int = 0) -> MCMCResult:
    kernel = NUTSKernel(target_accept=0.8)
    return MCMC(kernel, num_warmup=500, num_samples=draws, num_chains=4, seed=seed).run(
        loads(text).morphism, None, given
    )


def diverged(runs: Sequence[MCMCResult]) -> int:
    """Transitions that diverged in all runs together."""
    return sum(int(run.divergence_counts.sum()) for run in runs)


@pytest.mark.statistical
def test_funnel() -> None:
    # how many transitions diverge depends on whether a chain has found the neck
    centred = [nuts(FUNNEL.format(option=""), {}, 500, seed) for seed in range(8)]
    result = nuts(FUNNEL.format(option="[noncentred]"), {}, 1000)
    necks = [run for run in centred if diverged([run])]
    assert diverged(centred) > 10 and len(necks) > 3
    assert all(any("non-centred" in warning for warning in run.warnings) for run in necks)
    # R-hat and the tail ESS both stand at their limits here: which of them tells is chance, that one does is not
    said = ("not mixed", "stands still", "few effective draws")
    assert all(any(word in warning for warning in run.warnings for word in said) for run in centred)
    assert diverged([result]) == 0
    v, z = result.samples["v"].flatten(), result.samples["z"].flatten(0, 1)
    assert float(v.mean()) == pytest.approx(0.0, abs=0.3)
    assert float(v.std()) == pytest.approx(3.0, rel=0.07)
    standard = z / (v / 2).exp().unsqueeze(-1)
    assert float(standard.std()) == pytest.approx(1.0, rel=0.05)


@pytest.mark.statistical
def test_eight_schools() -> None:
    centred = [nuts(EIGHT_SCHOOLS.format(option=""), SCHOOLS, 1000, seed) for seed in range(3)]
    noncentred = [nuts(EIGHT_SCHOOLS.format(option="[noncentred]"), SCHOOLS, 1000, seed) for seed in range(3)]
    result = noncentred[0]
    mu, tau = result.samples["mu"].flatten(), result.samples["tau"].flatten()
    # posteriordb, eight_schools_noncentered
    assert float(mu.mean()) == pytest.approx(4.4, abs=0.4)
    assert float(mu.std()) == pytest.approx(3.3, abs=0.35)
    assert float(tau.mean()) == pytest.approx(3.6, abs=0.45)
    assert float(tau.std()) == pytest.approx(3.2, abs=0.6)
    assert diverged(noncentred) <= 3 * 4 < diverged(centred)
    theta = result.samples["theta"].flatten(0, 1).mean(0)
    published = [6.2, 4.9, 3.9, 4.8, 3.6, 4.0, 6.3, 4.9]
    torch.testing.assert_close(theta, torch.tensor(published, dtype=theta.dtype), atol=0.6, rtol=0.0)
    assert not any("non-centred" in warning for warning in result.warnings)


@pytest.mark.statistical
def test_guides_fit_the_posterior_that_the_centred_program_hides() -> None:
    """With the standardised value independent of tau, a mean-field guide holds the prior of both exactly."""
    torch.manual_seed(0)
    model = loads(FUNNEL.format(option="[noncentred]")).morphism
    guide = AutoNormalGuide(model)
    optim = torch.optim.Adam(guide.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optim, 1000)
    svi = SVI(model, guide, optim, ELBO(num_particles=16))
    for _ in range(1000):
        svi.step(None, {})
        schedule.step()
    with torch.no_grad():
        bound = -float(ELBO(num_particles=4000)(model, guide, None, {}))
    # nothing is observed: log p = 0, and no guide can be better
    assert bound == pytest.approx(0.0, abs=0.02)
    drawn = Predictive(model, guide=guide, num_samples=4000)(None, {})
    v, z = drawn["v"].flatten(), drawn["z"].reshape(4000, 9)
    assert float((z / (v / 2).exp().unsqueeze(-1)).std()) == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("kind", [AutoMultivariateNormalGuide, AutoDeltaGuide])
def test_other_guides_run_on_it(kind: type[AutoMultivariateNormalGuide] | type[AutoDeltaGuide]) -> None:
    model = loads(EIGHT_SCHOOLS.format(option="[noncentred]")).morphism
    guide = kind(model, {"y"})
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.05), ELBO())
    losses = [svi.step(None, SCHOOLS) for _ in range(200)]
    assert sum(losses[-20:]) < sum(losses[:20])
