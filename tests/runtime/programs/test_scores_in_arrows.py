"""What programs score that stand in arrows, against densities written out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from qvr_core.dependence import dependence_graph
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, AutoNormalGuide, NUTSKernel
from qvr_core.inference.machine.density import text_of
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.inference.objectives import weigh
from qvr_core.inference.row_terms import adding_up
from qvr_core.runtime.programs.handlers import condition, replay, scale, substitute
from qvr_core.semantics.types.counted import counted_by, in_file
from tests.inference.machine.interpreted import interpreted

DECLARED = """
object X : Real 1
program step(z) : X -> X
    sample e <- Normal(0.8 * z, 0.5)
    score k = -0.7 * (e - 0.3 * z) ^ 2
    return e
program cell(a, h) : X * X -> X
    sample e <- Normal(0.5 * a + 0.8 * h, 0.5)
    score k = -0.7 * (e - a) ^ 2
    return e
program two(z) : X -> X
    sample w <- step(z)
    sample e <- Normal(w, 0.5)
    score k = -0.2 * e ^ 2
    return e
"""
Made = tuple[Tensor, dict[str, Tensor]]
"""A value (B,), and what is scored on the way by name, (B,) or (B, n)."""


def step(z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    e = 0.8 * z + 0.5 * u
    return e, -0.7 * (e - 0.3 * z) ** 2


def chain(x: Tensor, u: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    scores: list[Tensor] = []
    for each in u:
        x, k = step(x, each)
        scores.append(k)
    return x, scores


def one(x: Tensor, u: list[Tensor]) -> Made:
    value, (k,) = chain(x, u)
    return value, {"z.k": k}


def apart(x: Tensor, u: list[Tensor]) -> Made:
    value, (first, second) = chain(x, u)
    return value, {"z.0.k": first, "z.1.k": second}


def along(x: Tensor, u: list[Tensor]) -> Made:
    value, scores = chain(x, u)
    return value, {"z.k": torch.stack(scores, -1)}


def pairs(x: Tensor, u: list[Tensor]) -> Made:
    value, scores = chain(x, u)
    return value, {"z.0.k": torch.stack(scores[::2], -1), "z.1.k": torch.stack(scores[1::2], -1)}


def branches(x: Tensor, u: list[Tensor]) -> Made:
    (left, first), (right, second) = step(x, u[0]), step(x, u[1])
    return torch.stack([left, right], -1), {"z.k": torch.stack([first, second], -1)}


def inner(x: Tensor, u: list[Tensor]) -> Made:
    w, first = step(x, u[0])
    e = w + 0.5 * u[1]
    return e, {"z.w.k": first, "z.k": -0.2 * e**2}


ARROWS: dict[str, tuple[int, Callable[[Tensor, list[Tensor]], Made]]] = {
    "step": (1, one),
    "step >> step": (2, apart),
    "(step >> step).freeze": (2, apart),
    "stack(step, 3)": (3, along),
    "repeat(step, 3)": (3, along),
    "stack(step >> step, 2)": (4, pairs),
    "fan(step, step)": (2, branches),
    "two": (2, inner),
}
"""Arrows from X with the number of their draws; each does by hand what the arrow says."""


def program(arrow: str, *, last: str = "observe y : X <- Normal(z, 0.7)") -> str:
    return (
        f"{DECLARED}let f = {arrow}\nprogram m(x) : X -> X\n    sample z <- f(x)\n"
        f"    {last.replace('z', 'z[0] - z[1]' if arrow.startswith('fan') else 'z')}\n    return y\nexport m\n"
    )


def normal(value: Tensor, mean: Tensor | float, sd: float) -> Tensor:
    return -0.5 * ((value - mean) / sd) ** 2 - math.log(sd) - 0.5 * math.log(2 * math.pi)


def total(scores: dict[str, Tensor]) -> Tensor:
    return sum((k.reshape(len(k), -1).sum(-1) for k in scores.values()), torch.zeros(()))


@pytest.fixture(autouse=True)
def in_double() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(3)
    yield
    torch.set_default_dtype(before)


@pytest.mark.parametrize("arrow", ARROWS)
def test_each_score_is_a_site_of_the_whole(arrow: str) -> None:
    draws, by_hand = ARROWS[arrow]
    model = loads(program(arrow)).morphism
    x, y = torch.randn(5, 1), torch.randn(5, 1)
    run = model.execute(x, condition({"y": y}))
    u = [each.reshape(5) for each in run.sites["z"].noise.values()]
    assert len(u) == draws
    value, scores = by_hand(x[:, 0], u)
    torch.testing.assert_close(run.sites["z"].value.reshape(value.shape), value, rtol=1e-12, atol=1e-12)
    assert (
        {name for name, site in run.sites.items() if site.kind == "score"}
        == set(scores)
        == {n for n, word in model.terms.items() if word == "score"}
    )
    for name, score in scores.items():
        site = run.sites[name]
        assert site.observed and site.value.reshape(score.shape).equal(site.value.squeeze(1))
        torch.testing.assert_close(site.value.squeeze(1), score, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(site.log_prob, score.reshape(5, -1).sum(-1), rtol=1e-9, atol=1e-9)
    mean = value if value.dim() == 1 else value[:, 0] - value[:, 1]
    # the value's density given the other draws: a Normal of sd 0.5 for each last draw
    last = u[-1:] if value.dim() == 1 else u
    own = sum(normal(each, 0.0, 1.0) - math.log(0.5) for each in last)
    wanted = own + total(scores) + normal(y[:, 0], mean, 0.7)
    torch.testing.assert_close(run.log_joint(), wanted, rtol=1e-9, atol=1e-9)
    # the same, where the value is given
    given = {path: noise for path, noise in run.sites["z"].noise.items()}
    again = model.execute(x, condition({"y": y}), substitute({"z": run.sites["z"].value}), replay({"z": given}))
    torch.testing.assert_close(again.log_joint(), wanted, rtol=1e-9, atol=1e-9)
    assert {name for name, site in again.sites.items() if site.kind == "score"} == set(scores)


def cells(x: Tensor, u: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The states (B, L) of a scan of `cell`, and what each step scores."""
    state, states, scores = torch.zeros(len(x)), [], []
    for item, each in zip(x.unbind(1), u, strict=True):
        state = 0.5 * item + 0.8 * state + 0.5 * each
        states.append(state)
        scores.append(-0.7 * (state - item) ** 2)
    return torch.stack(states, 1), torch.stack(scores, 1)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("emit", [False, True])
def test_a_scan_scores_each_step_in_the_order_of_the_positions(backward: bool, emit: bool) -> None:
    options = ", emit=all" * emit + ", direction=backward" * backward
    text = f"{DECLARED}let f = scan(cell{options})\nprogram m(x) : Seq X -> {'Seq ' * emit}X\n    sample z <- f(x)\n"
    model = loads(f"{text}    return z\nexport m\n").morphism
    x = torch.randn(4, 6, 1)
    run = model.execute(x)
    noise = dict(run.sites["z"].noise)
    u = noise["e"] if emit else torch.cat([noise["e"], noise["e@last"].unsqueeze(1)], 1)
    read = x[..., 0].flip(1) if backward else x[..., 0]
    states, scores = cells(read, list(u[..., 0].unbind(1)))
    states, scores = (each.flip(1) if backward else each for each in (states, scores))
    z = run.sites["z"].value[..., 0]
    torch.testing.assert_close(z, states if emit else states[:, 0 if backward else -1], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(run.sites["z.k"].value[:, 0], scores, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(run.sites["z.k"].log_prob, scores.sum(1), rtol=1e-9, atol=1e-9)
    again = model.execute(x, substitute({"z": run.sites["z"].value}), replay({"z": noise}))
    torch.testing.assert_close(again.sites["z.k"].value, run.sites["z.k"].value, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(again.log_joint(), run.log_joint(), rtol=1e-9, atol=1e-9)


def test_positions_and_elements_of_a_plate_stand_behind_the_rows() -> None:
    text = f"{DECLARED}program m(x) : Seq X -> Seq X\n    sample z <- step(x)\n    return z\n"
    run = loads(text).morphism.execute(x := torch.randn(3, 4, 1))
    e, k = step(x[..., 0], run.sites["z"].noise["e"][..., 0])
    torch.testing.assert_close(run.sites["z"].value[..., 0], e)
    torch.testing.assert_close(run.sites["z.k"].value[..., 0], k)
    torch.testing.assert_close(run.sites["z.k"].log_prob, k.sum(1))
    plated = (
        f"object Row : FinSet 4\n{DECLARED}program m : Row -> Row\n    data x : Row\n"
        "    sample z[i : Row] <- step(x[i])\n    return z\n"
    )
    run = loads(plated).morphism.execute(None, condition({"x": x[0, :, 0]}))
    e, k = step(x[0, :, 0], run.sites["z"].noise["e"].reshape(4))
    torch.testing.assert_close(run.sites["z"].value.reshape(4), e)
    torch.testing.assert_close(run.sites["z.k"].value.reshape(4), k)
    torch.testing.assert_close(run.sites["z.k"].log_prob, k.sum().reshape(1))


def test_an_observed_arrow_scores_too() -> None:
    text = f"{DECLARED}program m(x) : X -> X\n    observe y <- step(x)\n    return y\n"
    model = loads(text).morphism
    x, y = torch.randn(5, 1), torch.randn(5, 1)
    wanted = normal(y, 0.8 * x, 0.5) - 0.7 * (y - 0.3 * x) ** 2
    torch.testing.assert_close(model.log_joint(x, {"y": y}), wanted[:, 0], rtol=1e-9, atol=1e-9)


LATENT = "program m : X -> X\n    sample a <- Normal(0.0, 1.0)\n    sample z <- f(a)\n    observe y <- Normal(z, 0.7)\n"


@pytest.mark.parametrize("arrow", [name for name in ARROWS if not name.startswith("fan")])
def test_a_sampler_moves_along_the_scored_density(arrow: str) -> None:
    draws, by_hand = ARROWS[arrow]
    model = loads(f"{DECLARED}let f = {arrow}\n{LATENT}    return a\nexport m\n").morphism
    potential = potential_of(model, None, {"y": torch.tensor([0.6])})
    assert potential.width == draws + 1
    order = {(b.coordinate.site, b.coordinate.path): slice(b.start, b.stop) for b in potential.blocks}
    names = list(model.execute(None).sites["z"].noise)

    def density(q: Tensor) -> Tensor:
        a = q[:, order["a", ""]][:, 0]
        u = [q[:, order["z", name]][:, 0] for name in names]
        value, scores = by_hand(a, u)
        prior = normal(a, 0.0, 1.0) + sum(normal(each, 0.0, 1.0) for each in u)
        return prior + total(scores) + normal(torch.tensor(0.6), value, 0.7)

    machine = interpreted(text_of(potential)[0], potential.width)
    for _ in range(4):
        q = torch.randn(1, potential.width)
        value, gradient = potential.value_and_grad(q)
        assert float(value) == pytest.approx(float(density(q)), rel=1e-9)
        h = 1e-5 * torch.eye(potential.width)
        slope = torch.stack([(density(q + each) - density(q - each))[0] / 2e-5 for each in h])
        torch.testing.assert_close(gradient[0], slope, rtol=1e-6, atol=1e-7)
        compiled, its_slope = machine(q[0].numpy())
        assert compiled == pytest.approx(float(value), rel=1e-9)
        np.testing.assert_allclose(its_slope, gradient[0].numpy(), rtol=1e-9, atol=1e-9)


CONJUGATE = """
object X : Real 1
program step(z) : X -> X
    sample e <- Normal(z, 0.5)
    score k = -2.0 * (e - 1.0) ^ 2
    return e
program m : X -> X
    sample a <- Normal(0.0, 1.0)
    sample z <- step(a)
    observe y <- Normal(z, 0.7)
    return a
export m
"""


def posterior() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Mean and covariance of (a, z) given y = −0.5; the score is a Normal at 1 of precision 4."""
    precision = np.array([[1 + 1 / 0.25, -1 / 0.25], [-1 / 0.25, 1 / 0.25 + 4.0 + 1 / 0.49]])
    covariance = np.linalg.inv(precision)
    return covariance @ np.array([0.0, 4.0 * 1.0 - 0.5 / 0.49]), covariance


def test_the_bound_of_a_fit_counts_the_score() -> None:
    data = {"y": torch.tensor([-0.5])}
    bare = CONJUGATE.replace("    score k = -2.0 * (e - 1.0) ^ 2\n", "")
    totals: list[Tensor] = []
    for text in (CONJUGATE, bare):
        model = loads(text).morphism
        torch.manual_seed(5)
        run, weight = weigh(model, AutoNormalGuide(model), None, data, 200)
        totals.append(weight)
        if "z.k" in run.sites:
            z = run.sites["z"].value.reshape(200)
    torch.testing.assert_close(totals[0] - totals[1], -2.0 * (z - 1.0) ** 2, rtol=1e-9, atol=1e-9)


def test_chains_find_the_posterior_that_the_score_leads_to() -> None:
    chains = MCMC(NUTSKernel(), 300, 2000, 2, seed=1)
    result = chains.run(loads(CONJUGATE).morphism, None, {"y": torch.tensor([-0.5])})
    assert chains.choice is not None and chains.choice.engine == "compiled"
    mean, covariance = posterior()
    drawn = np.asarray(result.samples["a"], dtype=float).reshape(-1)
    assert drawn.mean() == pytest.approx(mean[0], abs=0.06)
    assert drawn.std() == pytest.approx(math.sqrt(covariance[0, 0]), rel=0.06)


def test_names_are_those_that_the_checker_says() -> None:
    for arrow in ARROWS:
        model = loads(program(arrow)).morphism
        found = counted_by(model.program, in_file(model.file_model))
        assert tuple(one.name for one in found) == tuple(model.terms)


ROWS = """
object Row : FinSet {rows}
object X : Real 1
program step(z) : X -> X
    sample e <- Normal(0.8 * z, 0.5)
    score k = -0.7 * (e - 0.3 * z) ^ 2
    return e
let twice = stack(step, 2)
program m : Row -> Row
    data x : Row
    sample a <- Normal(0.0, 1.0)
    sample w <- twice(a)
    observe y[i : Row] <- step(x[i] + w)
    return a
export m
"""


def test_a_part_of_the_rows_stands_for_what_is_scored_of_rows_alone() -> None:
    whole, half = (loads(ROWS.format(rows=rows)).morphism for rows in (6, 3))
    data = {"x": torch.randn(6), "y": torch.randn(6)}
    parts = [(half, {name: value[at::2] for name, value in data.items()}) for at in (0, 1)]
    assert adding_up((whole, data), parts) == {"y", "y.k"}
    values = {"a": torch.randn(1), "w": torch.randn(1, 1)}
    known = substitute(values), replay({"w": {"e": torch.randn(1, 1)}})
    found = [
        model.execute(None, condition(given), *known, scale({"y": 2.0, "y.k": 2.0} if part else {}))
        for part, (model, given) in enumerate([(whole, data), *parts])
    ]
    w, k = values["w"][0, 0], found[0].sites["y.k"]
    torch.testing.assert_close(k.log_prob[0], (-0.7 * (data["y"] - 0.3 * (data["x"] + w)) ** 2).sum())
    # the mean of what two halves say is the whole
    halves = (found[1].log_joint() + found[2].log_joint()) / 2
    torch.testing.assert_close(halves, found[0].log_joint(), rtol=1e-9, atol=1e-9)


def test_a_score_ties_what_its_arrow_reads_together() -> None:
    text = "program m : X -> X\n    sample a <- Normal(0.0, 1.0)\n    sample b <- Normal(0.0, 1.0)\n"
    model = loads(f"{DECLARED}{text}    sample z <- two(a + b)\n    return z\nexport m\n").morphism
    graph = dependence_graph(model.program, model.file_model)
    assert {name for name in graph if graph.nodes[name]["kind"] == "score"} == {"z.k", "z.w.k"}
    assert set(graph.predecessors("z.w.k")) == {"a", "b", "z"}
