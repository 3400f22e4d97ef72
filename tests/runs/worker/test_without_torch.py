"""Chains and fits of statistical programs run in a worker that never loads torch, and give what they give with it."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.runs.fit.step_engine import chosen_steps
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import CheckpointWritten, Event, Failed, Finished, Message, Started, parse_event
from qvr_core.runs.record.store import RunDirectory, RunStore
from tests.examples.statistics.programs import given, prepared
from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[3]
SHORT = ["--warmup", "50", "--samples", "50", "--chains", "2", "--seed", "3"]

WATCHING = """
import os, sys
UNWANTED = ("torch", "scipy", "arviz_stats", "dask", "distributed", "qvr_core.cluster.dispatch")
def told(event, given):
    if event == "import" and given[0] in UNWANTED:
        with open(os.environ["QVR_TEST_TOLD"], "a") as file:
            file.write(given[0] + "\\n")
sys.addaudithook(told)
"""
MISSING = """
from importlib.machinery import PathFinder
really = PathFinder.find_spec
def found(name, *rest):
    return None if name.partition(".")[0] == "torch" else really(name, *rest)
PathFinder.find_spec = found
"""


def python(folder: Path, site: str, *arguments: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Python in interpreters of its own, and what they imported of what `WATCHING` looks for."""
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(site)
    told = folder / "told"
    told.write_text("")
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, capture_output=True, text=True, check=False, timeout=HANG,
        env={**os.environ, "QVR_TEST_TOLD": str(told), "PYTHONPATH": f"{folder / 'site'}{os.pathsep}{ROOT}"},
    )  # fmt: skip
    return done, set(told.read_text().split())


def qvr(folder: Path, site: str, *arguments: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    return python(folder, site, "-m", "qvr_core.cli", *arguments)


def events_of(done: subprocess.CompletedProcess[str]) -> list[Event]:
    assert done.returncode == 0, done.stdout + done.stderr
    return [parse_event(line) for line in done.stdout.splitlines()]


def run(folder: Path, site: str, file: Path, *flags: str) -> tuple[list[Event], set[str]]:
    """The events of `qvr run nuts`, and what it imported."""
    done, loaded = qvr(folder, site, "run", "nuts", str(file), "--json", *SHORT, *flags)
    return events_of(done), loaded


def fit(folder: Path, site: str, *flags: str) -> tuple[list[Event], set[str]]:
    """The events of `qvr run svi`, and what it imported."""
    done, loaded = qvr(folder, site, "run", "svi", "--json", *flags)
    return events_of(done), loaded


@pytest.mark.parametrize("name", ["radon", "missing_predictors"])
def test_a_run_loads_no_torch_and_draws_what_it_draws_with_it(name: str, tmp_path: Path) -> None:
    events, loaded = run(tmp_path, WATCHING, ROOT / "examples" / "statistics" / f"{name}.qvr")
    assert loaded == set()
    (begun,) = [event for event in events if isinstance(event, Started)]
    assert (begun.engine, begun.device) == ("compiled", "cpu") and isinstance(events[-1], Finished)
    program = prepared(name)
    chains = MCMC(NUTSKernel(step_size=0.1), 50, 50, 2, seed=3)
    wanted = chains.run(program.model, None, given(program)).samples
    with xarray.open_datatree(Path(begun.directory) / "posterior.nc", engine="h5netcdf") as tree:
        for site, values in wanted.items():
            np.testing.assert_allclose(tree["posterior"][site].values, values.numpy(), rtol=1e-9, atol=1e-9)


LOOKING = """
program p : Real 1 -> Real 1
    sample a <- Normal(0.0, 1.0)
    observe y <- Normal(sort([a, 0.3])[0], 1.0)
    return a
"""


@pytest.mark.long
def test_a_program_that_arrays_cannot_trace_begins_anew_with_torch(tmp_path: Path) -> None:
    (tmp_path / "p.qvr").write_text(LOOKING)
    events, loaded = run(tmp_path, WATCHING, tmp_path / "p.qvr")
    assert "torch" in loaded
    (begun,) = [event for event in events if isinstance(event, Started)]
    assert begun.engine == "plain" and isinstance(events[-1], Finished)
    assert any(isinstance(event, Message) and "not as machine code" in event.text for event in events)


def test_where_torch_is_not_installed_chains_run(tmp_path: Path) -> None:
    events, _ = run(tmp_path, MISSING, ROOT / "examples" / "statistics" / "meta_analysis.qvr")
    assert isinstance(events[-1], Finished) and events[-1].posterior


CONJUGATE = """\
object Row : FinSet 8
program location : Row -> Row
    sample mu <- Normal(1.0, 2.0)
    observe y : Row <- Normal(mu, 1.5)
    return mu
"""
Y = (0.3, 1.2, -0.7, 2.5, 1.1, 0.4, 1.9, 0.1)


@pytest.fixture
def conjugate(tmp_path: Path) -> str:
    (tmp_path / "y.csv").write_text("\n".join(["y", *map(str, Y)]) + "\n")
    (tmp_path / "m.qvr").write_text(CONJUGATE)
    return "m.qvr"


def losses_here(run: RunDirectory) -> list[float]:
    """Those of the same job in this process, which has torch."""
    job = run.job()
    made = SviFit(prepare(job, analysed(job)), Stop())
    made.fast = chosen_steps(made, lambda _: None)
    assert made.fast.engine == "compiled"
    return [made.advance()[0] for _ in range(job.config.steps)]


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("radon", ["--guide", "normal"]),
        ("hidden_markov", ["--guide", "multivariate_normal", "--optimizer", "adamw"]),
        ("missing_predictors", ["--guide", "normal", "--optimizer", "rmsprop", "--clip-gradient", "5"]),
        ("garch", ["--guide", "laplace", "--optimizer", "adagrad"]),
        (
            "varying_slopes",
            ["--objective", "iwae", "--particles", "4", "--optimizer", "sgd", "--learning-rate", "1e-4"],
        ),
    ],
)
@pytest.mark.sampled(3)
def test_a_fit_loads_no_torch_and_takes_the_steps_that_it_takes_with_it(
    name: str, flags: list[str], tmp_path: Path
) -> None:
    file = str(ROOT / "examples" / "statistics" / f"{name}.qvr")
    events, loaded = fit(tmp_path, WATCHING, file, "--steps", "60", *flags)
    assert loaded == set()
    (begun,) = [event for event in events if isinstance(event, Started)]
    assert begun.engine == "compiled" and isinstance(events[-1], Finished) and events[-1].posterior
    stored = RunDirectory(Path(begun.directory))
    assert stored.posterior.exists()
    assert losses_of(stored) == pytest.approx(losses_here(stored), rel=1e-9)


@pytest.mark.parametrize("guide", ["normal", "multivariate_normal", "low_rank", "laplace"])
@pytest.mark.sampled(2)
def test_where_torch_is_not_installed_fits_end_at_the_posterior(guide: str, tmp_path: Path, conjugate: str) -> None:
    flags = ["--data", "csv:y.csv", "--guide", guide, "--steps", "1500", "--learning-rate", "0.05"]
    events, _ = fit(tmp_path, MISSING, conjugate, *flags)
    last = events[-1]
    assert isinstance(last, Finished) and last.warnings == ()
    precision = 1 / 4.0 + len(Y) / 2.25
    (row,) = last.posterior
    assert row.mean == pytest.approx((1.0 / 4.0 + sum(Y) / 2.25) / precision, abs=0.1 * precision**-0.5)
    assert row.sd == pytest.approx(precision**-0.5, rel=0.1)
    assert last.losses is not None and last.losses.mean_of_last is not None
    if guide != "laplace":  # whose loss is that of the mode
        mean, n = 1.0, len(Y)
        covariance = 2.25 * np.eye(n) + 4.0
        off = np.array(Y) - mean
        evidence = -0.5 * (off @ np.linalg.solve(covariance, off) + np.linalg.slogdet(2 * math.pi * covariance)[1])
        assert last.losses.mean_of_last == pytest.approx(-evidence, abs=0.05)


@pytest.mark.long
def test_where_torch_is_not_installed_a_fit_goes_on_as_if_nothing_had_been(tmp_path: Path, conjugate: str) -> None:
    flags = ["--data", "csv:y.csv", "--schedule", "constant", "--checkpoint-steps", "30"]
    fit(tmp_path, MISSING, conjugate, *flags, "--steps", "80")
    whole = losses_of(RunStore(tmp_path).open("last"))
    events, _ = fit(tmp_path, MISSING, conjugate, *flags, "--steps", "50")
    assert any(isinstance(event, CheckpointWritten) for event in events)
    events, _ = fit(tmp_path, MISSING, "--resume", "last", "--steps", "80")
    assert isinstance(events[-1], Finished) and events[-1].step == 80
    assert losses_of(RunStore(tmp_path).open("last")) == whole


LOST = CONJUGATE.replace("Normal(mu, 1.5)", "Normal(mu / (mu - mu), 1.5)")


def test_a_bound_that_is_no_number_names_its_site_without_torch(tmp_path: Path, conjugate: str) -> None:
    (tmp_path / conjugate).write_text(LOST)
    done, loaded = qvr(tmp_path, WATCHING, "run", "svi", conjugate, "--json", "--data", "csv:y.csv", "--steps", "50")
    last: Any = parse_event(done.stdout.splitlines()[-1])
    assert isinstance(last, Failed) and last.code == "not-finite" and loaded == set()
    assert "site `y`" in last.message
    assert last.range is not None and last.range.start.line == 3


@pytest.mark.statistical
def test_parts_of_the_rows_are_fitted_with_torch_where_it_is_there(tmp_path: Path, conjugate: str) -> None:
    flags = ["--data", "csv:y.csv", "--batch-size", "4", "--learning-rate", "0.05", "--steps", "400"]
    ends: list[Finished] = []
    for site, engine in ((WATCHING, "plain"), (MISSING, "compiled")):
        events, loaded = fit(tmp_path, site, conjugate, *flags)
        (begun,) = [event for event in events if isinstance(event, Started)]
        assert begun.engine == engine and ("torch" in loaded) == (engine == "plain")
        assert isinstance(events[-1], Finished)
        ends.append(events[-1])
    (theirs,), (ours,) = (end.posterior for end in ends)
    assert ours.mean == pytest.approx(theirs.mean, abs=0.1) and ours.sd == pytest.approx(theirs.sd, rel=0.2)


READING = """
import json, os, sys
from qvr_core.cli import main
for command in json.loads(sys.argv[1]):
    print("##", *command, flush=True)
    try:
        sys.argv = ["qvr", *command]
        main()
    except SystemExit as end:
        assert end.code in (0, 1, None), command
    sys.stdout.flush()
    with open(os.environ["QVR_TEST_TOLD"]) as file:
        loaded = file.read()
    assert not loaded, (command, loaded)
"""


@pytest.mark.long
def test_what_reads_a_run_loads_no_torch_either(tmp_path: Path, conjugate: str) -> None:
    fit(tmp_path, WATCHING, conjugate, "--data", "csv:y.csv", "--steps", "300")
    commands = (
        ["check-fit", "last"],
        ["sample", "last", "-n", "20", "-o", "draws.nc"],
        ["sample", "last", "-n", "20", "--data", "csv:y.csv"],
        ["sample", "last", "--prior", "-n", "20"],
        ["sample", conjugate, "--prior", "--data", "csv:y.csv", "-n", "20"],
        ["runs", "compare", "last", "last"],
        ["summary", "last"],
        ["report", "last", "-o", "report.html"],
        ["calibrate", conjugate, "--data", "csv:y.csv", "--replicates", "20"],
    )
    done, loaded = python(tmp_path, WATCHING, "-c", READING, json.dumps(commands))
    assert done.returncode == 0 and loaded == set(), done.stdout + done.stderr
    said = re.split(r"^## .*$", done.stdout, flags=re.MULTILINE)[1:]
    assert len(said) == len(commands) and all(one.strip() for one in said), done.stdout


@pytest.mark.long
def test_a_command_that_arrays_cannot_compute_begins_anew_with_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.qvr").write_text(LOOKING.replace("observe y", "observe y[i : FinSet 4]"))
    (tmp_path / "y.csv").write_text("y\n0.3\n1.2\n-0.7\n2.5\n")
    monkeypatch.chdir(tmp_path)
    flags = ["--data", "csv:y.csv", "--warmup", "20", "--samples", "20", "--chains", "1", "--engine", "plain"]
    drawn = CliRunner().invoke(app, ["run", "nuts", "p.qvr", *flags])
    assert drawn.exit_code == 0, drawn.output
    done, loaded = qvr(tmp_path, WATCHING, "cv", "last", "--folds", "2", "--json")
    assert done.returncode in (0, 1) and "torch" in loaded, done.stderr
    assert json.loads(done.stdout)["folds"] == 2
    done, _ = qvr(tmp_path, MISSING, "calibrate", "p.qvr", "--replicates", "20")
    assert done.returncode == 1 and "`torch`" in done.stderr
