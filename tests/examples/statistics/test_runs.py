"""Every program of examples/statistics is fitted from the command line, by what qvr.toml names for it."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.examples.statistics.programs import NAMES
from tests.examples.statistics.tables import STATISTICS
from tests.patience import HANG

SETTINGS = tomllib.loads((STATISTICS / "qvr.toml").read_text(encoding="utf-8"))
LENGTHS = {"nuts": ["--warmup", "1000", "--samples", "1000"], "svi": ["--steps", "1500"]}


def algorithm(name: str) -> str:
    return SETTINGS["run"][name].get("algorithm", SETTINGS["defaults"]["algorithm"])


def finished(name: str, folder: Path, length: list[str]) -> dict[str, Any]:
    """The last event of `qvr run`, in a copy of the folder."""
    shutil.copytree(STATISTICS, folder / "statistics")
    command = [sys.executable, "-m", "qvr_core.cli", "run", algorithm(name), f"statistics/{name}.qvr", "--json"]
    done = subprocess.run(
        [*command, *length], cwd=folder, capture_output=True, text=True, timeout=10 * HANG, check=False
    )
    last = json.loads(done.stdout.strip().splitlines()[-1])
    assert (last["event"], done.returncode) == ("finished", 0), (last, done.stderr)
    return last


def assert_finite(last: dict[str, Any]) -> None:
    for row in last["posterior"]:
        assert all(math.isfinite(row[figure]) for figure in ("mean", "sd", "q05", "median", "q95")), row


@pytest.mark.statistical
@pytest.mark.timeout(10 * HANG)
@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_fitted(name: str, tmp_path: Path) -> None:
    last = finished(name, tmp_path, LENGTHS[algorithm(name)])
    assert_finite(last)
    if algorithm(name) == "svi":
        assert last["losses"]["mean_of_last"] < last["losses"]["first"]
    else:
        assert not [warning for warning in last.get("warnings", ()) if re.search("not mixed", warning)]
        assert last["divergences"] <= 40  # of 4,000
