"""Values at the ends of supports: what has no density there is told when the data are read, and only that."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from qvr_core.analysis import analyse
from qvr_core.data.problems import DataProblem
from qvr_core.dsl import loads
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.semantics.language.families import FAMILIES
from tests.runs.jobs import make_job

BOUNDED = [
    name
    for name, family in FAMILIES.items()
    if family.support.kind == "real" and family.support.low is not None and not family.event and family.above is None
]


def program(draw: str, rest: str = "") -> str:
    return (
        f"object Row : FinSet _\nprogram p : Row -> Row\n    sample a <- HalfNormal(1.0)\n{rest}"
        f"    observe y : Row <- {draw}\n    return a\n"
    )


@pytest.mark.parametrize("name", BOUNDED)
def test_the_table_says_which_families_have_no_density_at_an_end(name: str) -> None:
    family = FAMILIES[name]
    given = ", ".join("0.3" if one.constraint == "unit" else "1.7" for one in family.parameters)
    text = f"object I : Real 1\nprogram p : I -> I\n    observe y : Real 1 <- {name}({given})\n    return y\n"
    model = loads(text).morphism
    ends = [end for end in (family.support.low, family.support.high) if end is not None]
    found = [float(model.log_joint(None, {"y": torch.tensor(end)})) for end in ends]
    assert family.open == (float("-inf") in found)


@pytest.mark.parametrize("draw", ["Weibull(a, 1.5)", "LogNormal(0.0, a)", "InverseGamma(a, 1.0)"])
@pytest.mark.parametrize("declared", ["", "    data y : Row\n"])
def test_an_observed_zero_without_density_is_told_before_the_run(tmp_path: Path, draw: str, declared: str) -> None:
    (tmp_path / "d.csv").write_text("y\n1.0\n0\n2.0\n")
    text = program(draw, declared)
    with pytest.raises(DataProblem, match=r"row 2: 0(\.0)? has no density there"):
        prepare(make_job(tmp_path, text, algorithm="nuts", data="csv:d.csv"), analyse(text))


@pytest.mark.parametrize("draw", ["Exponential(a)", "Weibull(a, 1.5) [right_censored=c]", "Weibull(a, 1.5) [mask=c]"])
def test_a_zero_that_counts_as_something_else_is_read(tmp_path: Path, draw: str) -> None:
    (tmp_path / "d.csv").write_text("y,c\n1.0,1\n0,0\n2.0,1\n")
    prepare(make_job(tmp_path, program(draw), algorithm="nuts", data="csv:d.csv"), analyse(program(draw)))
