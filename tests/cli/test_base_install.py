"""Without the extra `run`, so without torch and numpy: every subcommand works or says in a sentence what it needs, and
the server answers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections import deque
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from qvr_core.cli import COMMANDS
from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
EIGHT = str(ROOT / "examples" / "eight_schools.qvr")


def needed(requirements: Iterable[str]) -> dict[str, Distribution]:
    """The distributions of some requirements, and all that they need without extras."""
    known: dict[str, Distribution] = {}
    pending = deque(requirements)
    while pending:
        requirement = Requirement(pending.popleft())
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in known:
            known[requirement.name] = distribution(requirement.name)
            pending += known[requirement.name].requires or ()
    return known


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds what `pip install qvr-lsp` brings."""
    folder = tmp_path_factory.mktemp("base") / "env"
    venv.create(folder, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for one in needed(project["dependencies"]).values():
        for top in {file.parts[0] for file in one.files or () if file.parts[0] not in ("..", "__pycache__")}:
            place = Path(str(one.locate_file(top)))
            if not top.endswith(".pth") and place.exists() and not (site / top).exists():
                (site / top).symlink_to(place)
    (site / "qvr.pth").write_text(str(ROOT))
    own = site / "qvr_lsp-0.dist-info"
    own.mkdir()
    (own / "METADATA").write_text("Metadata-Version: 2.1\nName: qvr-lsp\nVersion: 0\n")
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    (own / "entry_points.txt").write_text(f"[console_scripts]\n{scripts}")
    return folder / "bin" / "python"


def run(base: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [str(base), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
    )


def test_it_holds_neither_torch_nor_numpy(base: Path, tmp_path: Path) -> None:
    found = "import importlib.util as u; print([n for n in ('torch', 'numpy', 'polars', 'rich') if u.find_spec(n)])"
    assert run(base, "-c", found, cwd=tmp_path).stdout == "['rich']\n"


WORKS = {
    "check": ("check", EIGHT),
    "explain": ("explain", "axes-mismatch"),
    "format": ("format", "--check", EIGHT),
    "diagram": ("diagram", EIGHT),
    "graph": ("graph", EIGHT),
    "runs": ("runs",),
    "export": ("export", EIGHT, "--to", "pymc"),
    "schema": ("schema",),
    "lsp": ("lsp", "--help"),
    "play": ("play", "--help"),
    "summary": ("summary", "--help"),
    "report": ("report", "--help"),
    "plot": ("plot", "--help"),
}
LACKS = {
    "init": ("init", "project"),
    "new": ("new", "y ~ x", "--data", "csv:t.csv"),
    "run": ("run", "nuts", EIGHT),
    "check-fit": ("check-fit", "last"),
    "cv": ("cv", "last"),
    "loo": ("loo", "last", "--exact"),
    "calibrate": ("calibrate", EIGHT),
    "sample": ("sample", "last"),
}
"""`last` is a run of an environment that had the extra."""


def test_every_subcommand_is_tried() -> None:
    assert {*WORKS, *LACKS} == set(COMMANDS)


@pytest.mark.parametrize("name", WORKS)
def test_what_works(name: str, base: Path, tmp_path: Path) -> None:
    done = run(base, "-m", "qvr_core.cli", *WORKS[name], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout or name == "format"


@pytest.fixture(scope="module")
def with_a_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that has finished."""
    folder = tmp_path_factory.mktemp("fitted")
    few = ("--warmup", "10", "--samples", "10", "--chains", "1")
    done = subprocess.run(
        [sys.executable, "-m", "qvr_core.cli", "run", "nuts", EIGHT, *few],
        cwd=folder, capture_output=True, text=True, check=False, timeout=HANG,
    )  # fmt: skip
    assert [*folder.glob(".qvr/runs/*/posterior.nc")], done.stderr
    return folder


@pytest.mark.parametrize("name", LACKS)
def test_what_needs_more_says_so(name: str, base: Path, tmp_path: Path, with_a_run: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n1,2\n2,3\n")
    shutil.copytree(with_a_run / ".qvr", tmp_path / ".qvr")
    done = run(base, "-m", "qvr_core.cli", *LACKS[name], cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stderr.strip().splitlines()
    assert len(lines) <= 2, "the sentence, and its fix"
    line = " ".join(lines)
    assert re.search(r"needs? the package `(torch|numpy|polars)`, which .* does not have", line)
    assert f"{base} -m pip install 'qvr-lsp[run]'" in line


def test_the_server_answers(base: Path, tmp_path: Path) -> None:
    """Initialisation, an open document with its diagnostics and a hover, the end."""
    done = run(base, str(ROOT / "scripts" / "lsp_round.py"), str(base), "-m", "qvr_lsp.server", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "compose-mismatch" in done.stdout and "16 parameters" in done.stdout
