"""Summed-out latents against brute-force enumeration and quadrature against dense sums."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch.distributions import Categorical, Normal, Poisson

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, AutoNormalGuide, AutoPriorGuide, trace
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.inference.objectives import weigh
from qvr_core.runtime.programs.handlers import condition, substitute
from qvr_core.runtime.values.errors import InputProblem, NoDensity, RuntimeProblem
from tests.inference import posteriors


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


def likelihood(text: str, values: dict, observations: dict) -> float:
    """The summed-out term of a program, at given latents."""
    model = loads(text).morphism
    run = model.execute(None, substitute(values), condition(observations))
    (site,) = [site for site in run.sites.values() if site.kind == "marginalize"]
    assert site.log_prob.shape == (1,)
    return float(site.log_prob)


def test_grouped_sum_equals_enumeration() -> None:
    g = torch.tensor([0, 0, 1, 2, 2, 2, 3, 3, 1, 0, 2])
    y, n = torch.randn(11), torch.randint(0, 4, (11,))
    w, mu = torch.tensor([0.2, 0.5, 0.3]), torch.tensor([-1.0, 0.5, 2.0])
    found = likelihood(posteriors.GROUPED_MIXTURE, {"w": w[None], "mu": mu[None]}, {"y": y, "n": n, "g": g})
    terms = []
    for z in itertools.product(range(3), repeat=4):
        m = mu[torch.tensor(z)][g]
        each = Normal(m, 0.8).log_prob(y).sum() + Poisson((0.3 * m).exp()).log_prob(n.float()).sum()
        terms.append(each + Categorical(w).log_prob(torch.tensor(z)).sum())
    assert found == pytest.approx(float(torch.stack(terms).logsumexp(0)), rel=1e-5)


def test_nested_sum_equals_enumeration() -> None:
    g, y = torch.tensor([0, 0, 1, 2, 2, 1, 0]), torch.randn(7)
    mu, nu = torch.tensor([-1.0, 2.0]), torch.tensor([-0.5, 0.0, 0.8])
    p, q = torch.tensor([0.3, 0.7]), torch.tensor([0.2, 0.5, 0.3])
    found = likelihood(posteriors.NESTED_MIXTURE, {"mu": mu[None], "nu": nu[None]}, {"y": y, "g": g})
    total = 0.0
    for group in range(3):
        rows = y[g == group]
        terms = [
            p[z].log() + q[t].log() + Normal(mu[z] + nu[t], 0.8).log_prob(rows).sum()
            for z in range(2)
            for t in range(3)
        ]
        total += float(torch.stack(terms).logsumexp(0))
    assert found == pytest.approx(total, rel=1e-5)


def test_sum_per_row_is_a_mixture_density() -> None:
    y, mu = torch.randn(6), torch.tensor([-1.0, 1.5])
    found = likelihood(posteriors.ROW_MIXTURE, {"mu": mu[None]}, {"y": y})
    p = torch.tensor([0.4, 0.6])
    expected = (p.log() + Normal(mu, 1.0).log_prob(y[:, None])).logsumexp(-1).sum()
    assert found == pytest.approx(float(expected), rel=1e-5)


def test_interval_is_integrated() -> None:
    y = torch.randn(6)
    found = likelihood(posteriors.QUADRATURE, {"s": torch.tensor([0.4])}, {"y": y})
    normal = Normal(0.0, 0.4)
    exact = ((normal.cdf(y + 1.0) - normal.cdf(y - 2.0)) / 3.0).log().sum()
    assert found == pytest.approx(float(exact), rel=1e-4)


def test_particles_do_not_mix() -> None:
    model = loads(posteriors.ROW_MIXTURE).morphism
    y, mu = torch.randn(6), torch.randn(5, 2)
    together = model.execute(None, substitute({"mu": mu}), condition({"y": y})).log_joint()
    apart = torch.stack([model.execute(None, substitute({"mu": m[None]}), condition({"y": y})).log_joint() for m in mu])
    torch.testing.assert_close(together, apart.squeeze(-1))


def test_blocks_draw_data_that_they_can_score() -> None:
    model = loads(posteriors.GROUPED_MIXTURE).morphism
    g = torch.tensor([0, 0, 1, 2, 2, 2, 3, 3, 1, 0, 2])
    drawn = trace(model, None, {"g": g})
    assert drawn.sites["y"].value.shape[-1] == 11
    assert math.isfinite(float(drawn.log_joint))


def test_a_row_without_a_group_is_reported() -> None:
    text = posteriors.GROUPED_MIXTURE.replace(" [via=g]\n        observe n", "\n        observe n")
    with pytest.raises(RuntimeProblem, match="via="):
        loads(text).morphism.execute(None, condition({"y": torch.randn(11), "n": torch.ones(11), "g": torch.zeros(11)}))


def test_lengths_must_agree() -> None:
    model = loads(posteriors.GROUPED_MIXTURE).morphism
    with pytest.raises(InputProblem, match="site `y`"):
        model.execute(
            None, condition({"y": torch.randn(10), "n": torch.ones(11), "g": torch.zeros(11, dtype=torch.long)})
        )


def test_a_guide_moves_what_is_left() -> None:
    guide = AutoNormalGuide(loads(posteriors.ROW_MIXTURE).morphism, observed_names={"y"})
    assert [block.site for block in guide.blocks] == ["mu"]


def test_a_latent_of_a_block_has_one_value_for_all_branches() -> None:
    model = loads(posteriors.BLOCK_LATENT).morphism
    y, mu, e = torch.randn(4), torch.tensor([[-1.0, 1.5], [0.2, 0.4]]), torch.tensor([0.4, -0.7])
    run = model.execute(None, substitute({"mu": mu, "e": e}), condition({"y": y}))
    weights = torch.tensor([0.3, 0.7]).log()
    for row in range(2):
        branches = weights + Normal(mu[row], 0.5).log_prob(e[row]) + Normal(2.0 * e[row], 1.0).log_prob(y).sum()
        assert float(run.sites["z"].log_prob[row]) == pytest.approx(float(branches.logsumexp(0)), rel=1e-5)
    torch.testing.assert_close(run.log_joint(), Normal(0.0, 1.0).log_prob(mu).sum(-1) + run.sites["z"].log_prob)
    torch.testing.assert_close(model.log_joint(None, {"mu": mu, "e": e, "y": y}), run.log_joint())
    with pytest.raises(InputProblem, match="needs a value for `e`"):
        model.log_joint(None, {"mu": mu, "y": y})


def test_guides_and_chains_move_the_latent_of_a_block() -> None:
    model = loads(posteriors.BLOCK_LATENT).morphism
    data = {"y": torch.randn(4)}
    guide = AutoNormalGuide(model, observed_names={"y"})
    assert [block.site for block in guide.blocks] == ["mu", "e"]
    potential = potential_of(model, None, data)
    q = torch.randn(3, potential.width, dtype=potential.dtype)
    first, second = (potential.value_and_grad(q)[0] for _ in range(2))
    assert torch.equal(first, second)
    report = potential.report(q)
    assert report["e"].shape == (3,)
    expected = model.execute(None, substitute(report), condition({"y": data["y"].double()})).log_joint()
    torch.testing.assert_close(first, expected.double(), rtol=1e-6, atol=1e-6)


def test_the_prior_guide_weighs_what_a_block_draws() -> None:
    """E[p(y | e)] with e drawn through the block is the evidence, and its gradient is the evidence's."""
    text = posteriors.BLOCK_LATENT.replace("sample mu : Kind <- Normal(0.0, 1.0)", "let mu = [-1.0, 1.5]")
    model = loads(text).morphism
    y = torch.tensor([0.4, 1.0, -0.3, 0.8])
    guide = AutoPriorGuide(model, observed_names={"y"})
    with torch.no_grad():
        _, log_weights = weigh(model, guide, None, {"y": y}, 200_000)
    covariance = 4.0 * 0.25 * torch.ones(4, 4) + torch.eye(4)
    each = [
        torch.distributions.MultivariateNormal(2.0 * m * torch.ones(4), covariance).log_prob(y) for m in (-1.0, 1.5)
    ]
    evidence = (torch.tensor([0.3, 0.7]).log() + torch.stack(each)).logsumexp(0)
    assert float(log_weights.logsumexp(0)) - math.log(200_000) == pytest.approx(float(evidence), abs=0.02)


def test_an_arrow_draws_inside_a_block() -> None:
    model = loads(posteriors.BLOCK_ARROW).morphism
    x, y = torch.randn(3, 1), torch.randn(3, 1)
    h = torch.randn(3, 2)
    found = model.log_joint(x, {"h": h, "y": y})
    near, out = model.get_submodule("near"), model.get_submodule("out")
    p = torch.sigmoid(x[:, 0])
    branches = torch.stack(
        [weight.log() + near.log_prob(torch.full((3,), z), h) for z, weight in enumerate((1.0 - p, p))], -1
    )
    torch.testing.assert_close(found, branches.logsumexp(-1) + out.log_prob(h, y))
    assert math.isfinite(float(ELBO(3)(model, AutoPriorGuide(model), x, {"y": y}).detach()))
    with pytest.raises(NoDensity, match="`h` is drawn from an arrow inside `marginalize`"):
        AutoNormalGuide(model, observed_names={"y"})


TOPICS = """
object Token : FinSet 40
object Document : FinSet 5
object Topic : FinSet 3
object Vocabulary : FinSet 10
program topics : Token -> Token
    sample topics_of : Document <- Dirichlet(0.5) [over=Topic]
    sample words_of : Topic <- Dirichlet(0.5) [over=Vocabulary]
    marginalize z : Token <- Categorical(topics_of[document])
        observe word : Token <- Categorical(words_of[z])
    return words_of
"""


@pytest.mark.parametrize("drawn", ["word", "document", "both", "neither"])
def test_what_rsample_returns_meets_its_rows_one_by_one(drawn: str) -> None:
    model = loads(TOPICS).morphism
    document, word = torch.arange(40) % 5, torch.randint(0, 10, (40,))
    topics, words = torch.rand(1, 5, 3).softmax(-1), torch.randn(1, 3, 10).softmax(-1)
    expected = (topics[0][document] @ words[0])[torch.arange(40), word].log().sum()
    given = {
        "document": document[None] if drawn in ("document", "both") else document,
        "word": word[None] if drawn in ("word", "both") else word,
    }
    run = model.execute(None, substitute({"topics_of": topics, "words_of": words}), condition(given))
    torch.testing.assert_close(run.log_joint() - _priors(topics, words), expected[None], rtol=1e-5, atol=1e-4)


def _priors(topics: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    half = torch.distributions.Dirichlet
    return half(torch.full((3,), 0.5)).log_prob(topics).sum() + half(torch.full((10,), 0.5)).log_prob(words).sum()


@pytest.mark.parametrize("rows", [3, 40])
def test_several_draws_of_all_rows_are_refused(rows: int) -> None:
    with pytest.raises(InputProblem, match=r"word\[i\].*Real"):
        loads(TOPICS).morphism.execute(
            None,
            condition({"document": torch.arange(40) % 5, "word": torch.randint(0, 10, (rows, 40))}),
        )


CELLS = """
object I : FinSet 3
object J : FinSet 4
program cells : I -> I
    sample mu <- Normal(0.0, 1.0)
    sample q : I * J <- Beta(1.0, 1.0)
    marginalize z : I * J <- Bernoulli(q)
        observe y : I * J <- Normal(mu + 2.0 * z, 1.0)
    return mu
"""


def test_a_plate_of_two_axes_has_a_value_for_each_cell() -> None:
    y, q = torch.randn(3, 4), torch.rand(3, 4)
    for given in (y, y[None]):
        found = likelihood(CELLS, {"mu": torch.tensor([0.3]), "q": q[None]}, {"y": given})
        terms = [(1 - q).log() + Normal(0.3, 1.0).log_prob(y), q.log() + Normal(2.3, 1.0).log_prob(y)]
        assert found == pytest.approx(float(torch.stack(terms).logsumexp(0).sum()), rel=1e-5)
    with pytest.raises(InputProblem, match="3 × 4"):
        likelihood(CELLS, {"mu": torch.tensor([0.3]), "q": q[None]}, {"y": y[0]})


def test_one_sum_for_all_rows_inside_one_for_each_is_refused() -> None:
    text = """
object Row : FinSet 6
program nested : Row -> Row
    sample mu <- Normal(0.0, 1.0)
    marginalize z : Row <- Bernoulli(0.3)
        marginalize t <- Bernoulli(0.5)
            observe y : Row <- Normal(mu + z + t, 1.0)
    return mu
"""
    with pytest.raises(InputProblem, match="`z` has one for"):
        likelihood(text, {"mu": torch.tensor([0.3])}, {"y": torch.randn(6)})


def test_several_draws_of_rows_with_arguments_of_their_own_are_refused() -> None:
    text = """
object Row : FinSet 6
program line : Row -> Row
    sample b <- Normal(0.0, 1.0)
    observe y : Row <- Normal(b * x, 1.0)
    return b
"""
    model, x, y = loads(text).morphism, torch.randn(6), torch.randn(6)
    one = model.execute(None, substitute({"b": torch.ones(1)}), condition({"x": x, "y": y})).log_joint()
    drawn = model.execute(None, substitute({"b": torch.ones(1)}), condition({"x": x, "y": y[None]})).log_joint()
    torch.testing.assert_close(one, drawn)
    for shape in ((6, 6), (3, 6), (6, 1)):
        with pytest.raises(InputProblem, match="site `y`"):
            model.execute(None, condition({"x": x, "y": torch.randn(shape)}))
