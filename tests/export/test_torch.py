"""Torch exports of thirty programs have our log density, in a process that cannot import our packages."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch

from qvr_core import dsl
from qvr_core.analysis import analyse
from qvr_core.dsl import loads
from qvr_core.export import export
from qvr_core.export.arrays.tables_torch import TORCH
from qvr_core.export.to_torch import RESERVED
from qvr_core.runtime.programs.handlers import by_rows, condition
from tests.examples.statistics.programs import NAMES
from tests.export.equations import EQUATIONS, LATENTS, MEASURED
from tests.export.exports import worst, write_cases
from tests.export.families import CASES, write_cases_of_families
from tests.patience import HANG

EVALUATOR = Path(__file__).with_name("evaluators") / "evaluate_torch.py"


THIRDS = [NAMES[::3], *(pytest.param(NAMES[at::3], marks=pytest.mark.slow) for at in (1, 2))]


@pytest.mark.parametrize("names", THIRDS)
def test_thirty_programs_and_all_families_agree(names: Sequence[str], tmp_path: Path) -> None:
    assert len(NAMES) >= 30
    write_cases(tmp_path, names, "torch")
    write_cases_of_families(tmp_path, "torch", TORCH.families)
    done = subprocess.run(
        [sys.executable, "-I", str(EVALUATOR), str(tmp_path)],
        capture_output=True, text=True, timeout=HANG, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = worst(json.loads(done.stdout), tmp_path)
    assert set(found) == {*names, *CASES}
    assert {name: far for name, far in found.items() if not far <= 1e-6} == {}


def test_an_ordered_outcome_far_from_its_predictor_keeps_its_density_and_its_gradient() -> None:
    scope: dict[str, Any] = {"torch": torch}
    exec(TORCH.helpers["ordered_logistic_log_prob"], scope)
    cuts = torch.tensor([-2.0, -1.0, 1.0, 2.0], dtype=torch.float64)
    for at in (-45.0, 18.0, 45.0):
        predictor = torch.tensor([at] * 5, dtype=torch.float64, requires_grad=True)
        found = scope["ordered_logistic_log_prob"](torch.arange(5), predictor, cuts)
        found.sum().backward()
        # p of a category between two cuts, whose logistic distribution is read on the side where it is small
        side = -1.0 if at > 0 else 1.0
        cdf = scipy.stats.logistic.cdf(side * (np.array([-np.inf, *cuts.tolist(), np.inf]) - at) * -1.0)
        expected = np.log(np.abs(np.diff(cdf)))
        inner = slice(1, 4)
        np.testing.assert_allclose(found.detach().numpy()[inner], expected[inner], rtol=1e-9)
        assert predictor.grad is not None and bool(predictor.grad.isfinite().all())


AWKWARD = """
import "bells.qvr" as b
object Row : FinSet 5
program p : Row -> Row
    data type, half : Row
    sample a <- b.Bell(0.0, 1.0)
    let k = exp(a)
    let m = [1.0, k]
    let table = factor c : {low, high} in { 0 -> 0.5, 1 -> k }
    observe y[i : Row] <- Normal(a * type[i] + m[0] * half[i] + sum(table), 1.0)
    return y
export p
"""
BELL = """
family Bell(loc : Real 1, scale : Real 1 [low=0.0]) : Real 1
    density(x) = -0.5 * ((x - loc) / scale) ^ 2 - log(scale)
    draw = Normal(loc, scale)
"""


def test_numbers_in_lists_and_names_of_a_module_and_of_an_import(tmp_path: Path) -> None:
    (tmp_path / "bells.qvr").write_text(BELL)
    loaded = dsl.loads(AWKWARD, folder=tmp_path)
    made = export(loaded.snapshot, "p", "torch")
    scope: dict[str, Any] = {"__name__": "made"}
    exec(made.text, scope)
    rows = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64)
    data = {"type": rows, "half": rows.square(), "y": rows.flip(0)}
    a = torch.tensor(0.7, dtype=torch.float64)
    module = scope["P"]({f"{name}_" if name != "y" else name: value.tolist() for name, value in data.items()})
    ours = loaded.programs["p"].double().log_joint(None, {"a": a, **data})
    assert float(module({"a": a})) == pytest.approx(float(ours), rel=1e-12)
    assert {name for name in dir(torch.nn.Module()) if not name.startswith("_")} <= set(RESERVED)


def of_equations(density: Callable[[dict[str, torch.Tensor]], torch.Tensor]) -> list[torch.Tensor]:
    """A density and its gradient."""
    latents = {name: torch.tensor(value, requires_grad=True) for name, value in LATENTS.items()}
    value = density(latents)
    return [value.detach(), *torch.autograd.grad(value, list(latents.values()))]


def test_equations_have_our_density_and_our_gradient() -> None:
    torch.set_default_dtype(torch.float64)
    scope: dict[str, Any] = {}
    made = export(analyse(EQUATIONS), "equations", "torch")
    exec(made.text, scope)
    model, given = loads(EQUATIONS).morphism, {name: torch.as_tensor(value) for name, value in MEASURED.items()}
    found = of_equations(scope["Equations"](made.data(MEASURED, {})))
    wanted = of_equations(lambda values: model.run(None, condition({**given, **values}), by_rows(1)).log_joint().sum())
    torch.testing.assert_close(found[0], wanted[0], rtol=0.0, atol=1e-7)
    for one, other in zip(found[1:], wanted[1:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", ["rk45", "stiff"])
def test_an_equation_without_a_solution_has_no_density(method: str) -> None:
    """z' = z² from 1 is 1 / (1 + start - t), and leaves the numbers at 1 + start."""
    text = f"""object Time : FinSet 2
def square(t, z) = z * z
program p : Time -> Time
    data when : Time
    sample m <- Normal(0.0, 1.0)
    let z[t : Time] = solve(square, 1.0, start=m, at=when, method={method}, rtol=1e-7, atol=1e-8, max_steps=300)
    observe y[t : Time] <- Normal(z[t], 1.0)
    return m
"""
    scope: dict[str, Any] = {}
    made = export(analyse(text), "p", "torch")
    exec(made.text, scope)
    model = scope["P"](made.data({"when": [0.5, 0.9], "y": [1.0, 9.0]}, {}))
    wanted = scipy.stats.norm.logpdf([0.0, 1.0 - 2.0, 9.0 - 10.0]).sum()
    assert float(model({"m": torch.tensor(0.0)})) == pytest.approx(wanted, abs=5e-3)
    assert float(model({"m": torch.tensor(-0.2)})) == -math.inf
    with pytest.raises(ValueError, match="ascend from its start"):
        model({"m": torch.tensor(0.6)})
