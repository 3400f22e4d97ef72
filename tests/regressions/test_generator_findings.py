"""What random programs found (tests/generator), each as small as it can be."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from qvr_core.analysis import analyse
from qvr_core.dsl import loads
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.semantics.types.diagnostics import Severity


@pytest.fixture(autouse=True)
def double() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def told(text: str) -> list[tuple[str, str]]:
    """Errors: the code, and what stands at its place."""
    found = [one for one in analyse(text).diagnostics() if one.severity is not Severity.HINT]
    lines = text.splitlines()
    return [
        (one.code.name, lines[one.range.start.line][one.range.start.column : one.range.end.column]) for one in found
    ]


LABELS = """\
object Group : FinSet 2
object State : {low, mid}
program p : Group -> Group
    sample a <- Normal(0.0, 1.0)
    marginalize z : Group <- Categorical([0.25, 0.75])
        STEP
        observe w[i : Group] <- Normal(z + u[low], 1.0)
    return a
"""


@pytest.mark.parametrize("step", ["observe u[i : State] <- Normal(z, 1.0)", "let u[i : State] = z + 2 * i"])
def test_a_label_of_what_a_block_makes_is_no_data(step: str) -> None:
    text = LABELS.replace("STEP", step)
    assert told(text) == []
    assert [data.name for data in analyse(text).model.programs["p"].data] == []


def test_a_label_below_a_hidden_value_reads_its_element() -> None:
    w, a = torch.tensor([0.3, -0.4]), torch.tensor(0.1)
    found = loads(LABELS.replace("STEP", "let u[i : State] = z + 2 * i")).morphism.log_joint(None, {"a": a, "w": w})
    normal = torch.distributions.Normal
    each = [normal(2.0 * z, 1.0).log_prob(w).sum() + math.log(p) for z, p in ((0, 0.25), (1, 0.75))]
    wanted = torch.logsumexp(torch.stack(each), 0) + normal(0.0, 1.0).log_prob(a)
    assert float(found) == pytest.approx(float(wanted), rel=1e-12)


def test_a_shift_of_undeclared_data_is_not_lost_beside_a_fixed_element() -> None:
    text = """\
object Time : FinSet 4
program p : Time -> Time
    sample a <- Normal(0.0, 1.0)
    observe z[t : Time] <- Normal(a * x[t - 1, 0], 1.0)
    return a
"""
    x, z, a = torch.arange(12.0).reshape(4, 3), torch.zeros(4), torch.tensor(0.5)
    normal = torch.distributions.Normal
    wanted = normal(0.0, 1.0).log_prob(a) + normal(a * x[:3, 0], 1.0).log_prob(z[1:]).sum()
    found = loads(text).morphism.log_joint(None, {"a": a, "x": x, "z": z})
    assert float(found) == pytest.approx(float(wanted), rel=1e-12)


def test_a_hidden_chain_reads_its_own_past_alone() -> None:
    text = """\
object Time : FinSet 3
object Site : FinSet 2
object State : FinSet 2
program p : Time -> Time
    data other : Site -> Site
    data P : State * State
    marginalize z[i : Site, t : Time] : State <- Categorical(P[z[other[i], t - 1]]) from Categorical([0.5, 0.5])
        observe y[i : Site, t : Time] <- Normal(z[i, t], 1.0)
    return P
"""
    assert told(text) == [("cannot-marginalize", "other[i]")]
    assert told(text.replace("other[i], t", "i, t")) == []


SERIES = """\
object Group : FinSet 3
object Time : FinSet 4
program p : Time -> Time
    data k : Group -> Group
    let v[g : Group, t : Time] = READ + 0.5 * v[g, t - 1] from 1.0
    observe y[g : Group, t : Time] <- Normal(0.0, exp(v[g, t]))
    return v
"""


@pytest.mark.parametrize(
    ("read", "at"),
    [
        ("y[k[g], t]", "y[k[g], t]"),
        ("y[0, t]", "y[0, t]"),
        ("sum(y[h, t] for h : Group)", "y[h, t]"),
        ("y[k[g], t - 1]", None),
        ("sum(y[h, t - 1] for h : Group)", None),
        ("where(k[g] > g, y[k[g], t], 0.0)", None),
    ],
)
def test_a_series_that_reads_another_at_the_same_time_goes_round_in_a_circle(read: str, at: str | None) -> None:
    assert told(SERIES.replace("READ", read)) == ([] if at is None else [("used-before-bound", at)])


def test_a_sum_over_its_own_set_reads_a_missing_cell_at_the_elements_place() -> None:
    text = """\
object Item : FinSet 2
program p : Item -> Item
    sample a[i : Item] <- LogNormal(0.0, 1.0)
    observe w[i : Item] <- Categorical([0.6, 0.4]) [missing=impute]
    observe y[i : Item] <- Gamma(mean(a[w[i]] for j : Item) + sum(a[w[i]] * a[j] for j : Item), 1.5)
    return a
"""
    a, y, w = torch.tensor([0.7, 1.9]), torch.tensor([1.3, 0.4]), torch.tensor([math.nan, 1.0])

    def density(state: int, seen: torch.Tensor) -> torch.Tensor:
        return torch.distributions.Gamma(a[state] * (1.0 + a.sum()), 1.5).log_prob(seen)

    first = torch.logsumexp(torch.stack([math.log(0.6) + density(0, y[0]), math.log(0.4) + density(1, y[0])]), 0)
    wanted = torch.distributions.LogNormal(0.0, 1.0).log_prob(a).sum() + first + math.log(0.4) + density(1, y[1])
    found = loads(text).morphism.log_joint(None, {"a": a, "w": w, "y": y})
    assert float(found) == pytest.approx(float(wanted), rel=1e-12)


def test_a_chain_beyond_all_numbers_has_no_density() -> None:
    text = """\
object Time : FinSet 5
program p : Time -> Time
    sample h[t : Time] <- LogNormal(h[t - 1], 1.0) from LogNormal(0.0, 1.0) [noncentred]
    observe y[t : Time] <- Normal(tanh(h[t]), 1.0)
    return h
"""
    potential = potential_of(loads(text).morphism, None, {"y": torch.zeros(5)})
    inside, gradient = potential.value_and_grad(torch.full((1, 5), -1.0))
    assert bool(inside.isfinite().all()) and bool(gradient.isfinite().all())
    for start in (0.1, 1.0, 3.0):
        value, _ = potential.value_and_grad(torch.full((1, 5), start))
        assert float(value) == -math.inf


@pytest.mark.parametrize("family", ["Geometric(P)", "Bernoulli(P)", "Binomial(3, P)"])
def test_a_small_probability_keeps_its_logarithm(family: str) -> None:
    text = f"""\
object Row : FinSet 2
program p : Row -> Row
    sample a <- Normal(0.0, 200.0)
    observe y[i : Row] <- {family.replace("P", "sigmoid(a)")}
    return a
"""
    a = torch.tensor(-129.5)
    found = loads(text).morphism.log_joint(None, {"a": a, "y": torch.ones(2)})
    prior = torch.distributions.Normal(0.0, 200.0).log_prob(a)
    ways = math.log(3.0) if "Binomial" in family else 0.0
    assert float(found - prior) == pytest.approx(2 * (float(a) + ways), rel=1e-12)


def test_a_large_probability_keeps_its_logarithm() -> None:
    text = """\
object Row : FinSet 2
program p : Row -> Row
    sample a <- Normal(0.0, 200.0)
    observe y[i : Row] <- Binomial(1000000, logits=a)
    return a
"""
    a = torch.tensor(21.0)
    found = loads(text).morphism.log_joint(None, {"a": a, "y": torch.full((2,), 1e6)})
    prior = torch.distributions.Normal(0.0, 200.0).log_prob(a)
    assert float(found - prior) == pytest.approx(-2e6 * math.log1p(math.exp(-21.0)), abs=1e-7)


@pytest.mark.parametrize(
    "family",
    [
        "MixtureNormal(softmax([0.0, a]), [0.3, -0.3], [0.5, 1.0])",
        "Mixture(softmax([0.0, a]), Normal(0.3, 1.0), Cauchy(0.0, 0.5))",
    ],
)
def test_an_exact_value_among_intervals_of_a_mixture_has_a_slope(family: str) -> None:
    text = f"""\
object Row : FinSet _
program p : Row -> Row
    sample a <- Normal(0.0, 1.0)
    data end : Row -> Real 1
    observe y[i : Row] <- {family} [interval=end]
    return a
"""
    y, end = torch.tensor([0.5, 0.8, -1.0]), torch.tensor([math.inf, 0.8, 0.2])
    potential = potential_of(loads(text, data={"end": end}).morphism, None, {"y": y})
    positions = torch.tensor([[0.3]])
    _, gradient = potential.value_and_grad(positions)
    near = [float(potential.value_and_grad(positions + step)[0]) for step in (-1e-5, 1e-5)]
    assert float(gradient) == pytest.approx((near[1] - near[0]) / 2e-5, rel=1e-6)
