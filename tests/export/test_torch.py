"""Torch exports of thirty programs have our log density, in a process that cannot import our packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from qvr_core.export.arrays.tables_torch import TORCH
from tests.export.exports import worst, write_cases
from tests.export.families import write_cases_of_families
from tests.patience import HANG
from tests.programs.programs import NAMES

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
    assert set(found) == {*NAMES, "families", "others", "tricky"}
    assert {name: far for name, far in found.items() if not far <= 1e-6} == {}
