"""`qvr graph`"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qvr_core.cli import app

SCHOOLS = str(Path(__file__).parents[2] / "examples" / "eight_schools.qvr")
CONFOUNDED = """\
object One : FinSet 1
program p : One -> One
    sample u <- Normal(0.0, 1.0)
    observe z <- Normal(0.0, 1.0)
    observe t <- Normal({t}, 1.0)
    observe m <- Normal(t, 1.0)
    observe y <- Normal({y}, 1.0)
    return y
program q : One -> One
    sample a <- Normal(0.0, 1.0)
    return a
export p
"""


def ran(*arguments: str, input: str | None = None) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["graph", *arguments], input=input)
    return found.exit_code, found.output


def test_names_with_what_they_read() -> None:
    code, text = ran(SCHOOLS)
    lines = [line.split() for line in text.splitlines()]
    assert code == 0 and lines[0] == ["eight_schools"]
    assert ["theta", "let", "[School]", "←", "mu,", "tau,", "z"] in lines
    assert ["effect", "observed", "[School]", "←", "theta,", "standard_error"] in lines
    assert ["effect", "mu,", "tau,", "z"] in lines[lines.index(["colliders"]) :]


@pytest.mark.parametrize(
    ("question", "more", "code", "said"),
    [
        ("mu, tau", (), 0, "independent: `mu` and `tau`\n"),
        ("mu, effect | theta", (), 0, "independent: `mu` and `effect` given `theta`\n"),
        ("mu, tau", ("--given-data",), 1, "by mu → theta (→ effect, given) ← tau\n  whatever other sites are given\n"),
        ("mu, effect", (), 1, "independent where `theta` is given\n"),
        ("mu, theta | mu", (), 2, "`mu` is asked about and given as well\n"),
        ("mu, efect", (), 2, "has no `efect`; did you mean `effect`?\n"),
        ("mu, standard_error", (), 2, "`standard_error` is data: a constant, no variable\n"),
        ("mu", (), 2, "with two names in front, not 'mu'\n"),
    ],
)
def test_independence(question: str, more: tuple[str, ...], code: int, said: str) -> None:
    found, text = ran(SCHOOLS, "--independent", question, *more)
    assert found == code and text.endswith(said), text


@pytest.mark.parametrize(
    ("t", "y", "said"),
    [
        ("0.0", "t", "nothing has to be adjusted for\n"),
        ("z", "t + z", "adjust for `z`\n"),
        ("u", "m + u", "with latents, `u` would\n  by the front door: it goes through `m`\n"),
        ("u", "u", "`t` has no effect on `y`: no arrows lead from one to the other\n"),
    ],
)
def test_what_an_effect_is_adjusted_for(t: str, y: str, said: str) -> None:
    code, text = ran("-", "--effect", "t -> y", input=CONFOUNDED.format(t=t, y=y))
    assert code == 0 and text.endswith(said), text


def test_a_program_by_its_name_and_one_that_is_not_there() -> None:
    text = CONFOUNDED.format(t="u", y="t")
    assert ran("-", "q", input=text)[1].splitlines() == ["q", "  a  latent"]
    assert ran("-", "r", input=text) == (2, "qvr: there is no program `r`; it has `p`, `q`\n")


def test_files(tmp_path: Path) -> None:
    for name in ("graph.json", "graph.graphml", "graph.txt"):
        assert ran(SCHOOLS, "-o", str(tmp_path / name))[0] == 0
    found = json.loads((tmp_path / "graph.json").read_text(encoding="utf-8"))
    assert {"source": "mu", "target": "theta", "lags": [0], "elements": "all", "gathered": False} in found["edges"]
    assert 'attr.name="lags"' in (tmp_path / "graph.graphml").read_text(encoding="utf-8")
    assert (tmp_path / "graph.txt").read_text(encoding="utf-8").startswith("eight_schools\n")
