"""Pointwise log likelihood below hidden names with indices: sums over all paths of every prefix, written out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import Normal

from qvr_core import dsl
from qvr_core.inference import Predictive
from qvr_core.inference.axes import axes_of
from qvr_core.inference.pointwise import Given

SOURCE = """
object Time : FinSet 4
object Subject : {"ann", "bob"}
object State : FinSet 2
object Row : FinSet 5

program chain : Time -> Time
    sample P : State <- Dirichlet([1.0, 1.0])
    sample mu[s : State] <- Normal(0.0, 2.0)
    marginalize z[t : Time] : State <- Categorical(P[z[t - 1]]) from Categorical([0.3, 0.7])
        observe y[t : Time] <- Normal(mu[z[t]], 1.0)
    return mu

program past : Time -> Time
    sample P : State <- Dirichlet([1.0, 1.0])
    sample mu[s : State] <- Normal(0.0, 2.0)
    marginalize z[t : Time] : State <- Categorical(P[z[t - 1]]) from Categorical([0.3, 0.7])
        observe y[t : Time] <- Normal(mu[z[t]] + 0.5 * y[t - 1], 1.0)
    return mu

program long : Row -> Row
    data subject : Row -> Subject
    data time : Row -> Time
    sample P : State <- Dirichlet([1.0, 1.0])
    sample mu[s : State] <- Normal(0.0, 2.0)
    marginalize z[g : Subject, t : Time] : State <- Categorical(P[z[g, t - 1]]) from Categorical([0.3, 0.7])
        observe y[i : Row] <- Normal(mu[z[subject[i], time[i]]], 1.0)
    return mu

program raters : Row -> Row
    data subject : Row -> Subject
    sample mu[s : State] <- Normal(0.0, 2.0)
    marginalize truth[g : Subject] : State <- Categorical([0.3, 0.7])
        observe y[i : Row] <- Normal(mu[truth[subject[i]]], 1.0)
    return mu
"""
FIRST = torch.tensor([0.3, 0.7])


def latents() -> dict[str, Tensor]:
    return {"P": torch.rand(3, 2, 2).softmax(-1), "mu": torch.randn(3, 2)}


def likelihood(name: str, samples: dict[str, Tensor], **data: Tensor) -> dict[str, Tensor]:
    model = dsl.loads(SOURCE).programs[name]
    return Given(model, None, data).log_likelihood(samples)


def prefix(P: Tensor, seen: Sequence[Tensor]) -> Tensor:
    """log p of the first elements of a chain, of which `seen[t]` is log p(y_t | state)."""
    paths = itertools.product(range(2), repeat=len(seen))
    terms = [
        FIRST[path[0]].log()
        + sum(P[a, b].log() for a, b in itertools.pairwise(path))
        + sum(one[state] for one, state in zip(seen, path, strict=True))
        for path in paths
    ]
    return torch.logsumexp(torch.stack([torch.as_tensor(term) for term in terms]), 0)


def added(P: Tensor, seen: Sequence[Tensor]) -> Tensor:
    """log p(y_t | y_<t) of each element."""
    totals = torch.stack([prefix(P, seen[: t + 1]) for t in range(len(seen))])
    return totals.diff(prepend=torch.zeros(1))


def test_a_chain_gives_each_element_given_those_before_it() -> None:
    y, given = torch.randn(4), latents()
    found = likelihood("chain", given, y=y)["y"]
    for draw in range(3):
        P, mu = given["P"][draw], given["mu"][draw]
        torch.testing.assert_close(found[draw], added(P, [Normal(mu, 1.0).log_prob(one) for one in y]))


def test_a_value_given_by_a_lag_has_none() -> None:
    y, given = torch.randn(4), latents()
    found = likelihood("past", given, y=y)["y"]
    assert bool(found[:, 0].isnan().all())
    P, mu = given["P"][0], given["mu"][0]
    later = [Normal(mu + 0.5 * y[t - 1], 1.0).log_prob(y[t]) for t in range(1, 4)]
    torch.testing.assert_close(found[0, 1:], added(P, [torch.zeros(2), *later])[1:])


def test_elements_of_a_long_table_keep_their_order() -> None:
    """Chains of unequal length, their rows in any order."""
    subject, time = torch.tensor([1, 0, 1, 0, 1]), torch.tensor([2, 0, 0, 1, 1])
    y, given = torch.randn(5), latents()
    found = likelihood("long", given, y=y, subject=subject, time=time)["y"]
    P, mu = given["P"][2], given["mu"][2]
    for rows in ([1, 3], [2, 4, 0]):
        wanted = added(P, [Normal(mu, 1.0).log_prob(y[i]) for i in rows])
        torch.testing.assert_close(found[2, rows], wanted)


def test_elements_that_share_a_place_have_one_number_there() -> None:
    """Nobody has read the first subject: no number."""
    subject, y, given = torch.tensor([1, 1, 1, 1, 1]), torch.randn(5), latents()
    found = likelihood("raters", {"mu": given["mu"]}, y=y, subject=subject)
    assert set(found) == {"truth"}
    wanted = torch.logsumexp(FIRST.log() + Normal(given["mu"][0], 1.0).log_prob(y[:, None]).sum(0), 0)
    torch.testing.assert_close(found["truth"][0, 1], wanted)
    assert bool(found["truth"][:, 0].isnan().all())
    (axis,) = axes_of(dsl.loads(SOURCE).programs["raters"])["truth"]
    assert (axis.name, axis.labels) == ("Subject", ("ann", "bob"))


def test_data_that_read_themselves_are_no_draws() -> None:
    """Their posterior predictive is left out, where it had been the data."""
    text = """
object Time : FinSet 6
object State : FinSet 2
program p : Time -> Time
    data y : Time
    sample P : State <- Dirichlet([1.0, 1.0])
    sample mu[s : State] <- Normal(0.0, 1.0)
    marginalize z[t : Time] : State <- Categorical(P[z[t - 1]]) from Categorical([0.5, 0.5])
        observe y[t : Time] <- Normal(mu[z[t]] + 0.5 * y[t - 1], 1.0)
        observe w[t : Time] <- Normal(mu[z[t]], 1.0)
    return mu
"""
    model = dsl.loads(text).morphism
    given = {"y": torch.zeros(6), "w": torch.zeros(6)}
    samples = {"P": torch.full((4, 2, 2), 0.5), "mu": torch.randn(4, 2)}
    drawn = Predictive(model, posterior_samples=samples)(None, given)
    assert "y" not in drawn
    assert drawn["w"].shape == (4, 6) and not bool((drawn["w"] == 0.0).any())
