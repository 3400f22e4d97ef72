"""Torch exports of thirty programs have our log density, in a process that cannot import our packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.export.exports import worst, write_cases
from tests.patience import HANG
from tests.programs.programs import NAMES

EVALUATOR = Path(__file__).with_name("evaluators") / "evaluate_torch.py"


def test_thirty_programs_agree_at_twenty_points(tmp_path: Path) -> None:
    assert len(NAMES) >= 30
    write_cases(tmp_path, NAMES, "torch")
    done = subprocess.run(
        [sys.executable, "-I", str(EVALUATOR), str(tmp_path)],
        capture_output=True, text=True, timeout=HANG, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = worst(json.loads(done.stdout), tmp_path)
    assert set(found) == set(NAMES)
    assert {name: far for name, far in found.items() if not far <= 1e-6} == {}
