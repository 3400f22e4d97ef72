"""Values at the ends of supports: what has no density there is told when the data are read, and only that."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from qvr_core.analysis import analyse
from qvr_core.data.problems import DataProblem
from qvr_core.dsl import loads
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runtime.families.registry import RUNTIME_FAMILIES
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


@pytest.mark.parametrize("draw", ["Beta(a, 2.0)", "LogitNormal(0.0, a)", "Kumaraswamy(a, 2.0)"])
@pytest.mark.parametrize(("cell", "instead"), [("0", "above 0"), ("1", "below 1")])
@pytest.mark.parametrize("declared", ["", "    data y : Row\n"])
def test_an_observed_end_of_the_unit_interval_is_told_before_the_run(
    tmp_path: Path, draw: str, cell: str, instead: str, declared: str
) -> None:
    (tmp_path / "d.csv").write_text(f"y\n0.3\n{cell}\n0.5\n")
    text = program(draw, declared)
    with pytest.raises(DataProblem, match=rf"row 2: {cell}(\.0)? has no density there.* takes values {instead}"):
        prepare(make_job(tmp_path, text, algorithm="nuts", data="csv:d.csv"), analyse(text))


@pytest.mark.parametrize("draw", ["Dirichlet([2.0, 1.5, 1.0])", "LogisticNormal([0.0, 0.1], [1.0, 0.5])"])
def test_a_probability_of_zero_is_told_before_the_run_and_has_no_density(tmp_path: Path, draw: str) -> None:
    text = (
        "object Row : FinSet _\nobject Part : FinSet 3\n"
        f"program p : Row -> Row\n    data y : Row -> Simplex 3\n    sample a <- HalfNormal(1.0)\n"
        f"    observe y : Row <- {draw}\n    return a\n"
    )
    (tmp_path / "d.csv").write_text("y_0,y_1,y_2\n0.2,0.3,0.5\n0.0,0.4,0.6\n")
    with pytest.raises(DataProblem, match=r"row 2: 0(\.0)? has no density there"):
        prepare(make_job(tmp_path, text, algorithm="nuts", data="csv:d.csv"), analyse(text))
    plain = f"object I : Real 1\nprogram p : I -> I\n    observe y : Simplex 3 <- {draw}\n    return y\n"
    density = loads(plain).morphism.log_joint
    assert torch.isfinite(density(None, {"y": torch.tensor([0.2, 0.3, 0.5])}))
    assert float(density(None, {"y": torch.tensor([0.0, 0.4, 0.6])})) == float("-inf")


@pytest.mark.parametrize(
    ("name", "parameters"), [("Beta", (90.0, 0.3)), ("LogitNormal", (12.0, 3.0)), ("Kumaraswamy", (90.0, 0.3))]
)
def test_draws_near_an_end_have_a_density(name: str, parameters: tuple[float, float]) -> None:
    """float32 rounds the sigmoid of 17 to 1, which no draw of an open support may be."""
    family, given = RUNTIME_FAMILIES[name], [torch.tensor(one, dtype=torch.float32) for one in parameters]
    drawn = family.value_of(family.fresh_noise((4000,), torch.Generator().manual_seed(1), given), given)
    assert float(drawn.max()) > 1.0 - 1e-6
    assert bool(torch.isfinite(family.log_prob(drawn, *given)).all())


@pytest.mark.parametrize("draw", ["Exponential(a)", "Weibull(a, 1.5) [right_censored=c]", "Weibull(a, 1.5) [mask=c]"])
def test_a_zero_that_counts_as_something_else_is_read(tmp_path: Path, draw: str) -> None:
    (tmp_path / "d.csv").write_text("y,c\n1.0,1\n0,0\n2.0,1\n")
    prepare(make_job(tmp_path, program(draw), algorithm="nuts", data="csv:d.csv"), analyse(program(draw)))


@pytest.mark.parametrize("declared", ["", "    data y : Row\n"])
@pytest.mark.parametrize(
    ("draw", "cell", "said"),
    [
        ("Poisson(a)", "1.5", "1.5 is not a whole number"),
        ("Poisson(a)", "-1", "-1 is negative"),
        ("Beta(a, 1.0)", "2.0", "2.* is above 1"),
    ],
)
def test_what_a_family_cannot_draw_names_the_family(
    tmp_path: Path, draw: str, cell: str, said: str, declared: str
) -> None:
    (tmp_path / "d.csv").write_text(f"y\n0.0\n{cell}\n".replace("0.0", "0.5" if "Beta" in draw else "1"))
    text = program(draw, declared)
    family = draw.partition("(")[0]
    with pytest.raises(DataProblem, match=rf"row 2: {said}.*`y` takes .*: it is observed as `{family}`"):
        prepare(make_job(tmp_path, text, algorithm="nuts", data="csv:d.csv"), analyse(text))


@pytest.mark.parametrize(
    ("outcome", "cell"), [("log(y)", "0"), ("logit(y)", "1"), ("(-log1p(y))", "-1"), ("log(y)", "-2")]
)
def test_a_value_without_a_function_is_told_before_the_run(tmp_path: Path, outcome: str, cell: str) -> None:
    (tmp_path / "d.csv").write_text(f"y\n0.3\n{cell}\n0.5\n")
    text = program("Normal(0.0, a)").replace("y : Row <-", f"{outcome}[i : Row] <-")
    with pytest.raises(DataProblem, match=rf"row 2: {cell}(\.0)? (has no density there|is below 0).*`Normal, of "):
        prepare(make_job(tmp_path, text, algorithm="nuts", data="csv:d.csv"), analyse(text))
