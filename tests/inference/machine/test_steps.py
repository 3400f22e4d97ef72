"""Steps of SVI on a compiled density are those that torch makes with the same noise."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.models import RADON, SCHOOLS, VARYING_SLOPES
from qvr_core.dsl import loads
from qvr_core.inference import (
    ELBO,
    SVI,
    AutoDeltaGuide,
    AutoLaplaceGuide,
    AutoLowRankMultivariateNormalGuide,
    AutoMultivariateNormalGuide,
    AutoNormalGuide,
    AutoPriorGuide,
    IWAEBound,
    RenyiBound,
)
from qvr_core.inference.compiled_steps import Fitted, compiled_steps
from qvr_core.inference.machine import density
from qvr_core.inference.machine.density import NotCompiled
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.inference.nonfinite_latents import first_not_finite_at
from qvr_core.runtime.programs.handlers import scale
from qvr_core.runtime.values.errors import NonFinite

STEPS = 12
OBJECTIVES: dict[str, Any] = {
    "elbo": ELBO,
    "three particles": lambda: ELBO(3),
    "sum": lambda: ELBO(2, "sum"),
    "stl": lambda: ELBO(2, stl=True),
    "iwae": lambda: IWAEBound(4),
    "iwae, stl": lambda: IWAEBound(4, stl=True),
    "renyi": lambda: RenyiBound(4, alpha=0.3),
    "renyi, stl": lambda: RenyiBound(4, alpha=0.7, stl=True),
}
GUIDES = [
    AutoNormalGuide,
    AutoMultivariateNormalGuide,
    AutoLowRankMultivariateNormalGuide,
    AutoDeltaGuide,
    AutoLaplaceGuide,
]

UNKNOWN = """
object D : FinSet 3
program p : D -> D
    sample mu : D <- Normal(0.0, 1.0)
    observe y : D <- Normal(sort(mu), 1.0)
    return mu
"""
NETWORK = (Path(__file__).resolve().parents[3] / "examples" / "variational_autoencoder.qvr").read_text()


@pytest.fixture
def double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def fit_of(
    engine: Any,
    model: Any = SCHOOLS,
    guide: Any = AutoNormalGuide,
    objective: Any = ELBO,
    optimizer: Any = torch.optim.Adam,
    data: Any = None,
) -> tuple[SVI, Any]:
    made = loads(model if isinstance(model, str) else model.text).morphism
    given = model.data() if data is None else data
    torch.manual_seed(1)
    own = guide(made, observed_names={name for name in given if name in made.sites})
    with torch.no_grad():
        for parameter in own.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    moved = list(own.parameters()) or list(made.parameters())
    return SVI(made, own, optimizer(moved, lr=0.05), objective(), engine=engine), given


def fitted(engine: Any, steps: int = STEPS, **asked: Any) -> tuple[list[float], list[Any], list[Any], str]:
    """Losses, the first step's gradients, the parameters at the end, and the engine."""
    svi, data = fit_of(engine, **asked)
    losses: list[float] = []
    gradients: list[Any] = []
    for step in range(steps):
        torch.manual_seed(step)
        losses.append(svi.step(None, data))
        gradients = gradients or [parameter.grad.clone() for parameter in svi.guide.parameters()]
    return losses, gradients, [p.detach().clone() for p in svi.guide.parameters()], svi.choice.engine


def assert_alike(ours: Any, theirs: Any) -> None:
    assert ours[0] == pytest.approx(theirs[0], rel=1e-9)
    for one, other in zip(ours[1], theirs[1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9 * float(other.abs().max()))
    for one, other in zip(ours[2], theirs[2], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.sampled(3)
def test_a_compiled_step_is_the_plain_one(guide: Any, objective: str) -> None:
    asked: dict[str, Any] = {"guide": guide, "objective": OBJECTIVES[objective]}
    ours, theirs = fitted("compiled", **asked), fitted("plain", **asked)
    assert (ours[3], theirs[3]) == ("compiled", "plain")
    assert_alike(ours, theirs)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("model", [RADON, VARYING_SLOPES])
def test_so_it_is_with_constrained_latents_and_hundreds_of_rows(model: Any) -> None:
    assert_alike(fitted("compiled", model=model), fitted("plain", model=model))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    "optimizer",
    [
        torch.optim.AdamW,
        torch.optim.SGD,
        torch.optim.RMSprop,
        lambda own, lr: torch.optim.Adam(own, lr=lr, amsgrad=True),
        lambda own, lr: torch.optim.Adam(own, lr=lr, betas=(0.8, 0.9), eps=1e-4),
        lambda own, lr: torch.optim.Adam(own, lr=lr, weight_decay=0.1),
    ],
)
def test_any_optimiser_moves_as_it_does_in_torch(optimizer: Any) -> None:
    asked: dict[str, Any] = {"optimizer": lambda own, lr: optimizer(own, lr=0.01)}
    ours = fitted("compiled", **asked)
    assert ours[3] == "compiled"
    assert_alike(ours, fitted("plain", **asked))


def test_single_precision_sees_the_same_noise() -> None:
    data = {name: value.float() for name, value in SCHOOLS.data().items()}
    ours, theirs = fitted("compiled", data=data), fitted("plain", data=data)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
    assert all(parameter.dtype == torch.float32 for parameter in ours[2])


def test_what_cannot_be_compiled_runs_in_torch_and_says_why_where_that_was_asked_for() -> None:
    data = {"y": torch.tensor([0.1, 0.2, 0.4])}
    with pytest.warns(UserWarning, match="there are no arrays for"):
        ours = fitted("compiled", model=UNKNOWN, data=data)
    assert ours[3] == "plain"
    assert ours[0] == pytest.approx(fitted("plain", model=UNKNOWN, data=data)[0], rel=1e-5)


def test_networks_stay_on_torch_without_a_word() -> None:
    x = torch.zeros(2, 4)
    svi, _ = fit_of("auto", NETWORK, AutoPriorGuide, data={"picture": x})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svi.step(x, {"picture": x})
    assert svi.choice.engine == "plain"


def test_without_a_compiler_the_program_runs_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> Any:
        raise NotCompiled("llvmlite is not installed (pip install llvmlite)")

    monkeypatch.setattr("qvr_core.inference.compiled_steps.machine_density", none)
    with pytest.warns(UserWarning, match="pip install llvmlite"):
        assert fitted("compiled")[3] == "plain"
    assert density.available()


def test_other_data_are_never_scored_by_the_code_of_the_first() -> None:
    svi, data = fit_of("compiled")
    svi.step(None, data)
    moved = {**data, "y": data["y"] + 100.0}
    changed = svi.step(None, moved)
    data["y"].add_(100.0)
    torch.manual_seed(0)
    assert changed > 100.0 and svi.step(None, data) > 100.0
    assert svi.choice.engine == "compiled"


def test_a_bound_that_is_not_finite_names_its_site_and_moves_nothing() -> None:
    svi, data = fit_of("compiled")
    svi.step(None, data)
    assert isinstance(svi.guide, AutoNormalGuide)
    with torch.no_grad():
        svi.guide.raw_log_scale["tau"].fill_(1e4)
    before = [parameter.detach().clone() for parameter in svi.guide.parameters()]
    with pytest.raises(NonFinite, match="step 2"):
        svi.step(None, data)
    assert all(torch.equal(one, other) for one, other in zip(before, svi.guide.parameters(), strict=True))


ROWS = """
object Row : FinSet 4
program rows : Row -> Row
    sample mu <- Normal(0.0, 2.0)
    sample sigma <- HalfNormal(1.0)
    observe y : Row <- Normal(mu, sigma)
    return mu
"""


@pytest.mark.usefixtures("double")
def test_parts_of_the_rows_have_the_steps_of_torch_each_with_its_data() -> None:
    model = loads(ROWS).morphism
    parts = [
        {"y": torch.tensor(y).double()} for y in ([0.1, 0.4, -1.0, 2.0], [3.0, 2.5, 2.0, 4.0], [0.0, 0.0, 1.0, 1.0])
    ]
    ends: list[list[Any]] = []
    for engine in ("compiled", "plain"):
        guide = AutoNormalGuide(model, observed_names={"y"})
        optimizer = torch.optim.Adam(guide.parameters(), lr=0.05)
        objective = ELBO(2, handlers=(scale({"y": 25.0}),))
        fitted = Fitted(model, guide, objective, optimizer)
        steps = compiled_steps(fitted, fitted.potential(None, parts[0]), None) if engine == "compiled" else None
        losses: list[float] = []
        for number in range(9):
            if steps is not None:
                steps = steps.with_data(parts[number % 3])
            torch.manual_seed(number)
            if steps is not None:
                losses.append(steps.advance()[0])
                continue
            optimizer.zero_grad()
            loss = objective(model, guide, None, parts[number % 3])
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        ends.append(losses)
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


ROOT = """
program root : FinSet 2 -> FinSet 2
    sample mu <- Normal(1.0, 2.0)
    sample tau <- HalfNormal(1.0)
    observe y : FinSet 2 <- Normal(mu + sqrt(0.0 * tau), 1.5)
    return mu
"""


def test_a_slope_that_is_no_number_names_its_site_and_the_latent() -> None:
    model = loads(ROOT).morphism
    potential = ProgramPotential(model, None, {"y": torch.tensor([0.1, 0.2]).double()})
    guide = AutoNormalGuide(model, observed_names={"y"})
    problem = first_not_finite_at(potential, guide, np.array([[0.5, 0.1]]))
    assert problem.site == "y"
    assert "its log density is finite, but its gradient by `tau`" in str(problem)


def test_what_is_put_in_place_of_a_parameter_is_seen() -> None:
    svi, data = fit_of("compiled")
    svi.step(None, data)
    stored, state = svi.guide.state_dict(), svi.optim.state_dict()
    kept = {name: value.clone() for name, value in stored.items()}
    torch.manual_seed(5)
    first = [svi.step(None, data) for _ in range(4)]
    again, _ = fit_of("compiled")
    again.guide.load_state_dict(kept)
    assert any(not torch.equal(kept[name], value) for name, value in svi.guide.state_dict().items())
    assert state["state"]
    torch.manual_seed(5)
    assert again.step(None, data) == first[0]
