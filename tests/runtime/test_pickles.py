"""Modules pickled, saved and copied: what comes back computes the same, and shares nothing."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from qvr_core.dsl import Program, load, loads
from qvr_core.inference import (
    ELBO,
    SVI,
    AutoDeltaGuide,
    AutoLaplaceGuide,
    AutoLowRankMultivariateNormalGuide,
    AutoMultivariateNormalGuide,
    AutoNormalGuide,
    trace,
)
from qvr_core.runs.prepare.prepare import Prepared, prepare
from tests.examples.statistics.programs import prepared as with_data
from tests.runs.jobs import make_job
from tests.standalone import standalone

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("?*.qvr"))
SENTENCES = {"attachment": "attachments", "categories": "categories", "cross_serial": "clauses"}
"""Examples that parse what nothing draws, each with its file."""
STATISTICS = sorted((ROOT / "examples" / "statistics").glob("?*.qvr"))


def saved(module: Any) -> Any:
    """Through `torch.save` and `torch.load`."""
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


def pickled(module: Any) -> Any:
    return pickle.loads(pickle.dumps(module))


WAYS: dict[str, Callable[[Any], Any]] = {"pickle": pickled, "torch.save": saved, "deepcopy": copy.deepcopy}


def prepared(folder: Path, text: str, program: str | None = None, data: str = "synthetic") -> Prepared:
    """A program as a run has it, on data drawn from itself, or read from a file."""
    batch = 4 if data == "synthetic" else None
    job = make_job(folder, text, program, data=data, algorithm="svi", rows=4, batch_size=batch)
    return prepare(job, standalone(text))


@pytest.mark.parametrize("path", [*EXAMPLES, *STATISTICS], ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.sampled(3)
def test_every_example_comes_back_as_it_was(path: Path, tmp_path: Path) -> None:
    if path.stem == "grammar":
        module, run = load(path).morphism, None
    elif path.stem in SENTENCES:
        file = ROOT / "examples" / "data" / f"{SENTENCES[path.stem]}.csv"
        run = prepared(tmp_path, path.read_text(), data=f"csv:{file}")
        module = run.model
    else:
        run = with_data(path.stem) if path in STATISTICS else prepared(tmp_path, path.read_text())
        module = run.model
    before = torch.random.get_rng_state()
    found = [way(module) for way in WAYS.values()]
    assert torch.equal(torch.random.get_rng_state(), before)
    for one in found:
        assert type(one) is type(module)
        for mine, other in zip(module.parameters(), one.parameters(), strict=True):
            assert torch.equal(mine, other) and mine is not other and mine.data_ptr() != other.data_ptr()
    if run is not None:
        x, observations = run.train.batch(torch.arange(min(run.train.rows, 4)))
        numbers = [drawn(one, x, observations) for one in (module, *found)]
        assert all(torch.equal(numbers[0], one) for one in numbers[1:])


def drawn(module: Any, x: object, observations: Any) -> torch.Tensor:
    torch.manual_seed(1)
    return trace(module, x, observations).log_joint.detach()


TWO = """\
object Point : Real 2
morphism f : Point -> Point [role=kernel, hidden_dim=4] ~ Normal
program first : Point -> Point
    observe y : Point <- f
    return y
program second : Point -> Point
    observe z : Point <- f
    return z
export first
"""


def test_programs_that_share_parameters_share_them_again() -> None:
    file = loads(TWO)
    first, second = pickled((file.first, file.second))
    shared = {id(parameter) for parameter in first.parameters()}
    assert shared == {id(parameter) for parameter in second.parameters()}
    whole = pickled(file)
    assert isinstance(whole, Program)
    assert {id(p) for p in whole.first.parameters()} == {id(p) for p in whole.second.parameters()}
    assert torch.equal(next(whole.parameters()), next(file.parameters()))


def test_what_was_done_to_the_parameters_is_kept() -> None:
    module = loads(TWO).morphism.double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(0.5)
    next(module.parameters()).requires_grad_(False)
    for way in WAYS.values():
        found = way(module)
        assert not found.training
        assert {p.dtype for p in found.parameters()} == {torch.float64}
        assert [p.requires_grad for p in found.parameters()] == [p.requires_grad for p in module.parameters()]
        assert all(bool((p == 0.5).all()) for p in found.parameters())


TEMPLATE = """\
object Row : FinSet 3
program line(scale : Real) : Row -> Row
    sample m <- Normal(0.0, scale)
    observe y : Row <- Normal(m, 1.0)
    return m
"""


def test_an_instance_of_a_template() -> None:
    module = loads(TEMPLATE).line(scale=3.0).morphism
    values = {"m": torch.tensor(0.4), "y": torch.tensor([0.1, 0.2, 0.3])}
    for way in WAYS.values():
        assert torch.equal(way(module).log_joint(None, values), module.log_joint(None, values))


MODEL = TEMPLATE.replace("(scale : Real)", "").replace("scale", "2.0")
GUIDES = [
    AutoNormalGuide,
    AutoDeltaGuide,
    AutoLaplaceGuide,
    AutoMultivariateNormalGuide,
    AutoLowRankMultivariateNormalGuide,
]


@pytest.mark.parametrize("kind", GUIDES)
def test_a_fitted_guide(kind: Any) -> None:
    model = loads(MODEL).morphism
    given = {"y": torch.tensor([0.1, 0.2, 0.3])}
    guide = kind(model, observed_names={"y"}, observations=given)
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.05), ELBO())
    for _ in range(5):
        svi.step(None, given)
    if kind is AutoLaplaceGuide:
        guide.off_mode = 0.25
    for way in WAYS.values():
        again = way(guide)
        assert getattr(again, "off_mode", None) == getattr(guide, "off_mode", None)
        proposals = []
        for one in (guide, again):
            torch.manual_seed(0)
            proposals.append(one.propose(4).unconstrained["m"])
        assert torch.equal(*proposals)
