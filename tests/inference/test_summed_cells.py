"""`[missing=impute]` of a discrete family: the sum over its missing cells against enumeration."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import special, stats
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, MCMC, SVI, AutoNormalGuide, NUTSKernel, Predictive
from qvr_core.runtime.programs.handlers import by_rows, condition, pointwise, substitute
from qvr_core.runtime.values.errors import InputProblem

NAN = math.nan
SMOKING = """
object Person : FinSet 4
object Visit : FinSet 3
program p : Person -> Person
    data smokes : Person -> Bool
    data breath : Person * Visit
    data cough : Visit * Person
    data weight : Person
    sample m : Visit <- Normal(0.0, 1.0)
    observe smokes[i : Person] <- Bernoulli(0.3) [missing=impute]
    let eta[i : Person, j : Visit] = m[j] * smokes[i]
    observe breath[i : Person, j : Visit] <- Normal(eta[i, j], 1.0)
    sample s <- HalfNormal(1.0)
    observe cough[j : Visit, i : Person] <- Normal(m[j] + smokes[i], s)
    observe weight : Person <- Normal(where(smokes == 1, 1.0, 2.0), 1.0)
    return m
"""
KINDS = """
object Row : FinSet 4
object Kind : {low, mid, high}
program p : Row -> Row
    data kind : Row -> Kind
    data y : Row
    sample mu : Kind <- Normal(0.0, 3.0)
    observe kind[i : Row] <- Categorical([0.5, 0.3, 0.2]) [missing=impute]
    observe y[i : Row] <- Normal(mu[kind[i]], 0.7)
    return mu
"""


def doubles(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def enumerated(joint: Callable[[np.ndarray], float], known: list[float], values: int) -> float:
    """log Σ exp of a joint density over everything that the missing cells may be."""
    gaps = [at for at, value in enumerate(known) if math.isnan(value)]
    found: list[float] = []
    for fill in itertools.product(range(values), repeat=len(gaps)):
        whole = np.array(known)
        whole[gaps] = fill
        found.append(joint(whole.astype(int)))
    return float(special.logsumexp(found))


def smoking_data() -> dict[str, Tensor]:
    rng = np.random.default_rng(3)
    shapes = {"breath": (4, 3), "cough": (3, 4), "weight": (4,)}
    made = {name: torch.tensor(rng.normal(size=shape)) for name, shape in shapes.items()}
    return {"smokes": doubles(1.0, NAN, 0.0, NAN), **made}


def test_cells_are_summed_with_all_that_reads_them_over_other_axes_too() -> None:
    model, data = loads(SMOKING).morphism, smoking_data()
    m, s = np.array([0.4, -0.8, 1.5]), 0.7
    latents = {"m": torch.tensor(m).unsqueeze(0), "s": doubles(s)}
    run = model.run(None, condition(data), substitute(latents), pointwise, by_rows(1))

    def joint(x: np.ndarray) -> float:
        return float(
            stats.bernoulli(0.3).logpmf(x).sum()
            + stats.norm.logpdf(data["breath"], m * x[:, None], 1).sum()
            + stats.norm.logpdf(data["cough"], m[:, None] + x, s).sum()
            + stats.norm.logpdf(data["weight"], np.where(x == 1, 1, 2), 1).sum()
        )

    wanted = enumerated(joint, data["smokes"].tolist(), 2)
    prior = stats.norm.logpdf(m).sum() + stats.halfnorm.logpdf(s)
    assert float(run.log_joint()) == pytest.approx(wanted + prior, rel=1e-7)
    each = {name: site.pointwise[0] for name, site in run.sites.items() if site.pointwise is not None}
    assert sum(float(value.nansum()) for value in each.values()) == pytest.approx(wanted, rel=1e-7)
    assert torch.isnan(each["smokes"]).tolist() == [False, True, False, True]
    # where the cell is there an element is as in any step
    cough = stats.norm.logpdf(data["cough"][:, 0], m + 1.0, s)
    assert each["cough"][:, 0].tolist() == pytest.approx(cough.tolist(), rel=1e-6)
    # where it is not, an element is given those before it
    breath, p = data["breath"][1].numpy(), np.array([0.7, 0.3])
    density = np.exp(stats.norm.logpdf(breath[:, None], m[:, None] * np.arange(2), 1))
    first = np.log(p @ density[0])
    second = np.log(p @ (density[0] * density[1])) - first
    assert each["breath"][1, :2].tolist() == pytest.approx([first, second], rel=1e-6)


def test_categories_are_summed_and_the_likelihood_of_draws_says_so() -> None:
    data = {"kind": doubles(0.0, NAN, 2.0, NAN), "y": doubles(-1.0, 0.3, 2.0, 4.0)}
    result = MCMC(NUTSKernel(), 60, 5, 1, seed=2).run(loads(KINDS).morphism, None, data)
    assert set(result.samples) == {"mu"}
    p = np.array([0.5, 0.3, 0.2])
    for mu, kind, y in zip(
        result.samples["mu"][0], result.log_likelihood["kind"][0], result.log_likelihood["y"][0], strict=True
    ):
        density = p * stats.norm.pdf(data["y"][:, None], mu, 0.7)
        wanted = [stats.norm.logpdf(-1.0, mu[0], 0.7), math.log(density[1].sum())]
        wanted += [stats.norm.logpdf(2.0, mu[2], 0.7), math.log(density[3].sum())]
        assert y.tolist() == pytest.approx(wanted, rel=1e-5)
        assert kind[[0, 2]].exp().tolist() == pytest.approx([0.5, 0.2], rel=1e-6)
        assert torch.isnan(kind[[1, 3]]).all()


def test_counts_up_to_a_total_of_their_own_and_a_series_that_reads_them() -> None:
    text = """
object Time : FinSet 5
program p : Time -> Time
    data n, total : Time -> Nat
    data y : Time
    sample b <- Normal(0.0, 1.0)
    observe n[t : Time] <- Binomial(total[t], 0.4) [missing=impute]
    observe y[t : Time] <- Normal(0.5 * y[t - 1] + b * n[t], 1.0)
    return b
"""
    model = loads(text).morphism
    total, y = np.array([3, 2, 4, 1, 2]), np.array([0.1, 0.7, 1.1, -0.4, 0.9])
    known = [NAN, 1.0, NAN, NAN, 2.0]
    data = {"n": doubles(*known), "total": torch.tensor(total), "y": torch.tensor(y)}
    run = model.run(None, condition(data), substitute({"b": doubles(0.6)}), by_rows(1))

    def joint(n: np.ndarray) -> float:
        return float(
            stats.binom.logpmf(n, total, 0.4).sum() + stats.norm.logpdf(y[1:], 0.5 * y[:-1] + 0.6 * n[1:], 1).sum()
        )

    wanted = enumerated(joint, known, 5) + stats.norm.logpdf(0.6)
    assert float(run.log_joint()) == pytest.approx(wanted, rel=1e-7)


def test_without_gaps_nothing_is_summed_and_without_readers_a_cell_is_worth_nothing() -> None:
    model = loads(KINDS).morphism
    mu = substitute({"mu": doubles(0.0, 1.0, 2.0).unsqueeze(0)})
    whole = {"kind": doubles(0.0, 1.0, 2.0, 1.0), "y": doubles(-1.0, 0.3, 2.0, 4.0)}
    run = model.run(None, condition(whole), mu, by_rows(1))
    wanted = stats.norm.logpdf(whole["y"], [0, 1, 2, 1], 0.7).sum() + np.log([0.5, 0.3, 0.2, 0.3]).sum()
    found = run.sites["kind"].log_prob, run.sites["y"].log_prob
    assert sum(float(each) for each in found if each is not None) == pytest.approx(wanted, rel=1e-6)
    alone = loads(KINDS.replace("    observe y[i : Row] <- Normal(mu[kind[i]], 0.7)\n", "")).morphism
    density = alone.run(None, condition({"kind": doubles(0.0, NAN, 2.0, NAN)}), mu).sites["kind"].log_prob
    assert density is not None
    assert float(density) == pytest.approx(math.log(0.5 * 0.2), rel=1e-6)


def test_a_guide_moves_the_rest_and_predictions_know_what_the_cells_are_likely_to_be() -> None:
    torch.manual_seed(1)
    data = {"kind": doubles(0.0, NAN, 2.0, NAN).float(), "y": doubles(-20.0, 0.3, 20.0, 20.5).float()}
    model = loads(KINDS).morphism
    guide = AutoNormalGuide(model, observed_names=("kind", "y"), observations=data)
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.05), ELBO())
    losses = [svi.step(None, data) for _ in range(20)]
    assert all(map(math.isfinite, losses))
    mu = {"mu": torch.tensor([[-20.0, 0.0, 20.0]]).expand(400, 3)}
    drawn = Predictive(model, posterior_samples=mu)(None, data)["y"]
    # row 3 is of the high kind, given its 20.5; row 1 of the middle one
    torch.testing.assert_close(
        drawn.mean(0).flatten()[-4:], doubles(-20.0, 0.0, 20.0, 20.0).float(), atol=0.2, rtol=0.0
    )


def test_what_reads_the_cells_is_given_as_a_whole_or_drawn() -> None:
    model, data = loads(SMOKING).morphism, smoking_data()
    torch.manual_seed(1)
    drawn = Predictive(model, num_samples=3)(None, {"smokes": data["smokes"]})
    assert drawn["breath"].shape[-2:] == (4, 3)
    with pytest.raises(InputProblem, match="`smokes` has missing cells, summed out with what reads them: give `cough`"):
        model.execute(None, condition({name: data[name] for name in ("smokes", "breath")}))
