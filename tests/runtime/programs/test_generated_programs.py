"""Small programs that `tests.generator` found to crash, to be refused, or to have the wrong density."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

from qvr_core.dsl import check, loads
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.runtime.programs.execution import Execution
from qvr_core.runtime.programs.handlers import by_rows, condition, pointwise, substitute


def doubles(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def ran(text: str, latents: dict[str, Tensor] | None = None, **data: Any) -> Execution:
    return loads(text).morphism.run(None, condition(data), substitute(latents or {}), pointwise)


def test_functions_of_whole_numbers_are_computed_in_the_precision_of_the_run() -> None:
    text = """
object Row : FinSet 3
program p : Row -> Row
    data n : Row -> Nat
    sample a <- Normal(0.0, 1.0)
    observe y[i : Row] <- Normal(atan(n[i]) + softplus(n[i]) + n[i] / 3, 2)
    return a
"""
    run = ran(text, {"a": doubles(0.3)}, n=torch.tensor([0, 1, 7]), y=doubles(0.1, 0.2, 0.3))
    means = [math.atan(n) + math.log1p(math.exp(n)) + n / 3 for n in (0, 1, 7)]
    wanted = stats.norm(means, 2.0).logpdf([0.1, 0.2, 0.3])
    torch.testing.assert_close(run.sites["y"].pointwise, torch.from_numpy(wanted).unsqueeze(0), rtol=1e-12, atol=0.0)


def test_a_logit_that_is_a_whole_number_is_a_number() -> None:
    text = """
object Row : FinSet 2
program p : Row -> Row
    data n : Row -> Nat
    sample a <- Normal(0.0, 1.0)
    observe y[i : Row] <- Bernoulli(logits=n[i])
    return a
"""
    run = ran(text, {"a": doubles(0.3)}, n=torch.tensor([0, 2]), y=torch.tensor([1, 0]))
    wanted = doubles(-math.log(2.0), -math.log1p(math.exp(2.0)))
    torch.testing.assert_close(run.sites["y"].pointwise, wanted.unsqueeze(0), rtol=1e-12, atol=0.0)


def test_a_recursion_that_reads_nothing_but_itself() -> None:
    text = """
object Time : FinSet 4
program p : Time -> Time
    sample a <- Normal(0.0, 1.0)
    let r[t : Time] = r[t - 1] ^ 2 from 0.5
    return r
"""
    made = ran(text, {"a": doubles(0.3)}).output
    torch.testing.assert_close(made, doubles(0.5, 0.25, 0.0625, 0.00390625).unsqueeze(0))


def test_a_component_that_a_later_one_adds_a_quotient_to_keeps_its_values() -> None:
    text = """
object Time : FinSet 3
program p : Time -> Time
    data x : Real 1
    sample a <- Normal(0.0, 1.0)
    let (r, q)[t : Time] = (0.5 * r[t - 1], tanh(q[t - 1]) / x + r[t]) from (1.0, 0.5)
    return (r, q)
"""
    r, q = ran(text, {"a": doubles(0.3)}, x=torch.tensor(2.0).double()).output  # pyright: ignore
    first = math.tanh(0.5) / 2.0 + 0.5
    torch.testing.assert_close(r, doubles(1.0, 0.5, 0.25).unsqueeze(0))
    torch.testing.assert_close(q, doubles(0.5, first, math.tanh(first) / 2.0 + 0.25).unsqueeze(0))


def test_a_let_that_looks_back_as_far_as_its_set_is_long() -> None:
    text = """
object Time : FinSet 2
program p : Time -> Time
    data x : Time
    sample a <- Normal(0.0, 1.0)
    let d[t : Time] = x[t - 2] from (1.0, a)
    return d
"""
    made = ran(text, {"a": doubles(0.3)}, x=doubles(5.0, 6.0)).output
    torch.testing.assert_close(made, doubles(1.0, 0.3).unsqueeze(0))


@pytest.mark.parametrize("option", ["right_censored=c", "left_censored=c", "truncate_upper=9"])
def test_limits_of_zero_inflated_counts_whose_gate_is_a_latent(option: str) -> None:
    text = f"""
object Row : FinSet 3
program p : Row -> Row
    sample g <- Beta(1.0, 1.0)
    observe y[i : Row] <- ZeroInflatedPoisson(g, 1.5) [{option}]
    return g
"""
    data = {"y": torch.tensor([0, 2, 1]), **({"c": torch.tensor([1, 1, 0])} if "c" in option[-2:] else {})}
    several = ran(text, {"g": doubles(0.2, 0.6)}, **data).log_joint()
    alone = [ran(text, {"g": doubles(each)}, **data).log_joint() for each in (0.2, 0.6)]
    torch.testing.assert_close(several, torch.cat(alone))


def test_data_in_double_precision_stand_beside_numbers_in_a_matrix() -> None:
    text = """
object Row : FinSet 2
program p : Row -> Row
    observe y : Row <- HalfNormal(1.0)
    sample v <- MultivariateNormal([0.0, 0.0], [[1.0, 0.0], [0.5, y[0]]])
    return v
"""
    potential = potential_of(loads(text).morphism, None, {"y": doubles(0.7, 1.0)})
    value, _ = potential.value_and_grad(doubles(0.3, -0.2).unsqueeze(0))
    law = stats.multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 0.25 + 0.49]])
    wanted = law.logpdf([0.3, -0.2]) + stats.halfnorm.logpdf([0.7, 1.0]).sum()
    assert float(value) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    "block",
    [
        "marginalize z[i : Row] : State <- Categorical(w)\n",
        "marginalize z[i : Row] : State <- Categorical(P[z[i - 1]]) from Categorical(w)\n",
    ],
)
def test_what_a_block_draws_is_not_censored(block: str) -> None:
    text = f"""
object Row : FinSet 3
object State : FinSet 2
program p : Row -> Row
    data upper : Row
    sample w <- Dirichlet(1.0) [over=State]
    sample P[s : State] <- Dirichlet(1.0) [over=State]
    {block}        observe y[i : Row] <- Normal(z[i], 1.0) [interval=upper]
    return w
"""
    torch.manual_seed(1)
    run = loads(text).morphism.run(None, condition({"upper": torch.full((3,), -50.0)}), by_rows(2))
    assert bool((run.sites["y"].value > -50.0).all())  # pyright: ignore
    assert bool(run.log_joint().isfinite().all())


def test_two_groups_of_one_program_are_drawn() -> None:
    text = """
object Time : FinSet 4
program p : Time -> Time
    sample s <- HalfNormal(1.0)
    let r[t : Time] = 0.3 * r[t - 1] + y[t - 1]^2 from s
    observe y[t : Time] <- Normal(0.0, sqrt(r[t]))
    let q[t : Time] = 0.3 * q[t - 1] + x[t - 1]^2 from r[1]
    observe x[t : Time] <- Normal(y[t], sqrt(q[t]))
    return s
"""
    torch.manual_seed(1)
    run = loads(text).morphism.run(None, by_rows(2))
    drawn = {name: run.sites[name].value for name in ("s", "y", "x")}
    assert drawn["x"].shape == drawn["y"].shape == (2, 4)  # pyright: ignore
    data = {name: drawn[name][0] for name in ("y", "x")}  # pyright: ignore
    scored = ran(text, {"s": drawn["s"][:1]}, **data).log_joint()  # pyright: ignore
    torch.testing.assert_close(scored, run.log_joint()[:1])


def test_one_concentration_for_each_place_sizes_no_simplex() -> None:
    text = """
object Row : FinSet 3
object Topic : FinSet 2
program p : Row -> Row
    data x : Row -> Real 1 [low=0.0]
    sample v[i : Row] <- Dirichlet(x[i]) [over=Topic]
    return v
"""
    assert not check(text)
    v = doubles(0.2, 0.8, 0.5, 0.5, 0.9, 0.1).reshape(3, 2)
    x = doubles(0.5, 1.0, 2.0)
    wanted = sum(stats.dirichlet([float(a)] * 2).logpdf(each.numpy()) for a, each in zip(x, v, strict=True))
    assert float(ran(text, {"v": v.unsqueeze(0)}, x=x).log_joint()) == pytest.approx(wanted, rel=1e-12)


def test_a_condition_elsewhere_says_nothing_of_what_a_series_reads() -> None:
    text = """
object Time : FinSet 4
object Row : FinSet 3
program p : Time -> Time
    data x, g : Row
    sample a <- Normal(0.0, 1.0)
    observe y[t : Time] <- Normal(a * y[t - 1] + sum(x[i] for i : Row if g[i] > 0.0), 1.0) [missing=drop]
    return a
"""
    assert not check(text)


def test_indices_over_the_same_sets_in_another_order_meet_by_name() -> None:
    text = """
object Row : FinSet 2
object Group : FinSet 2
program p : Row -> Row
    data x : Group * Group
    data g : Group * Row -> Group
    data h : Row * Group -> Group
    sample a <- Normal(0.0, 1.0)
    let u : Row * Group = x[g, h]
    return u
"""
    x, g, h = torch.arange(4.0).double().reshape(2, 2), torch.tensor([[0, 1], [1, 1]]), torch.tensor([[0, 1], [0, 0]])
    made = ran(text, {"a": doubles(0.3)}, x=x, g=g, h=h).output
    wanted = [[[float(x[g[j, i], h[i, j]]) for j in range(2)] for i in range(2)]]
    assert made.tolist() == wanted  # pyright: ignore


def test_indices_over_two_sets_do_not_meet() -> None:
    text = """
object Row : FinSet 2
object Group : FinSet 2
program p : Row -> Row
    data x : Group * Group
    data g : Row -> Group
    data h : Group -> Group
    sample a <- Normal(0.0, 1.0)
    let u = x[g, h]
    return u
"""
    assert [found.code.name for found in check(text)] == ["axes-mismatch"]


def test_rows_look_their_group_up_in_a_vector_over_as_many_groups() -> None:
    text = """
object Row : FinSet 4
object Time : FinSet 4
program p : Row -> Row
    data g : Row -> Time
    sample v : Time <- GaussianRandomWalk(scale=0.5)
    observe y : Row <- Normal(v, 0.5) [via=g]
    return v
"""
    v, y = doubles(0.1, -0.4, 0.9, 2.0), doubles(0.3, 0.2, -1.0, 0.7)
    run = ran(text, {"v": v}, g=torch.tensor([2, 1, 1, 3]), y=y)
    wanted = stats.norm(v[[2, 1, 1, 3]], 0.5).logpdf(y)
    torch.testing.assert_close(run.sites["y"].pointwise, torch.from_numpy(wanted).unsqueeze(0), rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_product_of_a_table_of_matrices_and_a_vector_of_each_row(rows: int) -> None:
    text = """
object State : FinSet 2
object Row : FinSet 2
object Time : FinSet 3
program p : Row -> Row
    data m : State * Row * Time
    sample v : Time <- Normal(0.0, 1.0)
    observe y : State * Row <- Normal(matmul(m, v), 0.5)
    return v
"""
    rng = torch.Generator().manual_seed(1)
    m, y, v = (torch.randn(*shape, generator=rng, dtype=torch.float64) for shape in ((2, 2, 3), (2, 2), (rows, 3)))
    run = loads(text).morphism.run(None, condition({"m": m, "y": y}), substitute({"v": v}), by_rows(rows), pointwise)
    wanted = torch.stack([torch.distributions.Normal(m @ one, 0.5).log_prob(y) for one in v])
    torch.testing.assert_close(run.sites["y"].pointwise, wanted, rtol=1e-12, atol=0.0)


def test_a_state_that_rules_an_outcome_out_leaves_the_others() -> None:
    text = """
object Group : FinSet 3
object Time : FinSet 4
program p : Group -> Group
    data n : Group -> Nat
    data r : Group * Time
    sample a <- Normal(0.0, 1.0)
    let u[i : Group] = logsumexp(r[i, t] + a for t : Time if t < n[i])
    marginalize z[t : Time] : Group <- Categorical(logits=[0.0, 0.0, 0.0])
        observe y[t : Time] <- Bernoulli(logits=u[z[t]])
    return u
"""
    y, n, r = torch.tensor([1, 0, 1, 0]), torch.tensor([0, 0, 4]), torch.zeros(3, 4, dtype=torch.float64)
    run = ran(text, {"a": doubles(0.3)}, n=n, r=r, y=y)
    p = 1.0 / (1.0 + math.exp(-0.3 - math.log(4.0)))
    wanted = 2.0 * math.log(p / 3.0) + 2.0 * math.log((2.0 + 1.0 - p) / 3.0) + stats.norm.logpdf(0.3)
    assert float(run.log_joint()) == pytest.approx(wanted, rel=1e-12)
