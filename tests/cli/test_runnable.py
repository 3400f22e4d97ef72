"""What of a file can be run: programs, templates with their parameters, arrows with a density; all else says why."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from click.testing import Result
from typer.testing import CliRunner

from qvr_core import dsl
from qvr_core.cli import app
from qvr_core.runs.record.protocol import Finished
from qvr_core.runs.record.store import RunStore

TEMPLATE = """\
object R : FinSet 4
program p(alpha : Real, s : Real) : R -> R
    sample mu <- Normal(alpha, s)
    observe y : R <- Normal(mu, 1.0)
    return mu
"""
ARROWS = """\
object X : Real 1
object S : FinSet 3
morphism f : X -> X [role=kernel, param_source=linear] ~ Normal
morphism g : X -> X [role=linear]
morphism n : X -> X [role=norm]
morphism w : S -> S [role=latent]
let fn = f >> n
export f
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.qvr").write_text(TEMPLATE)
    (tmp_path / "a.qvr").write_text(ARROWS)
    (tmp_path / "y.csv").write_text("y\n1.0\n2.0\n3.0\n4.0\n")
    (tmp_path / "line.csv").write_text("x,value\n" + "".join(f"{i / 10},{i / 5 + 1}\n" for i in range(40)))
    return tmp_path


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_a_template_with_its_parameters(folder: Path) -> None:
    """A tight prior far from the data holds the posterior: mean (alpha / s² + Σ y) / (1 / s² + 4)."""
    words = ["run", "svi", "t.qvr", "--data", "csv:y.csv", "--steps", "600", "--learning-rate", "0.05"]
    done = qvr(*words, "--threads", "1", "--param", "alpha=10", "--param", "s=0.5")
    assert done.exit_code == 0, done.output
    ending = RunStore(folder).open("last").ending()
    assert isinstance(ending, Finished)
    assert ending.posterior[0].mean == pytest.approx((10 / 0.25 + 10) / (1 / 0.25 + 4), abs=0.15)
    # The parameters belong to the run.
    assert qvr("run", "svi", "--resume", "last", "--steps", "605").exit_code == 0
    assert qvr("check", "t.qvr", "--run", "last").exit_code == 0
    (folder / "qvr.toml").write_text("[run.p]\nsteps = 2\nparam = { alpha = 1.0, s = 2 }\n")
    assert qvr("run", "svi", "t.qvr").exit_code == 0


@pytest.mark.parametrize(
    ("param", "said"),
    [
        ((), "`p` is a template of alpha : Real, s : Real: alpha, s must be given"),
        (("--param", "alpha=1"), "s must be given"),
        (("--param", "alpha=1,s=R"), "`s` wants a number"),
        (("--param", "alpha=1,s=1,t=2"), "`t`"),
        (("--param", "alhpa=1,s=1"), "did you mean `alpha`?"),
        (("--param", "alpha"), "`param` takes pairs such as alpha=1,beta=0.5"),
    ],
)
def test_parameters_that_do_not_fit(param: tuple[str, ...], said: str) -> None:
    done = qvr("run", "svi", "t.qvr", "--steps", "2", *param)
    assert done.exit_code == 2 and said in done.output, done.output
    assert "Traceback" not in done.output


def test_an_exported_arrow_is_fitted_to_its_values(folder: Path) -> None:
    words = ["run", "svi", "a.qvr", "--data", "csv:line.csv", "--steps", "1500", "--learning-rate", "0.02"]
    done = qvr(*words, "--seed", "1")
    assert done.exit_code == 0, done.output
    ending = RunStore(folder).open("last").ending()
    assert isinstance(ending, Finished) and ending.losses is not None
    first, last = ending.losses.first, ending.losses.mean_of_last
    # The line is exact: its density can only grow, far beyond that of unit noise.
    assert first is not None and last is not None and last < 0.5 < first


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("g", "`g : X -> X` is a function"),
        ("w", "`w` is a matrix of weights"),
        ("fn", "its value has no density"),
        ("nothing", "`nothing` is not a program of this file"),
    ],
)
def test_what_cannot_be_run_says_why(name: str, said: str) -> None:
    done = qvr("run", "svi", "a.qvr", "-p", name, "--steps", "2")
    assert done.exit_code == 2 and said in done.output, done.output


def test_an_exported_arrow_has_the_weights_that_programs_use() -> None:
    """What `export` and `part` give of a declared arrow is the arrow itself, not another with weights of its own."""
    source = """
object X : Real 2
morphism f : X -> X [role=linear]
morphism k : X -> X [role=kernel] ~ Normal
let twice = f >> f
program p(x) : X -> X
    let y = f(x)
    observe z <- k(y)
    return z
export {}
"""
    for exported in ("f", "k", "twice"):
        model = dsl.loads(source.format(exported))
        of_the_program = {id(weight) for weight in model.programs["p"].parameters()}
        for part in (model.morphism, model.part("f"), model.part("k"), model.part("twice")):
            assert {id(weight) for weight in part.parameters()} <= of_the_program


def test_an_arrow_from_python() -> None:
    model = dsl.loads(ARROWS).observed("f")
    x, value = torch.randn(5, 1), torch.randn(5, 1)
    weight, bias = (parameter for _, parameter in model.named_parameters())
    loc, raw = (x @ weight.T + bias).chunk(2, -1)
    scale = torch.nn.functional.softplus(raw + 0.541325) + 0.001
    by_hand = torch.distributions.Normal(loc, scale).log_prob(value).sum(-1)
    assert torch.allclose(model.log_joint(x, {"value": value}), by_hand, atol=1e-5)
