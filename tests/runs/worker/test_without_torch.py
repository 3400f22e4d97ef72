"""Chains of statistical programs are run by a worker that never loads torch, and draw what they draw with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray

from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.runs.record.protocol import Event, Finished, Message, Started, parse_event
from tests.patience import HANG
from tests.programs.programs import given, prepared

ROOT = Path(__file__).resolve().parents[3]
SHORT = ["--warmup", "50", "--samples", "50", "--chains", "2", "--seed", "3"]

WATCHING = """
import os, sys
def told(event, given):
    if event == "import" and given[0] in ("torch", "scipy", "arviz_stats"):
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


def run(folder: Path, site: str, file: Path, *flags: str) -> tuple[list[Event], set[str]]:
    """The events of `qvr run nuts` in an interpreter of its own, and what it imported of what `WATCHING` looks for."""
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(site)
    told = folder / "told"
    told.write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "qvr_core.cli", "run", "nuts", str(file), "--json", *SHORT, *flags],
        cwd=folder, capture_output=True, text=True, check=False, timeout=HANG,
        env={**os.environ, "QVR_TEST_TOLD": str(told), "PYTHONPATH": f"{folder / 'site'}{os.pathsep}{ROOT}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [parse_event(line) for line in done.stdout.splitlines()], set(told.read_text().split())


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
