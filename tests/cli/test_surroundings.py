"""What the machine refuses (a full disk, a folder that cannot be written, a package that is absent) is one sentence."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """\
object Ü : FinSet 2
program p : FinSet 2 -> FinSet 2
    sample mu <- Normal(0.0, 1.0)
    observe y <- Normal(mu, 1.0)
    return mu
"""
FIT = ("run", "svi", "p.qvr", "--steps", "2", "--threads", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.qvr").write_text(SOURCE.replace("Ü", "U"), encoding="utf-8")
    return tmp_path


def qvr(*arguments: str, cwd: Path, out: Path | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own; stdout goes to `out`, where it is given."""
    command = [sys.executable, "-m", "qvr_core.cli", *arguments]
    described = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    with open(out or os.devnull, "wb") as file:
        stdout = file if out else subprocess.PIPE
        return subprocess.run(command, cwd=cwd, env=described, stdout=stdout, stderr=subprocess.PIPE, check=False)


def one_sentence(done: subprocess.CompletedProcess[bytes]) -> str:
    """What was said last; nothing of a traceback is there."""
    said = done.stderr.decode()
    assert done.returncode == 1 and "Traceback" not in said and "Exception ignored" not in said, said
    return said.splitlines()[-1]


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        ("check", "p.qvr"), ("check", "p.qvr", "--json"), ("diagram", "p.qvr"), ("runs",), ("schema",), ("--help",),
        FIT, (*FIT, "--json"),
    ],
)  # fmt: skip
@pytest.mark.sampled(3)
def test_an_output_that_is_full(command: tuple[str, ...], folder: Path) -> None:
    assert one_sentence(qvr(*command, cwd=folder, out=Path("/dev/full"))) == "qvr: the output: No space left on device"


@pytest.mark.process
def test_a_fit_whose_events_have_nowhere_to_go_is_kept(folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    one_sentence(qvr(*FIT[:3], "--steps", "1000000", "--json", cwd=folder, out=Path("/dev/full")))
    (listed,) = json.loads(qvr("runs", "--json", cwd=folder).stdout)
    assert listed["status"] == "cancelled"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody may make one")
def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    done = qvr("run", "svi", str(folder / "p.qvr"), cwd=Path("/proc/self"))
    assert "runs cannot be stored in /proc/" in one_sentence(done)


@pytest.mark.long
def test_a_terminal_without_the_letters(folder: Path) -> None:
    (folder / "u.qvr").write_text(SOURCE + "let broken = ü\n", encoding="utf-8")
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    done = qvr("check", "u.qvr", cwd=folder, **ascii_only)
    assert done.returncode == 1 and b"Traceback" not in done.stderr and b"error[" in done.stdout
    found = json.loads(qvr("check", "u.qvr", "--json", cwd=folder, **ascii_only).stdout.decode("utf-8"))
    assert any("Ü" in one["message"] or "ü" in one["message"] for one in found)
    done = qvr(*FIT, cwd=folder, **ascii_only)
    assert done.returncode == 0 and b"finished 2 steps" in done.stdout
    table = qvr("runs", cwd=folder, **ascii_only)
    assert table.returncode == 0 and b"finished" in table.stdout and table.stdout.isascii()


@pytest.mark.parametrize("name", ["job.json", "program.qvr"])
def test_a_run_that_lacks_a_file(name: str, folder: Path) -> None:
    assert qvr(*FIT, cwd=folder).returncode == 0
    (run,) = (folder / ".qvr" / "runs").iterdir()
    (run / name).unlink()
    for command in (
        ("runs", "show", "last"),
        ("runs", "compare", "last", "last"),
        ("sample", "last"),
        ("run", "svi", "--resume", "last", "--steps", "4"),
    ):
        assert f"{name} is missing" in one_sentence(qvr(*command, cwd=folder))
    assert qvr("runs", cwd=folder).returncode == 0


HIDE = """\
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Hidden())
"""


@pytest.fixture
def without_torch(tmp_path: Path) -> dict[str, str]:
    """The environment of an interpreter that has no torch."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(HIDE)
    return {"PYTHONPATH": os.pathsep.join((str(hidden), str(ROOT)))}


NETWORK = """\
object Token : FinSet 5
morphism word : Token -> Token [role=kernel] ~ Categorical
program network : Token -> Token
    observe y <- word
    return y
"""


def test_a_worker_without_torch(folder: Path, without_torch: dict[str, str]) -> None:
    (folder / "p.qvr").write_text(NETWORK)
    said = qvr(*FIT, cwd=folder, **without_torch).stderr.decode()
    assert f"runs need the package `torch`, which {sys.executable} does not have" in said
    assert "-m pip install 'qvr-lsp[run]'" in said and "Traceback" not in said
    # What needs it in this process says the same.
    assert qvr(*FIT, cwd=folder).returncode == 0
    assert "needs the package `torch`" in one_sentence(qvr("sample", "last", cwd=folder, **without_torch))


def test_in_one_terminal_the_table_stands_below_the_bar(tmp_path: Path) -> None:
    (tmp_path / "m.qvr").write_text(
        "program p : FinSet 2 -> FinSet 2\n    sample mu <- Normal(0.0, 1.0)\n"
        "    observe y <- Normal(mu, 1.0)\n    return mu\n"
    )
    (tmp_path / "d.csv").write_text("y\n1\n2\n")
    command = [sys.executable, "-m", "qvr_core.cli", "run", "nuts", "m.qvr", "--data", "csv:d.csv",
               "--warmup", "20", "--samples", "20", "--chains", "1"]  # fmt: skip
    ours, terminal = pty.openpty()
    child = subprocess.Popen(
        command, cwd=tmp_path, stdout=terminal, stderr=terminal, env={**os.environ, "TERM": "xterm"}
    )
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    child.wait(HANG)
    text = shown.decode()
    assert text.rindex("NUTS ") < text.index("┏"), text
    assert "\n" in text[text.rindex("NUTS ") : text.index("┏")]
