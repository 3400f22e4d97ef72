"""What programs observe that stand in arrows, against densities written out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel, Predictive
from qvr_core.inference.machine.density import text_of
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.runtime.programs.handlers import condition, densities, replay, substitute
from qvr_core.runtime.values.errors import InputProblem, Unobserved
from tests.inference.machine.interpreted import interpreted


def cells(x: Tensor, u: list[Tensor]) -> Tensor:
    """The states (B, L) of a scan of `cell`."""
    state, states = torch.zeros(len(x)), []
    for item, each in zip(x.unbind(1), u, strict=True):
        state = 0.5 * item + 0.8 * state + 0.5 * each
        states.append(state)
    return torch.stack(states, 1)


def normal(value: Tensor, mean: Tensor | float, sd: float) -> Tensor:
    return -0.5 * ((value - mean) / sd) ** 2 - math.log(sd) - 0.5 * math.log(2 * math.pi)


@pytest.fixture(autouse=True)
def in_double() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(3)
    yield
    torch.set_default_dtype(before)


OBSERVING = """
object X : Real 1
program step(z) : X -> X
    sample e <- Normal(0.8 * z, 0.5)
    observe o <- Normal(1.2 * e, 0.6)
    return e
program cell(a, h) : X * X -> X
    sample e <- Normal(0.5 * a + 0.8 * h, 0.5)
    observe o <- Normal(1.2 * e, 0.6)
    return e
program two(z) : X -> X
    sample w <- step(z)
    sample e <- Normal(w, 0.5)
    return e
"""


def walked(x: Tensor, u: list[Tensor]) -> Tensor:
    """Where `step` takes x one after the other, (B, steps)."""
    found: list[Tensor] = []
    for each in u:
        x = 0.8 * x + 0.5 * each
        found.append(x)
    return torch.stack(found, -1)


SEEN: dict[str, tuple[str, Callable[[Tensor, list[Tensor]], Tensor]]] = {
    "step": ("z.o", walked),
    "stack(step, 3)": ("z.o", walked),
    "repeat(step, 3)": ("z.o", walked),
    "fan(step, step)": ("z.o", lambda x, u: torch.stack([0.8 * x + 0.5 * each for each in u], -1)),
    "two": ("z.w.o", lambda x, u: walked(x, u[:1])),
}
"""The observed site, and by hand where it is observed, (B, places)."""


@pytest.mark.parametrize("arrow", SEEN)
def test_data_are_given_by_the_bare_name_and_counted_once(arrow: str) -> None:
    name, by_hand = SEEN[arrow]
    codomain = "X * X" if arrow.startswith("fan") else "X"
    text = f"let f = {arrow}\nprogram m(x) : X -> {codomain}\n    sample z <- f(x)\n    return z\nexport m\n"
    model = loads(OBSERVING + text).morphism
    assert model.wanted_data == {"o"}
    x = torch.randn(5, 1)
    places = by_hand(x[:, 0], [torch.zeros(5)] * 3 if "3" in arrow else [torch.zeros(5)] * 2)
    o = torch.randn(5, *(places.shape[1:] if arrow not in ("step", "two") else ()))
    run = model.execute(x, condition({"o": o}))
    noise = run.sites["z"].noise
    assert all("o" not in path.split("/") for path in noise)
    where = by_hand(x[:, 0], [each.reshape(5) for each in noise.values()])
    wanted = normal(o.reshape(5, -1), 1.2 * where, 0.6)
    site = run.sites[name]
    assert site.observed and site.kind == "observe" and site.value.reshape(wanted.shape).equal(o.reshape(wanted.shape))
    torch.testing.assert_close(site.log_prob, wanted.sum(1), rtol=1e-9, atol=1e-9)
    rest = run.log_joint() - site.log_prob
    torch.testing.assert_close(rest, run.sites["z"].log_prob, rtol=1e-9, atol=1e-9)
    again = model.execute(x, condition({"o": o}), substitute({"z": run.sites["z"].value}), replay({"z": noise}))
    torch.testing.assert_close(again.log_joint(), run.log_joint(), rtol=1e-9, atol=1e-9)
    # where nothing is asked of the draws, what is observed counts all the same
    bare = model.execute(x, condition({"o": o}), densities("observed"), replay({"z": noise}))
    torch.testing.assert_close(bare.sites[name].log_prob, wanted.sum(1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", ["", ", emit=all", ", direction=backward"])
def test_a_scanned_program_observes_an_element_a_position(options: str) -> None:
    text = f"let f = scan(cell{options})\nprogram m(x) : Seq X -> {'Seq X' if 'all' in options else 'X'}\n"
    model = loads(f"{OBSERVING}{text}    sample z <- f(x)\n    return z\nexport m\n").morphism
    x, o = torch.randn(4, 6, 1), torch.randn(4, 6)
    run = model.execute(x, condition({"o": o}))
    noise = dict(run.sites["z"].noise)
    u = noise["e"] if "all" in options else torch.cat([noise["e"], noise["e@last"].unsqueeze(1)], 1)
    turned = (x.flip(1), o.flip(1)) if "backward" in options else (x, o)
    states = cells(turned[0][..., 0], list(u[..., 0].unbind(1)))
    wanted = normal(turned[1], 1.2 * states, 0.6).sum(1)
    torch.testing.assert_close(run.sites["z.o"].log_prob, wanted, rtol=1e-9, atol=1e-9)
    again = model.execute(x, condition({"o": o}), substitute({"z": run.sites["z"].value}), replay({"z": noise}))
    torch.testing.assert_close(again.log_joint(), run.log_joint(), rtol=1e-9, atol=1e-9)
    with pytest.raises(InputProblem, match=r"`o` is observed at 6 places, along a last axis; found shape \(3,\)"):
        model.execute(x, condition({"o": o[:, :3]}))


def test_elements_of_a_plate_observe_one_each() -> None:
    text = "program m : Row -> Row\n    data x : Row\n    sample z[i : Row] <- step(x[i])\n    return z\nexport m\n"
    model = loads(f"object Row : FinSet 4\n{OBSERVING}{text}").morphism
    x, o = torch.randn(4), torch.randn(4)
    run = model.execute(None, condition({"x": x, "o": o}))
    e = 0.8 * x + 0.5 * run.sites["z"].noise["e"].reshape(4)
    wanted = normal(o, 1.2 * e, 0.6).sum().reshape(1)
    torch.testing.assert_close(run.sites["z.o"].log_prob, wanted, rtol=1e-9, atol=1e-9)


WALK = f"""{OBSERVING}let walk = stack(step, 3)
program m : X -> X
    sample b <- Normal(0.0, 1.0)
    sample z <- walk(b)
    return b
export m
"""
TOLD = torch.tensor([0.5, -0.2, 1.0], dtype=torch.float64)


def walk_posterior() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Mean and covariance of b and the three steps given what is observed: a Gaussian chain."""
    precision, linear = np.zeros((4, 4)), np.zeros(4)
    precision[0, 0] = 1.0
    for at in range(1, 4):
        moved, seen = np.eye(4)[at] - 0.8 * np.eye(4)[at - 1], 1.2 * np.eye(4)[at]
        precision += np.outer(moved, moved) / 0.25 + np.outer(seen, seen) / 0.36
        linear += seen * float(TOLD[at - 1]) / 0.36
    covariance = np.linalg.inv(precision)
    return covariance @ linear, covariance


def test_a_sampler_sees_what_is_observed_inside() -> None:
    model = loads(WALK).morphism
    potential = potential_of(model, None, {"o": TOLD})
    assert potential.width == 4
    order = {b.coordinate.path or b.coordinate.site: b.start for b in potential.blocks}
    machine = interpreted(text_of(potential)[0], potential.width)

    def density(q: Tensor) -> Tensor:
        u = [q[:, order[name]] for name in ("e", "e#2", "e#3")]
        found = normal(q[:, order["b"]], 0.0, 1.0) + sum(normal(each, 0.0, 1.0) for each in u)
        return found + normal(TOLD, 1.2 * walked(q[:, order["b"]], u), 0.6).sum(1)

    for _ in range(3):
        q = torch.randn(1, 4)
        value, gradient = potential.value_and_grad(q)
        assert float(value) == pytest.approx(float(density(q)), rel=1e-9)
        slope = torch.stack([(density(q + h) - density(q - h))[0] / 2e-5 for h in 1e-5 * torch.eye(4)])
        torch.testing.assert_close(gradient[0], slope, rtol=1e-6, atol=1e-7)
        compiled, its_slope = machine(q[0].numpy())
        assert compiled == pytest.approx(float(value), rel=1e-9)
        np.testing.assert_allclose(its_slope, gradient[0].numpy(), rtol=1e-9, atol=1e-9)


def test_posterior_and_predictive_draws_of_what_is_observed_inside() -> None:
    model = loads(WALK).morphism
    result = MCMC(NUTSKernel(), 300, 2000, 2, seed=1).run(model, None, {"o": TOLD})
    mean, covariance = walk_posterior()
    drawn = np.asarray(result.samples["b"], dtype=float).reshape(-1)
    assert drawn.mean() == pytest.approx(mean[0], abs=0.06)
    assert drawn.std() == pytest.approx(math.sqrt(covariance[0, 0]), rel=0.06)
    samples = {name: value.reshape(-1, *value.shape[2:]) for name, value in result.samples.items()}
    again = Predictive(model, posterior_samples=samples)(None, {"o": TOLD})["z.o"].reshape(-1, 3).numpy()
    np.testing.assert_allclose(again.mean(0), 1.2 * mean[1:], atol=0.06)
    spread = np.sqrt(0.36 + 1.44 * np.diag(covariance)[1:])
    np.testing.assert_allclose(again.std(0), spread, rtol=0.06)


def test_without_a_value_it_is_drawn_and_scores_nothing() -> None:
    model = loads(WALK).morphism
    with pytest.warns(Unobserved, match="no value was given for `o`"):
        MCMC(NUTSKernel(), 5, 5, 1, seed=1).run(model, None, {})
    with pytest.raises(InputProblem, match="log_joint needs a value for `b`, `z`, `o`"):
        model.log_joint(None, {})
    found = Predictive(model, num_samples=50)(None)["z.o"]
    assert found.shape == (50, 1, 3) and float(found.std()) > 0.5
    # the data that a file was loaded with reach the programs inside in parts alone
    loaded = loads(WALK, data={"o": TOLD}).morphism.execute(None)
    assert loaded.sites["z.o"].observed and loaded.sites["z.o"].value.reshape(3).equal(TOLD)
