"""Analyses of real data: programs are clean, each page is walked as it stands, posteriors are those of NumPyro."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

from qvr_core.analysis import Analyzer
from qvr_core.runs.record.store import RunStore
from qvr_core.semantics.types.diagnostics import Severity
from tests.forks import shell_path
from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
ANALYSES = ROOT / "examples" / "analyses"
NAMES = sorted(path.stem for path in ANALYSES.glob("?*.qvr"))
PARTS = {"a prior predictive": r"qvr sample \w+\.qvr --prior", "a fit": r"qvr run nuts", "its checks": r"qvr check-fit",
         "a posterior predictive": r"qvr sample \w+ --draws", "a comparison": r"qvr runs compare \w+ \w+",
         "a picture": r"python pictures\.py \w+\n"}  # fmt: skip
SHORT: dict[str, float | str] = {"warmup": 60, "samples": 40, "chains": 2, "target_accept": 0.8, "engine": "compiled"}
"""Of chains that need not agree, but must run: few, with large steps, on the engine of long ones."""


def page(name: str) -> str:
    return (ANALYSES / f"{name}.md").read_text(encoding="utf-8")


def steps(name: str) -> list[tuple[str, str]]:
    """Each command of a page, and the output shown behind it."""
    return re.findall(r"```sh\n(.*?)```\n(?:\n```text\n(.*?)```)?", page(name), re.DOTALL)


def checkout(folder: Path, lengths: dict[str, float | str] | None = None) -> Path:
    """A copy of the analyses, whose chains have these lengths."""
    copy = folder / "analyses"
    shutil.copytree(ANALYSES, copy, ignore=shutil.ignore_patterns("*.svg", "*.md", ".qvr", "__pycache__"))
    settings = (copy / "qvr.toml").read_text(encoding="utf-8")
    for key, value in (lengths or {}).items():
        settings = re.sub(rf"^{key} = .*\n", "", settings, flags=re.MULTILINE)
        settings = settings.replace("[defaults]\n", f"[defaults]\n{key} = {json.dumps(value)}\n")
    (copy / "qvr.toml").write_text(settings, encoding="utf-8")
    return copy


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": shell_path(), "COLUMNS": "160", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-euc", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


def labels(table: str) -> set[str]:
    """The first cell of each row of the tables in a text; a run by the name of its program."""
    rows = [line.split("│")[1].strip() for line in table.splitlines() if line[:1] == "│"]
    return {re.sub(r"^\d+-\d+-", "", cell) for cell in rows}


def test_every_analysis_has_its_parts() -> None:
    settings = tomllib.loads((ANALYSES / "qvr.toml").read_text(encoding="utf-8"))["run"]
    reference = json.loads((ANALYSES / "reference.json").read_text(encoding="utf-8"))
    for name in NAMES:
        files = [f"{name}{suffix}" for suffix in (".csv", ".md", ".svg")]
        assert [file for file in files if not (ANALYSES / file).exists()] == []
        assert name in settings and name in reference
        assert [part for part, command in PARTS.items() if not re.search(command, page(name))] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_clean_and_its_entry_names_its_data(name: str, tmp_path: Path) -> None:
    found = Analyzer((ANALYSES / f"{name}.qvr").read_text(encoding="utf-8")).snapshot().diagnostics()
    assert [item.message for item in found if item.code.severity is not Severity.HINT] == []
    done = shell(f"qvr check {name}.qvr", checkout(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


FEW = ("engel", "nile", "penguin_sex")
"""The ones that `make test` fits; `make statistical` walks the page of each, which begins with its fit."""


@pytest.mark.timeout(2 * HANG)
@pytest.mark.parametrize("name", FEW)
def test_a_program_is_fitted_with_short_chains(name: str, tmp_path: Path) -> None:
    folder = checkout(tmp_path, SHORT)
    done = shell(f"qvr run nuts {name}.qvr", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    run = RunStore(folder).open(name)
    assert run.status() == "finished"
    with xarray.open_dataset(run.posterior, group="log_likelihood", engine="h5netcdf") as pointwise:
        assert all(np.isfinite(value).all() for value in pointwise.values())


@pytest.mark.statistical
@pytest.mark.timeout(20 * HANG)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_walked_with_short_chains(name: str, tmp_path: Path) -> None:
    folder = checkout(tmp_path, SHORT)
    for command, shown in steps(name):
        done = shell(command, folder)
        # Chains as short as these are not to be trusted, and the check says so.
        assert done.returncode in ((0, 1) if "check-fit" in command else (0,)), (command, done.stdout + done.stderr)
        assert labels(shown) <= labels(done.stdout) | {"name", "run"}, command
    assert (folder / f"{name}.svg").stat().st_size > 1_000


@pytest.mark.statistical
@pytest.mark.timeout(20 * HANG)
@pytest.mark.parametrize("name", NAMES)
def test_a_posterior_is_that_of_numpyro(name: str, tmp_path: Path) -> None:
    """Means within a tenth of an sd, at the length that qvr.toml names, but for the Monte Carlo error of both."""
    folder = checkout(tmp_path)
    done = shell(f"qvr run nuts {name}.qvr", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    reference = json.loads((ANALYSES / "reference.json").read_text(encoding="utf-8"))[name]
    with xarray.open_dataset(RunStore(folder).open(name).posterior, group="posterior", engine="h5netcdf") as posterior:
        compared = [
            one for one in reference if one in posterior and posterior[one][0, 0].size == np.size(reference[one][0])
        ]
        assert len(compared) >= min(3, len(reference))
        far = {one: error for one in compared if (error := _difference(posterior[one], reference[one])) > 1}
    assert far == {}


def _difference(draws: xarray.DataArray, reference: list[Any]) -> float:
    """The largest difference of two means, as a part of what is allowed: 0.1 sd, or more Monte Carlo errors than 4."""
    from arviz_stats.base import array_stats

    mean, sd, error = (np.asarray(one).ravel() for one in reference)
    values = draws.to_numpy().reshape(*draws.shape[:2], -1)
    varying = sd > 0
    own = np.array([array_stats.mcse(values[..., at], chain_axis=0, draw_axis=1) for at in np.flatnonzero(varying)])
    allowed = np.maximum(0.1 * sd[varying], 4 * np.hypot(own, error[varying]))
    return float((abs(values.mean((0, 1)) - mean)[varying] / allowed).max())
