"""Simulation-based calibration: uniform ranks of good programs, and what is said of a wrong one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import Result
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.dsl import loads
from qvr_core.inference import calibration
from qvr_core.inference.calibration import ReplicatePotential, distance, envelope
from qvr_core.inference.calibration_power import seen
from qvr_core.inference.mcmc.potential import ProgramPotential

NORMAL = """\
object Row : FinSet 10
program normal : Row -> Row
    sample mu <- Normal(0.0, 1.0)
    observe y : Row <- Normal(mu, 1.0)
    return mu
"""
MIXTURE = """\
object Row : FinSet 6
object C : FinSet 2
program m : Row -> Row
    sample w <- Dirichlet(2.0) [over=C]
    sample a : C <- Normal(0.0, 1.0)
    marginalize z : Row <- Categorical(w)
        observe y : Row <- Normal(a[z], 0.7)
    return a
"""


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize("text", [NORMAL, MIXTURE])
def test_each_chain_sees_its_own_replicate(text: str) -> None:
    model = loads(text).morphism
    rows = 10 if text is NORMAL else 6
    y = torch.randn(3, rows, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    potential = ReplicatePotential(model, {}, {"y": y})
    q = torch.randn(3, potential.width, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    value, gradient = potential.value_and_grad(q)
    for at in range(3):
        one, slope = ProgramPotential(model, None, {"y": y[at]}).value_and_grad(q[at : at + 1])
        assert float(value[at]) == pytest.approx(float(one[0]))
        torch.testing.assert_close(gradient[at : at + 1], slope)


def test_uniform_ranks_pass_as_often_as_was_asked() -> None:
    generator = np.random.default_rng(11)
    limit = envelope(100, 63, 0.05)
    passed = [distance(generator.integers(0, 64, 100), 63) <= limit for _ in range(2000)]
    assert np.mean(passed) == pytest.approx(0.95, abs=0.02)
    # a posterior of half the width, and one that leans
    assert distance(np.concatenate([np.zeros(50), np.full(50, 63)]).astype(int), 63) > limit
    assert distance(generator.integers(0, 40, 100), 63) > limit


@pytest.mark.statistical
@pytest.mark.parametrize("count", [50, 200])
def test_a10_an_error_of_the_size_that_is_said_is_seen_four_times_in_five(count: int) -> None:
    limit = envelope(count, 63, 0.005)
    found = seen(count, 63, limit)
    generator = np.random.default_rng(7)

    def power(shift: float, scale: float) -> float:
        truth, draws = generator.normal(size=(300, count)), generator.normal(shift, scale, size=(300, count, 63))
        seen_in = (distance((d < t[:, None]).sum(1), 63) > limit for t, d in zip(truth, draws, strict=True))
        return float(np.mean(list(seen_in)))

    assert power(found.shift, 1.0) == pytest.approx(0.8, abs=0.12)
    assert power(0.0, found.narrow) == pytest.approx(0.8, abs=0.12)
    assert power(0.0, found.wide) == pytest.approx(0.8, abs=0.12)
    assert seen(4 * count, 63, limit).shift < 0.7 * found.shift


@pytest.mark.statistical
def test_a_right_program_is_calibrated_and_a_wrong_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.qvr").write_text(NORMAL.replace("FinSet 10", "FinSet 2"))
    (tmp_path / "narrow.qvr").write_text(
        (tmp_path / "m.qvr").read_text().replace("Normal(0.0, 1.0)", "Normal(0.0, 0.5)")
    )
    monkeypatch.setattr(calibration, "THIN", 3)
    right = qvr("calibrate", "m.qvr")
    assert right.exit_code == 0, right.output
    assert "all 1 numbers are calibrated" in right.output and "uniform" in right.output
    # A10: what these replicates could have seen
    words = " ".join(right.output.split())
    assert "as far as 200 replicates can tell" in words and "would be seen four times in five" in words
    wrong = qvr("calibrate", "m.qvr", "--fit", "narrow.qvr", "--json")
    assert wrong.exit_code == 1, wrong.output
    (found,) = json.loads(wrong.stdout)["numbers"]
    assert found["name"] == "mu" and found["verdict"] == "not uniform: the posterior is too narrow"
    assert len(found["ranks"]) == 200 and not (tmp_path / ".qvr").exists()


SIMPLEX = """\
object Row : FinSet 30
object Kind : FinSet 4
program simplex : Row -> Row
    sample w <- Dirichlet(2.0) [over=Kind]
    observe y : Row <- Categorical(w)
    return w
"""
# components that are told apart: of two alike a chain would see one order only
APART = """\
object Row : FinSet 20
object C : FinSet 2
program mixture : Row -> Row
    sample w <- Dirichlet(2.0) [over=C]
    sample low <- Normal(0.0, 2.0)
    sample gap <- HalfNormal(3.0)
    let centre = concat(low, low + gap)
    marginalize z : Row <- Categorical(w)
        observe y : Row <- Normal(centre[z], 0.7)
    return centre
"""
HIERARCHY = """\
object School : FinSet 8
program schools : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfNormal(5.0)
    sample theta : School <- Normal(mu, tau) [noncentred]
    observe y : School <- Normal(theta, 5.0)
    return theta
"""


@pytest.mark.statistical
@pytest.mark.parametrize("text", [SIMPLEX, APART, HIERARCHY], ids=["simplex", "mixture", "hierarchical"])
def test_other_programs_are_calibrated(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.qvr").write_text(text)
    done = qvr("calibrate", "m.qvr")
    assert done.exit_code == 0, done.output


@pytest.mark.statistical
def test_a_scale_that_is_halved_in_the_fit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.qvr").write_text(HIERARCHY)
    (tmp_path / "wrong.qvr").write_text(HIERARCHY.replace("HalfNormal(5.0)", "HalfNormal(2.5)"))
    done = qvr("calibrate", "m.qvr", "--fit", "wrong.qvr", "--json")
    verdicts = {each["name"]: each["verdict"] for each in json.loads(done.stdout)["numbers"]}
    assert done.exit_code == 1 and verdicts["tau"] == "not uniform: the posterior lies too low"


def test_what_cannot_be_calibrated_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flat.qvr").write_text(NORMAL.replace("Normal(0.0, 1.0)", "Flat()"))
    refused = qvr("calibrate", "flat.qvr", "--replicates", "20")
    assert refused.exit_code == 1 and "Flat" in refused.output
    assert qvr("calibrate", "none.qvr").exit_code == 2
