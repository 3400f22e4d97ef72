"""What a notebook shows of a file and its programs."""

from __future__ import annotations

from pathlib import Path

from qvr_core.dsl import load, loads

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_a_program_says_what_it_takes_and_draws() -> None:
    schools = load(EXAMPLES / "eight_schools.qvr")
    shown = repr(schools.morphism).splitlines()
    assert shown[0] == "program eight_schools : School -> School"
    assert [line.split()[0] for line in shown[1:]] == ["data", "sample", "observe"]
    assert "standard_error" in shown[1] and "mu, tau, z" in shown[2] and "effect" in shown[3]
    assert repr(schools).splitlines()[0] == f"Program {EXAMPLES / 'eight_schools.qvr'}"
    assert "  program eight_schools" in repr(schools)
    assert "Linear" not in repr(load(EXAMPLES / "flower_classifier.qvr").morphism)
    assert "flower_classifier : Measurement -> Species, 403 parameters" in repr(
        load(EXAMPLES / "flower_classifier.qvr").morphism
    )


def test_templates_and_marginals() -> None:
    text = """\
object Row : FinSet 6
object C : FinSet 2
program m(s : Real) : Row -> Row
    sample w <- Dirichlet(2.0) [over=C]
    marginalize z : Row <- Categorical(w)
        observe y : Row <- Normal(0.0, s)
    return w
"""
    file = loads(text)
    assert repr(file) == "Program <text>\n  template m"
    assert "marginalize z" in repr(file.m(s=1.0).morphism)
