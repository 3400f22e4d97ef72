"""Without the extra `run`, so without torch and numpy: every subcommand works or says in a sentence what it needs, and
the server answers."""

from __future__ import annotations

import os
import pty
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
from typing import Any

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


def run(base: Path, *arguments: str, cwd: Path, stdin: str | int = "") -> subprocess.CompletedProcess[str]:
    """A command; `stdin` is what is piped into it, or the number of an open file."""
    given: dict[str, Any] = {"input": stdin} if isinstance(stdin, str) else {"stdin": stdin}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [str(base), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        **given,
    )


def test_it_holds_neither_torch_nor_numpy(base: Path, tmp_path: Path) -> None:
    found = "import importlib.util as u; print([n for n in ('torch', 'numpy', 'polars', 'rich') if u.find_spec(n)])"
    assert run(base, "-c", found, cwd=tmp_path).stdout == "['rich']\n"


WORKS = {
    "check": ("check", EIGHT),
    "explain": ("explain", "axes-mismatch"),
    "format": ("format", "--check", EIGHT),
    "fix": ("fix", "--check", EIGHT),
    "diagram": ("diagram", EIGHT),
    "graph": ("graph", EIGHT),
    "runs": ("runs",),
    "export": ("export", EIGHT, "--to", "pymc"),
    "repl": ("repl", EIGHT),
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
@pytest.mark.sampled(2)
def test_what_works(name: str, base: Path, tmp_path: Path) -> None:
    done = run(base, "-m", "qvr_core.cli", *WORKS[name], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout or name in ("format", "fix")


PROMPTED = """\
mu + tau
sqrt(2) * 3
:type theta
:info Normal
:diagram
morphism f : School -> Real 2 [role=embed]
:list
"""


def test_the_prompt_answers_without_anything_more(base: Path, tmp_path: Path) -> None:
    done = run(base, "-m", "qvr_core.cli", "repl", EIGHT, cwd=tmp_path, stdin=PROMPTED)
    assert (done.returncode, done.stderr) == (0, "")
    for said in (
        "mu + tau : Real 1",
        "= 4.242640687",
        "theta : School",
        "Bell curve",
        "╰───●  effect",
        "f : School => Real 2",
    ):
        assert said in done.stdout


def test_a_fit_at_the_prompt_says_what_it_needs(base: Path, tmp_path: Path) -> None:
    done = run(base, "-m", "qvr_core.cli", "repl", EIGHT, cwd=tmp_path, stdin=":run nuts\n:run svi\n1 + 1\n")
    assert done.returncode == 1 and "1 + 1 : Real 1 = 2" in done.stdout
    said = done.stdout + done.stderr
    assert len(re.findall(r"needs? the package `(torch|numpy|polars)`, which .* does not have", said)) == 2
    assert said.count(f"{base} -m pip install 'qvr-lsp[run]'") == 2


def test_a_prompt_in_a_terminal_says_what_it_needs(base: Path, tmp_path: Path) -> None:
    ours, terminal = pty.openpty()
    done = run(base, "-m", "qvr_core.cli", "repl", cwd=tmp_path, stdin=terminal)
    os.close(ours)
    os.close(terminal)
    assert (done.returncode, done.stdout) == (1, "")
    lacks = f"this needs the package `prompt_toolkit`, which {base} does not have"
    assert done.stderr == f"qvr: {lacks}; it is installed by: {base} -m pip install 'qvr-lsp[repl]'\n"


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
@pytest.mark.sampled(3)
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
