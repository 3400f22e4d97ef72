"""A run says how many elements of a series it is given and does not score (finding A9)."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from qvr_core.analysis import analyse
from qvr_core.cli import app
from qvr_core.runs.prepare.given_elements import given_elements

SEASONS = """\
object Quarter : FinSet 12
object Season : FinSet 4
program seasons : Quarter -> Quarter
    sample alpha <- Beta(2.0, 2.0)
    sample gamma <- Beta(2.0, 2.0)
    sample level0 <- Normal(0.0, 10.0)
    sample season0[k : Season] <- Normal(0.0, 1.0)
    sample sigma <- HalfNormal(1.0)
    let (level, season)[t : Quarter] = (
        alpha * (y[t] - season[t - 4]) + (1 - alpha) * level[t - 1],
        gamma * (y[t] - level[t]) + (1 - gamma) * season[t - 4]
    ) from (level0, season0)
    observe y[t : Quarter] <- Normal(level[t - 1] + season[t - 4], sigma)
    return alpha
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "", "the first element of `y` is given and not scored"),
        ("level[t - 1] + season[t - 4]", "0.5 * y[t - 1]", "the first element of `y` is given and not scored"),
        ("level[t - 1] + season[t - 4]", "alpha", ""),
        ("season[t - 4], sigma)", "season[t - 4], sigma) from Normal(0.0, 10.0)", ""),
    ],
)
def test_a9_what_is_given_and_not_scored(old: str, new: str, words: str) -> None:
    program = analyse(SEASONS.replace(old, new) if old else SEASONS).model.programs["seasons"]
    assert given_elements(program) == words


def test_a9_a_run_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.qvr").write_text(SEASONS)
    (tmp_path / "d.csv").write_text("y\n" + "\n".join(map(str, [1.0, 2.5, 3.0, 0.5] * 3)) + "\n")
    settings = ["--warmup", "5", "--samples", "5", "--chains", "1", "--engine", "plain"]
    ran = CliRunner().invoke(app, ["run", "nuts", "m.qvr", "--data", "csv:d.csv", *settings])
    assert ran.exit_code == 0, ran.output
    assert "the first element of `y` is given and not scored" in " ".join(ran.output.split())
