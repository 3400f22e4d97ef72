"""Replicates and refits on a cluster are those of this machine, to the last bit, whatever is lost on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.evaluation.refitted import Plan, Refits, read
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runs.worker import refits, replicates
from tests.cluster.processes import NO_NANNY, Started, killed, session_of, started, until
from tests.patience import HANG

NORMAL = """\
object Row : FinSet 10
program normal : Row -> Row
    sample mu <- Normal(0.0, 1.0)
    sample s <- HalfNormal(1.0)
    observe y : Row <- Normal(mu, s)
    return mu
"""
GROUPS = """\
object Row, Group : FinSet _
program groups : Row -> Row
    data group : Row -> Group
    data y : Row
    sample mu <- Normal(0.0, 2.0)
    sample a[g : Group] <- Normal(mu, 1.5)
    observe y[i : Row] <- Normal(a[group[i]], 1.0)
    return a
"""
TABLE = "group,y\nu,0.3\nu,-0.5\nu,1.1\nv,2.0\nv,2.9\nw,9.5\nw,-0.2\n"


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def told(*arguments: str) -> Any:
    done = qvr(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "m.qvr").write_text(GROUPS)
    (folder / "d.csv").write_text(TABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        short = ("--warmup", "200", "--samples", "200", "--chains", "2")
        done = qvr("run", "nuts", "m.qvr", "--data", "csv:d.csv", *short)
        assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def fitted(ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """That run, of which nothing is left out yet."""
    shutil.copytree(ran, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return RunDirectory(next(Path(".qvr/runs").resolve().iterdir()))


@pytest.mark.statistical
def test_replicates_are_those_of_this_machine(
    cluster: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.qvr").write_text(NORMAL)
    Path("wide.qvr").write_text(NORMAL.replace("Normal(0.0, 1.0)", "Normal(0.0, 3.0)"))
    # a few replicates in a unit, and one
    for seconds, more in ((0.05, ()), (0.0, ("--fit", "wide.qvr"))):
        monkeypatch.setattr(replicates, "SECONDS", seconds)
        asked = ("calibrate", "m.qvr", "--replicates", "25", *more)
        assert told(*asked, "--cluster", cluster.address) == told(*asked)
    Path("qvr.toml").write_text('[run.normal]\ncluster = "tcp://127.0.0.1:9"\n')
    monkeypatch.setattr("qvr_core.cluster.schedulers.CONNECT", 0.2)
    refused = qvr("calibrate", "m.qvr")
    assert refused.exit_code == 1 and "no scheduler answers at tcp://127.0.0.1:9" in refused.output
    assert "--cluster none" in refused.output


@pytest.mark.statistical
def test_refits_are_those_of_this_machine(cluster: Started, fitted: RunDirectory) -> None:
    # folds that nothing in the data says are in the next test
    for asked in (("cv", "last", "--by", "group"), ("loo", "last", "--exact")):
        plain = told(*asked)
        assert told(*asked, "--again", "--cluster", cluster.address) == plain
    assert plain["refitted"] >= 1


def at_refit(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], object]) -> None:
    """Do something once, when so many refits are kept."""
    write = Refits.write

    def counted(self: Refits, run: RunDirectory) -> None:
        write(self, run)
        if len(self.done) == number:
            act()

    monkeypatch.setattr(refits.Refits, "write", counted)


@pytest.mark.statistical
def test_what_is_lost_changes_no_refit(fitted: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = told("cv", "last", "--folds", "6")
    with started(tmp_path, 2, NO_NANNY) as own, monkeypatch.context() as patched:
        at_refit(patched, 2, lambda: killed(own.workers[0]))
        assert told("cv", "last", "--folds", "6", "--again", "--cluster", own.address) == plain
        scheduler = own.scheduler
        assert scheduler is not None
        at_refit(patched, 3, lambda: killed(scheduler))
        lost = qvr("cv", "last", "--folds", "6", "--again", "--cluster", own.address)
    assert lost.exit_code == 1 and f"the scheduler {own.address} is gone" in " ".join(lost.output.split())
    half = read(Plan(6).file(fitted))
    assert half is not None and len(half.done) >= 3 and not half.whole
    assert told("cv", "last", "--folds", "6") == plain


def test_what_no_cluster_can_do_is_told(cluster: Started, fitted: RunDirectory, tmp_path: Path) -> None:
    assert "`cluster` is `local[N]`" in qvr("cv", "last", "--cluster", "quark").output
    only = qvr("run", "svi", "m.qvr", "--cluster", "local[2]")
    assert only.exit_code == 2 and "--cluster is for chains (qvr run nuts)" in only.output


def test_an_interrupt_leaves_no_process(tmp_path: Path) -> None:
    """Ctrl-C of a terminal reaches all of its processes; what ends them is the command."""
    (tmp_path / "m.qvr").write_text(NORMAL)
    command = [sys.executable, "-m", "qvr_core.cli", "calibrate", "m.qvr", "--replicates", "10000"]
    with subprocess.Popen(
        [*command, "--cluster", "local[2]"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        until(
            lambda: (
                sum(b"qvr_core.runs.worker.cluster_units" in words for words in session_of(process.pid).values()) == 2
            )
        )
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=HANG)[1]
    assert process.returncode not in (0, -signal.SIGKILL)
    assert "Traceback" not in said, said
    until(lambda: not session_of(process.pid))


@pytest.mark.parametrize(("count", "threads"), [(1000, 2), (20, 2), (20, 64), (1, 4), (7, 3)])
@pytest.mark.parametrize("seconds", [0.03, 1e-9, 5.0])
def test_units_of_replicates_are_few_and_hold_each_once(count: int, threads: int, seconds: float) -> None:
    blocks = replicates._Blocks(count)  # pyright: ignore[reportPrivateUsage]
    first = [*blocks.first(threads)]
    rest = [*blocks.rest(seconds, threads)]
    assert [number for unit in (*first, *rest) for number in unit] == list(range(count))
    assert len(first) <= threads and not [*blocks.rest(seconds, threads)]
    if (count, threads, seconds) == (1000, 2, 0.03):
        assert {len(unit) for unit in first} == {3}  # the first of which makes the machine code
        assert len(rest) == 31  # of about a second
