"""The upper end of an interval may be infinite: such an element is known to lie above its value, and no more."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import scipy.stats as st
import torch

from qvr_core.analysis import analyse
from qvr_core.data.problems import DataProblem
from qvr_core.inference.nonfinite import blamed_data
from qvr_core.runs.prepare.prepare import Prepared, prepare
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.data_checks import check_data
from tests.runs.jobs import make_job


def program(rows: str, declared: str = "") -> str:
    return (
        f"object Row : {rows}\nprogram p : Row -> Row\n{declared}    sample k <- HalfNormal(2.0)\n"
        "    observe t : Row <- Weibull(2.0, k) [interval=b]\n    return k\n"
    )


PROGRAMS = [program("FinSet 4"), program("FinSet _"), program("FinSet _", "    data b, t : Row\n")]


def prepared(folder: Path, text: str, end: str) -> Prepared:
    (folder / "d.csv").write_text(f"t,b\n1.0,1.0\n0.5,2.0\n2.0,{end}\n1.5,1.5\n")
    return prepare(make_job(folder, text, algorithm="nuts", data="csv:d.csv"), analyse(text))


@pytest.mark.parametrize("text", PROGRAMS)
def test_an_infinite_end_is_read_as_right_censored(tmp_path: Path, text: str) -> None:
    run = prepared(tmp_path, text, "inf")
    assert not check_data(analyse(text), "p", RunConfig(data="csv:d.csv"), tmp_path)
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    base = st.weibull_min(1.4, scale=2.0)
    expected = base.logpdf([1.0, 1.5]).sum() + math.log(base.cdf(2.0) - base.cdf(0.5)) + base.logsf(2.0)
    found = run.model.log_joint(None, {"k": torch.tensor(1.4), **values}) - st.halfnorm(scale=2.0).logpdf(1.4)
    assert float(found) == pytest.approx(expected, rel=1e-9)
    assert blamed_data(run.model, None, values) is None


@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("end", ["-inf", "nan"])
def test_any_other_end_that_is_not_finite_is_told(tmp_path: Path, text: str, end: str) -> None:
    with pytest.raises(DataProblem, match=r"column `b`, row 3: "):
        prepared(tmp_path, text, end)


def test_values_themselves_are_finite(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match=r"column `t`, row 3: inf is (infinite|not finite)"):
        text = PROGRAMS[0].replace("[interval=b]", "")
        (tmp_path / "d.csv").write_text("t\n1.0\n0.5\ninf\n1.5\n")
        prepare(make_job(tmp_path, text, algorithm="nuts", data="csv:d.csv"), analyse(text))
