"""Torch exports of thirty programs have our log density, in a process that cannot import our packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
import torch

from qvr_core.export.arrays.tables_torch import TORCH
from tests.examples.statistics.programs import NAMES
from tests.export.exports import worst, write_cases
from tests.export.families import CASES, write_cases_of_families
from tests.patience import HANG

EVALUATOR = Path(__file__).with_name("evaluators") / "evaluate_torch.py"


def test_thirty_programs_and_all_families_agree(tmp_path: Path) -> None:
    assert len(NAMES) >= 30
    write_cases(tmp_path, NAMES, "torch")
    write_cases_of_families(tmp_path, "torch", TORCH.families)
    done = subprocess.run(
        [sys.executable, "-I", str(EVALUATOR), str(tmp_path)],
        capture_output=True, text=True, timeout=HANG, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = worst(json.loads(done.stdout), tmp_path)
    assert set(found) == {*NAMES, *CASES}
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
