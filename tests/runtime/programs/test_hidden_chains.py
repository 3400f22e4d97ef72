"""Hidden chains against the sum over all their paths, written out: 3 states, 5 times, 2 subjects."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from qvr_core import dsl
from qvr_core.inference import Predictive
from qvr_core.runtime.programs.handlers import by_rows, condition
from qvr_core.runtime.values.errors import RuntimeProblem

SOURCE = """
object Time : FinSet 5
object Subject : FinSet 2
object State : FinSet 3
object Row : FinSet 8

program table : Time -> Real 1
    sample P : State <- Dirichlet([1.0, 1.0, 1.0])
    sample p0 <- Dirichlet([1.0, 1.0, 1.0])
    sample mu[s : State] <- Normal(0.0, 2.0)
    marginalize z[g : Subject, t : Time] : State <- Categorical(P[z[g, t - 1]]) from Categorical(p0)
        observe y[g : Subject, t : Time] <- Normal(mu[z[g, t]], 1.0)
    return mu

program long : Row -> Real 1
    data subject : Row -> Subject
    data time : Row -> Time
    sample P : State <- Dirichlet([1.0, 1.0, 1.0])
    sample p0 <- Dirichlet([1.0, 1.0, 1.0])
    sample mu[s : State] <- Normal(0.0, 2.0)
    marginalize z[g : Subject, t : Time] : State <- Categorical(P[z[g, t - 1]]) from Categorical(p0)
        observe y[i : Row] <- Normal(mu[z[subject[i], time[i]]], 1.0)
        observe w[i : Row] <- Bernoulli(logits=mu[z[subject[i], time[i]]])
    return mu

program mixture : Row -> Real 1
    sample w <- Dirichlet([1.0, 1.0, 1.0])
    sample mu[s : State] <- Normal(0.0, 2.0)
    marginalize z[i : Row] : State <- Categorical(w)
        observe y[i : Row] <- Normal(mu[z[i]], 1.0)
    return mu

object Reading : FinSet 30000
object Grade : FinSet 4

program votes : Reading -> Real 1
    data reader : Reading -> Subject
    sample w <- Dirichlet([1.0, 1.0, 1.0])
    sample says[r : Subject, s : State] <- Dirichlet([1.0, 1.0, 1.0, 1.0]) [over=Grade]
    marginalize z[i : Reading] : State <- Categorical(w)
        observe grade[i : Reading] <- Categorical(says[reader[i], z[i]])
    return w

program jumps : Time -> Real 1
    sample P : State <- Dirichlet([1.0, 1.0, 1.0])
    sample p0 <- Dirichlet([1.0, 1.0, 1.0])
    sample mu[s : State, r : State] <- Normal(0.0, 2.0)
    marginalize z[t : Time] : State <- Categorical(P[z[t - 1]]) from Categorical(p0)
        observe y[t : Time] <- Normal(mu[z[t - 1], z[t]] + 0.5 * y[t - 1], 1.0)
    return mu

program stuck : Time -> Real 1
    sample a <- Beta(1.0, 1.0)
    sample mu[s : State] <- Normal(0.0, 2.0)
    let P = [[1.0, 0.0, 0.0], [a, 1.0 - a, 0.0], [0.0, 1.0 - a, a]]
    marginalize z[t : Time] : State <- Categorical(P[z[t - 1]]) from Categorical([0.0, 0.0, 1.0])
        observe y[t : Time] <- Normal(mu[z[t]], 1.0)
    return mu

object Flip : {off, on}

program ragged : Time -> Real 1
    data n : Subject -> Nat
    data few : Nat
    data odds : Subject * Time -> Real 1
    sample mu <- Normal(0.0, 1.0)
    let a[g : Subject, t : Time] = log(odds[g, t])
    let p0 = softmax([0.2, 0.5])
    marginalize z[g : Subject, t : Time] : Flip <- Categorical(softmax([z[g, t - 1], a[g, t]])) from Categorical(p0) [
        lengths=n]
        observe y[g : Subject, t : Time] <- Normal(mu * z[g, t], 1.0) [lengths=n]
    marginalize k[t : Time] : Flip <- Categorical(softmax([0.0, a[1, t]])) [lengths=few]
        observe x[t : Time] <- Normal(mu * k[t], 1.0) [lengths=few]
    return mu
"""


def _paths(P: Tensor, p0: Tensor, seen: Callable[[tuple[int, ...]], Any], times: int = 5) -> Tensor:
    """log of the sum over all paths."""
    found = [
        p0[path[0]].log() + sum(P[path[t - 1], path[t]].log() for t in range(1, times)) + seen(path)
        for path in itertools.product(range(3), repeat=times)
    ]
    return torch.logsumexp(torch.stack(found), 0)


def _run(name: str, data: dict[str, Tensor]) -> Any:
    torch.manual_seed(0)
    return dsl.loads(SOURCE).programs[name].execute(None, condition(data))


def _at(run: Any, *names: str) -> list[Tensor]:
    return [run.sites[name].value[0] for name in names]


def test_a_table_of_chains() -> None:
    y = torch.randn(2, 5)
    run = _run("table", {"y": y})
    P, p0, mu = _at(run, "P", "p0", "mu")
    wanted = sum(
        _paths(P, p0, lambda path, g=g: sum(Normal(mu[path[t]], 1.0).log_prob(y[g, t]) for t in range(5)))
        for g in range(2)
    )
    torch.testing.assert_close(run.sites["z"].log_prob[0], wanted)


def test_chains_of_unequal_length_in_a_long_table() -> None:
    subject, time = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]), torch.tensor([0, 1, 2, 0, 1, 2, 3, 4])
    y, w = torch.randn(8), torch.tensor([0, 1, 1, 0, 0, 1, 0, 1])
    run = _run("long", {"y": y, "w": w, "subject": subject, "time": time})
    P, p0, mu = _at(run, "P", "p0", "mu")

    def seen(path: tuple[int, ...], g: int) -> Any:
        rows = [i for i in range(8) if subject[i] == g]
        coin = torch.distributions.Bernoulli
        return sum(
            Normal(mu[path[int(time[i])]], 1.0).log_prob(y[i])
            + coin(logits=mu[path[int(time[i])]]).log_prob(w[i].float())
            for i in rows
        )

    wanted = sum(_paths(P, p0, lambda path, g=g: seen(path, g)) for g in range(2))
    torch.testing.assert_close(run.sites["z"].log_prob[0], wanted)


def test_a_mixture_element_by_element() -> None:
    y = torch.randn(8)
    run = _run("mixture", {"y": y})
    w, mu = _at(run, "w", "mu")
    wanted = torch.logsumexp(w.log() + Normal(mu, 1.0).log_prob(y[:, None]), 1).sum()
    torch.testing.assert_close(run.sites["z"].log_prob[0], wanted)


def test_what_is_observed_may_read_both_states_and_its_own_past() -> None:
    y = torch.randn(5)
    run = _run("jumps", {"y": y})
    P, p0, mu = _at(run, "P", "p0", "mu")
    wanted = _paths(
        P,
        p0,
        lambda path: sum(Normal(mu[path[t - 1], path[t]] + 0.5 * y[t - 1], 1.0).log_prob(y[t]) for t in range(1, 5)),
    )
    torch.testing.assert_close(run.sites["z"].log_prob[0], wanted)


def test_impossible_steps_have_no_nan_in_gradients() -> None:
    torch.manual_seed(0)
    y = torch.randn(5).double()
    model = dsl.loads(SOURCE).programs["stuck"]
    a = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    mu = torch.randn(1, 3, dtype=torch.float64, requires_grad=True)
    found = model.log_joint(None, {"a": a, "mu": mu, "y": y})
    one, zero = torch.ones_like(a[0]), torch.zeros_like(a[0])
    P = torch.stack([one, zero, zero, a[0], one - a[0], zero, zero, one - a[0], a[0]]).reshape(3, 3)
    p0 = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    prior = torch.distributions.Beta(1.0, 1.0).log_prob(a[0]) + Normal(0.0, 2.0).log_prob(mu).sum()
    wanted = prior + _paths(P, p0, lambda path: sum(Normal(mu[0, path[t]], 1.0).log_prob(y[t]) for t in range(5)))
    torch.testing.assert_close(found[0], wanted)
    assert all(bool(grad.isfinite().all()) for grad in torch.autograd.grad(found.sum(), (a, mu)))


@pytest.mark.parametrize("name", ["table", "mixture"])
def test_chains_and_what_is_seen_of_them_are_drawn(name: str) -> None:
    run = _run(name, {})
    shape = (1, 2, 5) if name == "table" else (1, 8)
    assert tuple(run.sites["y"].value.shape) == tuple(run.sites["z"].value.shape) == shape
    assert bool(run.sites["z"].log_prob.isfinite().all())


def test_votes_are_drawn_as_often_as_their_states_and_readers_say() -> None:
    reader = torch.arange(30000) % 2
    run = _run("votes", {"reader": reader})
    w, says = _at(run, "w", "says")
    grade = run.sites["grade"].value[0]
    for r in range(2):
        found = torch.bincount(grade[reader == r], minlength=4) / 15000
        torch.testing.assert_close(found.double(), (w @ says[r]).double(), atol=0.02, rtol=0.0)


def test_votes_are_drawn_for_many_draws_at_once() -> None:
    model = dsl.loads(SOURCE.replace("30000", "6")).programs["votes"]
    says = torch.eye(4)[torch.tensor([[0, 1, 2], [3, 1, 2]])].expand(5, 2, 3, 4)
    known = {"w": torch.eye(3)[torch.tensor([0, 1, 2, 0, 1])], "says": says, "reader": torch.arange(6) % 2}
    drawn = model.run(None, condition(known), by_rows(5)).sites["grade"].value
    wanted = torch.stack([torch.tensor([[0, 3], [1, 1], [2, 2]])[z].repeat(3) for z in (0, 1, 2, 0, 1)])
    torch.testing.assert_close(drawn, wanted)


def test_a_place_outside_of_the_chains_is_told() -> None:
    rows = torch.zeros(8, dtype=torch.long)
    with pytest.raises(RuntimeProblem, match="time"):
        _run("long", {"y": torch.randn(8), "w": rows, "subject": rows, "time": rows + 7})


# ---------------------------------------------------------------- the states, given the data


P0 = torch.tensor([0.2, 0.3, 0.5])
P = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
MU = torch.tensor([-1.0, 0.5, 2.0])


def test_smoothed_states_and_paths_are_those_of_all_paths() -> None:
    model = dsl.loads(SOURCE).programs["table"]
    y = torch.randn(2, 5, generator=torch.Generator().manual_seed(3))
    count = 20_000
    latents = {"P": P.expand(count, 3, 3), "p0": P0.expand(count, 3), "mu": MU.expand(count, 3)}
    found, drawn = Predictive(model, posterior_samples=latents).states(None, {"y": y})
    for subject in range(2):
        paths = list(itertools.product(range(3), repeat=5))
        weights = torch.stack(
            [
                P0[path[0]].log()
                + sum(P[path[t - 1], path[t]].log() for t in range(1, 5))
                + sum(Normal(MU[path[t]], 1.0).log_prob(y[subject, t]) for t in range(5))
                for path in paths
            ]
        ).softmax(0)
        states = torch.tensor(paths)
        for state in range(3):
            wanted = (weights[:, None] * (states == state)).sum(0)
            torch.testing.assert_close(
                found["z"][0, subject, :, state], wanted, rtol=1e-4, atol=1e-6, check_dtype=False
            )
        # whole paths, not only each place: five standard errors of each path's share
        numbers = (drawn["z"][:, subject] * torch.tensor([81, 27, 9, 3, 1])).sum(-1)
        share = torch.bincount(numbers, minlength=243) / count
        error = (weights * (1 - weights) / count).sqrt()
        assert bool(((share - weights).abs() < 5 * error + 1e-3).all())


@pytest.mark.parametrize("text", ["z[i : Row] : State <- Categorical(w)", "z : Row <- Categorical(w)"])
def test_responsibilities_of_a_mixture(text: str) -> None:
    observed = "y[i : Row] <- Normal(mu[z[i]], 1.0)" if "[i" in text else "y : Row <- Normal(mu[z], 1.0)"
    source = f"""
object Row : FinSet 8
object State : FinSet 3
program mixture : Row -> Row
    sample w <- Dirichlet(1.0) [over=State]
    sample mu : State <- Normal(0.0, 2.0)
    marginalize {text}
        observe {observed}
    return mu
"""
    model = dsl.loads(source).morphism
    y = torch.randn(8, generator=torch.Generator().manual_seed(4))
    samples = {"w": P0.expand(5_000, 3), "mu": MU.expand(5_000, 3)}
    found, drawn = Predictive(model, posterior_samples=samples).states(None, {"y": y})
    wanted = (P0.log() + Normal(MU, 1.0).log_prob(y[:, None])).softmax(-1)
    torch.testing.assert_close(found["z"], wanted.expand(5_000, 8, 3), rtol=1e-4, atol=1e-6, check_dtype=False)
    share = torch.nn.functional.one_hot(drawn["z"], 3).float().mean(0)
    torch.testing.assert_close(share, wanted, rtol=0.0, atol=0.05, check_dtype=False)


def test_arguments_without_a_number_count_only_where_a_state_exists() -> None:
    nan, inf = math.nan, math.inf
    n, odds = torch.tensor([3, 0]), torch.tensor([[2.0, 3.0, 0.5, -1.0, inf], [2.0, 1.5, -1.0, inf, inf]])
    y = torch.tensor([[0.3, -0.2, 1.1, nan, nan], [nan] * 5])
    x = torch.tensor([0.4, -0.6, nan, nan, nan])
    run = _run("ragged", {"n": n, "few": torch.tensor(2), "odds": odds, "y": y, "x": x})
    (mu,) = _at(run, "mu")

    def path(states: tuple[int, ...]) -> Tensor:
        found = torch.log_softmax(torch.tensor([0.2, 0.5]), 0)[states[0]]
        for t in (1, 2):
            move = torch.stack([torch.tensor(float(states[t - 1])), odds[0, t].log()])
            found = found + torch.log_softmax(move, 0)[states[t]]
        return found + sum(Normal(mu * states[t], 1.0).log_prob(y[0, t]) for t in range(3))

    chains = torch.logsumexp(torch.stack([path(each) for each in itertools.product((0, 1), repeat=3)]), 0)
    torch.testing.assert_close(run.sites["z"].log_prob[0], chains)
    prior = torch.log_softmax(torch.stack([torch.zeros(2), odds[1, :2].log()], 1), 1)
    apart = torch.logsumexp(prior + Normal(mu * torch.tensor([0.0, 1.0]), 1.0).log_prob(x[:2, None]), 1).sum()
    torch.testing.assert_close(run.sites["k"].log_prob[0], apart)
