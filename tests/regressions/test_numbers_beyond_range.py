"""C1: numbers beyond what any computation holds, closed streams, arrays without rows: each is one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from qvr_core.analysis import Analyzer
from qvr_core.data.binding import bind
from qvr_core.data.needs import Need, Needs
from qvr_core.data.problems import DataProblem
from qvr_core.data.tables.reading import read_columns
from qvr_core.semantics.types.diagnostics import Severity

ROOT = Path(__file__).resolve().parents[2]
HEAD = "object X : Real 4\nmorphism a : X -> X [role=linear]\n"
PROGRAM = "object X : Real 4\nprogram p : X -> X\n    sample y <- Normal(0.0, 1.0)\n"
PLACES = {
    "a size": "object K : FinSet {}\nexport K\n",
    "a width": "object K : Real {}\n",
    "a bound": "object K : Real 4 [low={}]\n",
    "an option": "object X : Real 4\nmorphism a : X -> X [role=linear, replicate={}]\n",
    "copies": HEAD + "let b = stack(a, {})\nexport b\n",
    "an argument": PROGRAM + "    sample z <- Normal({}, 1.0)\n    return z\n",
    "arithmetic": PROGRAM + "    let z = y * {}\n    return z\n",
    "an index": PROGRAM + "    let z = y[{}]\n    return z\n",
    "a length": PROGRAM + "    let z = ones({})\n    return z\n",
    "a case": "object F : FinSet 2\n" + PROGRAM + "    let z = factor i : F in {{{} -> 1.0}}\n    return z\n",
    "a term": "object F : FinSet 2\ndeduction d : F -> F\n    atoms A\n    rule r : {} |- A\n",
    "a default": "program t(x, k : Real = {}) : X -> X\n    return x\n" + PROGRAM + "    return y\n",
}


@pytest.mark.parametrize("digits", [309, 4301, 200_000])
@pytest.mark.parametrize("place", PLACES)
def test_c1_a_number_with_too_many_digits_is_one_error(place: str, digits: int) -> None:
    found = Analyzer(PLACES[place].format("9" * digits)).snapshot().diagnostics()
    errors = [item.message for item in found if item.code.name == "invalid-number"]
    assert errors == [f"this number has {digits:,} digits, and none may have more than 308"]


@pytest.mark.parametrize("written", ["1e400", "9" * 400 + ".0", "1e" + "9" * 5000])
def test_c1_a_number_beyond_all_floats_is_one_error(written: str) -> None:
    found = Analyzer(PROGRAM + f"    let z = y + {written}\n    return z\n").snapshot().diagnostics()
    (error,) = [item for item in found if item.severity is Severity.ERROR]
    assert error.message == "this number is too large: the largest is about 1.8e308"


def test_c1_the_largest_numbers_are_no_error() -> None:
    text = PROGRAM + f"    let z = y + {'9' * 308} + 1.7e308 + 0.{'3' * 5000}\n    return z\n"
    assert not [item for item in Analyzer(text).snapshot().diagnostics() if item.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("arguments", "closed", "status"),
    [
        (["check", "broken.qvr"], ">&-", 1),
        (["check", "--json", "broken.qvr"], ">&-", 1),
        (["check", "whole.qvr"], ">&- 2>&-", 0),
        (["check", "missing.qvr"], "2>&-", 2),
        (["check", "-"], "<&-", 0),
        (["format", "--check", "whole.qvr"], ">&- 2>&- <&-", 0),
    ],
)
@pytest.mark.sampled(3)
def test_c1_a_closed_stream_leaves_the_exit_status(
    arguments: list[str], closed: str, status: int, tmp_path: Path
) -> None:
    (tmp_path / "broken.qvr").write_text("export missing\n")
    (tmp_path / "whole.qvr").write_text("object X : Real 4\n")
    line = f'"$@" {closed}'
    command = ["sh", "-c", line, "sh", sys.executable, "-m", "qvr_core.cli", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_c1_an_array_without_rows_is_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    path = str(tmp_path / "none.npz")
    np.savez(path, y=np.zeros(shape))
    needs = Needs("m", (), (Need("observed", "y", "real", "Normal"),), ())
    with pytest.raises(DataProblem, match=r"column `y`: there are no values .*\. It needs one row at least"):
        bind(read_columns(path, "npz"), needs, {})


def test_c1_dates_and_complex_numbers_in_an_archive_are_told_at_their_names(tmp_path: Path) -> None:
    (tmp_path / "m.qvr").write_text(
        "object Row : FinSet _\nprogram m : Row -> Row\n    data x : Row -> Real 1\n    sample a <- Normal(0.0, 1.0)\n"
        "    observe y[r : Row] <- Normal(a + x[r], 1.0)\n    return a\nexport m\n"
    )
    np.savez(tmp_path / "d.npz", x=np.zeros(8, complex), y=np.zeros(8, "M8[s]"), Row=np.arange(8))
    command = [sys.executable, "-m", "qvr_core.cli", "check", "m.qvr", "--data", "npz:d.npz"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "column `x`: 0j is not a number" in done.stdout
    assert "column `y`: `1970-01-01T00:00:00` is not a number" in done.stdout
