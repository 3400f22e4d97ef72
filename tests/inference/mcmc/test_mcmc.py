"""Markov chains: reproducible, independent, watched without effect, and clear when they cannot run."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from qvr_core.dsl import loads
from qvr_core.inference import MCMC, HMCKernel, NUTSKernel, Predictive, bayesian_lift_parameters
from qvr_core.inference.machine.density import machine_density
from qvr_core.inference.mcmc import MCMCResult, Progress
from qvr_core.inference.mcmc.adaptation import DualAveraging, window_ends
from qvr_core.inference.mcmc.hamiltonian import kinetic
from qvr_core.inference.mcmc.mass import DenseMass, DiagonalMass
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.runtime.values.errors import DiscreteLatent, InputProblem, NonFinite
from tests.inference import posteriors

DATA = {"y": torch.tensor([0.3, 1.2, -0.7, 2.5, 1.1, 0.4, 1.9, 0.1])}

ARROWS = """
object X : Real 2
object H : Real 2
object Y : FinSet 3
morphism f : X -> H [role=kernel] ~ Normal
morphism g : H -> H [role=kernel] ~ Normal
morphism head : H -> Y [role=kernel] ~ Categorical
let path = f >> g
program p : X -> Y
    sample h <- path
    observe y : Y <- head(h)
    return y
"""


def location() -> object:
    return loads(posteriors.NORMAL_NORMAL).morphism


@pytest.mark.parametrize("kernel", [NUTSKernel(), NUTSKernel(dense_mass=True), HMCKernel(num_steps=5)])
def test_shapes_and_diagnostics(kernel: object) -> None:
    result = MCMC(kernel, 100, 200, 3, seed=0).run(location(), None, DATA)
    assert result.samples["mu"].shape == (3, 200)
    assert result.acceptance_rates.shape == result.divergence_counts.shape == (3,)
    assert result.r_hat["mu"].shape == result.ess["mu"].shape == ()
    assert 0.9 < float(result.r_hat["mu"]) < 1.1
    data = result.to_arviz()
    assert data.posterior["mu"].shape == (3, 200)
    assert data.sample_stats["diverging"].shape == (3, 200)
    assert result.joined()["mu"].shape == (600,)


def test_the_table_has_the_figures_of_arviz() -> None:
    # Four chains of dependent draws, one of them apart. The figures are those of ArviZ 0.23.4.
    generator = np.random.default_rng(5)
    draws = generator.normal(size=(4, 300))
    for step in range(1, 300):
        draws[:, step] += 0.7 * draws[:, step - 1]
    draws[3] += 0.8
    none = torch.zeros(4, 300)
    samples = {"x": torch.from_numpy(draws)}
    result = MCMCResult(samples, none, none, none, none, none, none.bool(), none, none)
    found = result.summary().to_dicts()
    assert found == [
        {
            "name": "x",
            "mean": pytest.approx(0.2833960889, rel=1e-8),
            "sd": pytest.approx(1.5159566226, rel=1e-8),
            "hdi_3%": pytest.approx(-2.4979030797, rel=1e-8),
            "hdi_97%": pytest.approx(3.0522359465, rel=1e-8),
            "mcse_mean": pytest.approx(0.2516493029, rel=1e-8),
            "mcse_sd": pytest.approx(0.0482130684, rel=1e-8),
            "ess_bulk": pytest.approx(35.700934136820734, rel=1e-8),
            "ess_tail": pytest.approx(347.8491605313549, rel=1e-8),
            "r_hat": pytest.approx(1.0919010333373398, rel=1e-8),
        }
    ]


def test_the_same_seed_gives_the_same_draws_watched_or_not() -> None:
    seen = []
    first = MCMC(NUTSKernel(), 30, 20, 2, seed=4).run(location(), None, DATA)
    second = MCMC(NUTSKernel(), 30, 20, 2, seed=4).run(location(), None, DATA, watch=seen.append)
    assert torch.equal(first.samples["mu"], second.samples["mu"])
    assert len(seen) == 50 and seen[0].warmup and not seen[-1].warmup
    torch.manual_seed(9)
    third = MCMC(NUTSKernel(), 30, 20, 2).run(location(), None, DATA)
    torch.manual_seed(9)
    fourth = MCMC(NUTSKernel(), 30, 20, 2).run(location(), None, DATA)
    assert torch.equal(third.samples["mu"], fourth.samples["mu"])


def test_chains_together_are_the_chains_alone() -> None:
    together = MCMC(NUTSKernel(), 40, 30, 3, seed=2, chains="together").run(location(), None, DATA)
    apart = MCMC(NUTSKernel(), 40, 30, 3, seed=2, chains="sequential").run(location(), None, DATA)
    torch.testing.assert_close(together.samples["mu"], apart.samples["mu"], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(together.step_sizes, apart.step_sizes, rtol=1e-4, atol=1e-6)


def test_chains_as_processes_are_the_chains_alone() -> None:
    processes = MCMC(NUTSKernel(), 20, 10, 2, seed=2, chains="processes").run(location(), None, DATA)
    apart = MCMC(NUTSKernel(), 20, 10, 2, seed=2, chains="sequential").run(location(), None, DATA)
    assert torch.equal(processes.samples["mu"], apart.samples["mu"])


def test_the_gradient_of_a_potential_is_that_of_its_density() -> None:
    model = loads(posteriors.PRIORS).morphism
    potential = potential_of(model, None, {})
    q = potential.initial(np.random.default_rng(0)).unsqueeze(0)
    value, gradient = potential.value_and_grad(q)
    for index in range(0, potential.width, 3):
        step = torch.zeros_like(q)
        step[0, index] = 1e-5
        up, down = (potential.value_and_grad(q + sign * step)[0] for sign in (1.0, -1.0))
        assert float((up - down) / 2e-5) == pytest.approx(float(gradient[0, index]), rel=1e-3, abs=1e-3)
    assert value.dtype == torch.float64


@pytest.mark.parametrize("text", [posteriors.EIGHT_SCHOOLS, posteriors.ROW_MIXTURE, posteriors.PRIORS])
def test_a_compiled_density_is_the_plain_one(text: str) -> None:
    model = loads(text).morphism
    data = {name: torch.rand(8) for name in ("y", "sigma")} if "schools" in text else {"y": torch.randn(6)}
    potential = potential_of(model, None, {name: v for name, v in data.items() if "observe" in text})
    compiled = machine_density(potential, potential.initial(np.random.default_rng(0)).numpy())
    for seed in range(1, 4):
        q = potential.initial(np.random.default_rng(seed))
        value, gradient = compiled(q.numpy())
        wanted, slope = potential.value_and_grad(q.unsqueeze(0))
        np.testing.assert_allclose(value, float(wanted), rtol=1e-9)
        np.testing.assert_allclose(gradient, slope[0].numpy(), rtol=1e-7, atol=1e-8)


def test_lifted_chains_move_parameters_sites_and_innovations() -> None:
    model = loads(ARROWS).morphism
    x = torch.randn(4, 2)
    observations = {"y": model.rsample(x)}
    lifted, lx, lobs = bayesian_lift_parameters(model, x, observations, additional_latents={"h": (4, 2)})
    before = {name: p.clone() for name, p in model.named_parameters()}
    result = MCMC(NUTSKernel(max_tree_depth=4), 30, 10, 2, seed=0).run(lifted, lx, lobs)
    assert result.samples["h"].shape == (2, 10, 4, 2)
    assert result.samples["h/f"].shape == (2, 10, 4, 2)
    assert result.samples["head.output.weight"].shape[:2] == (2, 10)
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())
    # what is reported is what the coordinates stand for: the density agrees with the one computed from the values
    potential = potential_of(lifted, lx, lobs)
    q = potential.initial(np.random.default_rng(1))
    report = {name: value[0] for name, value in potential.report(q.unsqueeze(0)).items()}
    innovations = {"h": {"f": report.pop("h/f")}}
    values = {**report, **lobs}
    noise_of_h = q[-16:].reshape(4, 4)[:, 2:].double()
    in_noise = potential.log_density(q)
    theta_scale = sum(math.log(s) * p.numel() for s, p in zip(lifted.scales.values(), model.parameters(), strict=True))
    in_values = lifted.log_joint(lx, values, innovations).double()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(report[name])
        h_given = model.step("h").module.log_prob(x, report["h"], innovations["h"]).double().sum()
    normal = torch.distributions.Normal(0.0, 1.0).log_prob(noise_of_h).sum()
    assert float(in_noise) == pytest.approx(float(in_values - h_given + normal + theta_scale), rel=1e-5)


def test_lifting_checks_what_it_is_reported() -> None:
    model = loads(ARROWS).morphism
    x = torch.randn(4, 2)
    y = {"y": torch.zeros(4, dtype=torch.long)}
    with pytest.raises(InputProblem, match=r"shape \(4, 3\), but on this input it has \(4, 2\)"):
        bayesian_lift_parameters(model, x, y, additional_latents={"h": (4, 3)})
    with pytest.raises(InputProblem, match="no sample site `k`"):
        bayesian_lift_parameters(model, x, y, additional_latents={"k": (4, 2)})


def test_discrete_latents_and_impossible_data_are_reported() -> None:
    text = "object Row : FinSet 4\nprogram p : Row -> Row\n    sample z : Row <- Bernoulli(0.3)\n    return z\n"
    with pytest.raises(DiscreteLatent, match="marginalize"):
        MCMC(NUTSKernel(), 5, 5).run(loads(text).morphism)
    with pytest.raises(NonFinite, match="no start with a finite log density"):
        MCMC(NUTSKernel(), 5, 5).run(loads(posteriors.GAMMA_POISSON).morphism, None, {"y": torch.tensor([1.5, -2.0])})
    with pytest.raises(InputProblem, match="no latent to sample"):
        MCMC(NUTSKernel(), 5, 5).run(location(), None, {**DATA, "mu": torch.tensor(1.0)})


def test_a_chain_that_stands_still_is_reported() -> None:
    kernel = NUTSKernel(step_size=1e-9, max_tree_depth=1, adapt_step_size=False)
    result = MCMC(kernel, 0, 10, seed=0).run(location(), None, DATA)
    assert any("has moved only" in warning for warning in result.warnings)


def test_windows_double_and_leave_a_final_buffer() -> None:
    assert window_ends(10) == (10, [])
    assert window_ends(100) == (15, [90])
    assert window_ends(150) == (0, [10, 25, 50, 100])
    assert window_ends(500) == (0, [10, 25, 50, 100, 200, 450])
    assert window_ends(1000) == (0, [10, 25, 50, 100, 200, 400, 950])


def test_trees_are_short_while_no_scale_is_known() -> None:
    seen: list[Progress] = []
    MCMC(NUTSKernel(1e-4, adapt_step_size=False), 150, 1, seed=0).run(location(), None, DATA, watch=seen.append)
    depths = [int(progress.depth[0]) for progress in seen]
    assert max(depths[:100]) == 6 and max(depths[100:]) == 10


@pytest.mark.parametrize("kind", [DiagonalMass, DenseMass])
def test_a_coordinate_that_the_data_tell_much_about_gets_its_scale_from_few_draws(kind: type) -> None:
    mass = kind(1, 2, np.float64)
    for sign in (1.0, -1.0) * 5:
        mass.observe(np.array([[sign * 0.01, sign]]))
    mass.update()
    inverse = mass.inverse[0] if kind is DiagonalMass else np.diagonal(mass.inverse[0])
    # ten draws and five of variance 1e-3
    np.testing.assert_allclose(inverse, [(10 / 9e4 + 0.5e-3) / 1.5, (10 / 9 + 0.5e-3) / 1.5], rtol=1e-12)


def test_dual_averaging_converges_where_acceptance_meets_its_target() -> None:
    averaging = DualAveraging(np.array([1.0]), 0.8)
    for _ in range(2000):
        # acceptance falls with the step: exp(−step) = 0.8 at 0.223
        averaging.update(np.exp(-averaging.step_size))
    assert float(averaging.final[0]) == pytest.approx(-math.log(0.8), rel=0.02)


def test_dual_averaging_takes_the_steps_that_hoffman_and_gelman_give() -> None:
    """log step = log(10 first) - sqrt(t) / 0.05 * sum(0.8 - acceptance) / (t + 10), averaged by weights t ** -0.75."""
    averaging = DualAveraging(np.array([0.3, 0.02]), 0.8)
    given = np.random.default_rng(0).uniform(0.1, 1.0, (2, 12, 2))
    for first, accepted in zip((np.array([0.3, 0.02]), np.array([1.7, 0.4])), given, strict=True):
        averaging.restart(first)
        np.testing.assert_array_equal(averaging.final, first)
        mean = np.log(first)
        for count in range(1, len(accepted) + 1):
            averaging.update(accepted[count - 1])
            short = (0.8 - accepted[:count]).sum(axis=0) / (count + 10)
            step = np.log(10 * first) - np.sqrt(count) / 0.05 * short
            mean = count**-0.75 * step + (1 - count**-0.75) * mean
            np.testing.assert_allclose(averaging.step_size, np.exp(step), rtol=1e-10)
            np.testing.assert_allclose(averaging.final, np.exp(mean), rtol=1e-10)


CENTRED = "sample mu <- Normal(0.0, 1.0)\n    sample tau <- HalfNormal(1.0)\n    {}\n    observe y <- Normal(mu, 1.0)"


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("sample z : Dim <- Normal(mu, tau)", "write `z` non-centred, since its scale depends on the latent `tau`"),
        ("sample z : Dim <- Normal(mu, 1.0)", "write `z` non-centred, since its location depends on the latent `mu`"),
        ("let s = exp(tau)\n    sample z : Dim <- Normal(0.0, s)", "its scale depends on the latent `tau`"),
        (
            "sample z[t : Dim] <- Normal(z[t - 1], tau) from Normal(0.0, 1.0)",
            "its scale depends on the latent `tau`: sample a standard one and shift and scale it in a `let`",
        ),
        ("sample raw : Dim <- Normal(0.0, 1.0)\n    let z = mu + tau * raw", None),
    ],
)
def test_advice_on_divergences_looks_at_the_program(step: str, said: str | None) -> None:
    source = f"object Dim : FinSet 8\nprogram p : Dim -> Dim\n    {CENTRED.format(step)}\n    return mu\n"
    # So long a step, without warm-up, diverges whatever the program.
    result = MCMC(NUTSKernel(step_size=200.0, adapt_step_size=False), 0, 10, 1, seed=0).run(
        loads(source).morphism, None, DATA
    )
    (warning,) = [warning for warning in result.warnings if "diverged" in warning]
    assert "raise target_accept" in warning
    assert ("non-centred" in warning) == (said is not None)
    assert said is None or said in warning


def test_a_result_shows_itself_in_a_line() -> None:
    result = MCMC(NUTSKernel(), num_warmup=100, num_samples=10, num_chains=2, seed=0).run(location(), None, DATA)
    assert repr(result) == "MCMCResult(2 chains of 10 draws: mu (); 0 divergences)"
    assert result.summary()["name"].to_list() == ["mu"]


MADE_NUMBERS = """
program made : FinSet 1 -> FinSet 1
    sample m : Real 3 <- Normal(0.0, 1.0)
    sample s <- TruncatedNormal(0.0, 1.0, 0.1, 0.9)
    let covariance = s * eye(3) + 0.1 * ones(3, 3)
    let grid = linspace(0.1, 0.7, 3) + 0.1 * arange(3) + one_hot(1, 3) * 0.1
    let mean = [0.1, 0.3, 0.7] * m + grid + zeros(3)
    observe y <- MultivariateNormal(mean, scale_tril=cholesky(covariance))
    return m
"""


def test_the_numbers_that_a_program_makes_have_the_precision_of_the_chain() -> None:
    y, q = np.array([0.3, -0.7, 1.1]), np.array([0.1, 0.2, 0.3, -0.4])
    potential = potential_of(loads(MADE_NUMBERS).morphism, None, {"y": y})
    value, gradient = potential.value_and_grad(torch.from_numpy(q)[None])

    def exact(q: np.ndarray) -> float:
        m, unit = q[:3], 1 / (1 + np.exp(-q[3]))
        s = 0.1 + 0.8 * unit
        mean = np.array([0.1, 0.3, 0.7]) * m + np.linspace(0.1, 0.7, 3) + 0.1 * np.arange(3) + [0.0, 0.1, 0.0]
        prior = stats.norm.logpdf(m).sum() + stats.truncnorm.logpdf(s, 0.1, 0.9)
        likelihood = stats.multivariate_normal.logpdf(y, mean, s * np.eye(3) + 0.1)
        return float(prior + likelihood + np.log(0.8 * unit * (1 - unit)))

    assert float(value) == pytest.approx(exact(q), abs=1e-12)
    steps = 1e-6 * np.eye(4)
    slopes = [(exact(q + step) - exact(q - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient[0].numpy(), slopes, atol=1e-8)


def test_a_matrix_normal_around_made_numbers_is_sampled_and_its_draws_keep_their_digits() -> None:
    text = """
program matrices : FinSet 1 -> FinSet 1
    sample m <- MatrixNormal(zeros(2, 3), eye(2), eye(3))
    observe y <- Normal(sum(sum(m)), 1.0)
    return m
"""
    result = MCMC(NUTSKernel(), 5, 5, 1, seed=0).run(loads(text).morphism, None, {"y": torch.tensor(1.0)})
    draws = result.samples["m"]
    assert draws.dtype == torch.float64 and not bool((draws == draws.float().double()).all())
    assert result.to_arviz().posterior["m"].dtype == np.float64
    drawn = Predictive(loads(text).morphism, posterior_samples=result.joined())(None, {})
    assert drawn["y"].dtype == torch.float64


EQUICORRELATED = """
program equicorrelated : FinSet 1 -> FinSet 1
    sample r <- Uniform(-1.0, 1.0)
    let matrix = [[1.0, r, r], [r, 1.0, r], [r, r, 1.0]]
    observe y <- MultivariateNormal(zeros(3), scale_tril=cholesky(matrix))
    return r
"""


def test_a_matrix_without_a_factor_is_a_rejected_proposal() -> None:
    y = np.array([-0.5, 0.1, 0.4])
    result = MCMC(NUTSKernel(), 300, 1000, 2, seed=1).run(loads(EQUICORRELATED).morphism, None, {"y": y})
    draws = result.samples["r"].flatten().numpy()
    assert draws.min() > -0.5 and int(result.divergence_counts.sum()) > 0
    # below −1/2 the matrix is not positive definite
    grid = np.linspace(-0.49999, 0.99999, 4001)
    density = [stats.multivariate_normal.logpdf(y, np.zeros(3), (1 - r) * np.eye(3) + r) for r in grid]
    weight = np.exp(density) / np.exp(density).sum()
    mean = float((weight * grid).sum())
    sd = math.sqrt(float((weight * (grid - mean) ** 2).sum()))
    assert draws.mean() == pytest.approx(mean, abs=4 * sd / math.sqrt(float(result.ess["r"])))


def test_a_matrix_without_a_factor_is_reported_where_nothing_is_tried() -> None:
    text = EQUICORRELATED.replace("Uniform(-1.0, 1.0)", "Uniform(-1.0, -0.9)")
    with pytest.raises(InputProblem, match="`y`: a matrix is not positive definite"):
        loads(text).morphism.rsample()


def test_kinetic_energies_of_many_single_numbers_are_summed_as_doubles() -> None:
    momentum = np.random.default_rng(0).normal(size=(2, 200_000)).astype(np.float32)
    exact = [0.125 * math.fsum(each * each for each in row) for row in momentum.tolist()]
    np.testing.assert_allclose(kinetic(momentum, momentum * np.float32(0.25)), exact, rtol=1e-12)


@pytest.mark.parametrize(("engine", "draws"), [pytest.param("plain", 500, marks=pytest.mark.slow), ("compiled", 1500)])
def test_energies_are_those_of_the_hamiltonian(engine: str, draws: int) -> None:
    """E = −log p + ½pᵀM⁻¹p where a trajectory starts: the kinetic part is half a χ² of as many degrees as latents."""
    text = "object S : FinSet 6\nprogram p : S -> S\n    sample z : S <- Normal(0.0, 1.0)\n    return z\n"
    result = MCMC(NUTSKernel(), 200, draws, 2, seed=3, engine=engine).run(loads(text).morphism)
    assert result.energy is not None and result.engine == engine
    before = torch.cat([result.log_density[:, :1], result.log_density[:, :-1]], 1)
    kinetic = (result.energy + before)[:, 1:]
    assert bool((kinetic > 0).all())
    assert float(kinetic.mean()) == pytest.approx(3.0, abs=0.15)
    assert float(kinetic.var()) == pytest.approx(3.0, abs=0.4)
