"""The recipes of docs/many-machines.md: what stands there is run, with real processes on loopback."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qvr_core.runs.record.netcdf import read_netcdf
from qvr_core.runs.record.store import RunStore
from tests.cluster.processes import session_of, until
from tests.forks import shell_path
from tests.patience import HANG
from tests.runs.fit.test_distributed import MODEL

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "many-machines.md").read_text()
SHORT = " --warmup 20 --samples 10"


def blocks(heading: str) -> list[str]:
    """The code of a section, with shorter chains."""
    section = PAGE.partition(f"### {heading}\n")[2].partition("\n###")[0].partition("\n## ")[0]
    found = [block for _, block in re.findall(r"```(sh|yaml)\n(.*?)```", section, re.DOTALL)]
    assert found, heading
    return [re.sub(r"(qvr run nuts .*)", rf"\1{SHORT}", block) for block in found]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that the page makes."""
    made, entered = re.findall(r"^    (.*)$", PAGE.partition("## Work on a cluster")[0], re.MULTILINE)
    shell(made, tmp_path)
    assert entered.startswith("cd ")
    return tmp_path / entered.removeprefix("cd ")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The commands of this environment first, and no settings of Dask but those of a test."""
    return {**os.environ, "PATH": f"{folder / 'bin'}:{shell_path()}", "DASK_CONFIG": str(folder / "dask"), **more}


def shell(script: str, folder: Path, **more: str) -> None:
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=folder, env=environment(folder, **more), capture_output=True, text=True,
        timeout=HANG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def running(*scripts: str, folder: Path) -> Iterator[None]:
    """Inside, commands that do not end by themselves."""
    started = [
        subprocess.Popen(shlex.split(script), cwd=folder, env=environment(folder), start_new_session=True,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for script in scripts
    ]  # fmt: skip
    try:
        yield
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(HANG)


def equal_to_plain(folder: Path) -> None:
    """The last run has the draws of one that is done here."""
    there = RunStore(folder).open("last").posterior.read_bytes()
    shell("qvr run nuts radon.qvr --chains 16 --cluster none" + SHORT, folder)
    here = RunStore(folder).open("last").posterior.read_bytes()
    assert here == there and len(RunStore(folder).names()) == 2


@pytest.mark.statistical
def test_the_cores_of_one_machine(folder: Path) -> None:
    (block,) = blocks("The cores of one machine")
    run, refits = block.splitlines()
    shell(run, folder)
    equal_to_plain(folder)
    assert refits.startswith("qvr cv radon --by county --cluster ")
    shell(refits.replace("--by county", "--folds 2"), folder)  # not one for each of the counties


@pytest.mark.statistical
def test_machines_that_one_can_log_in_to(folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    scheduler, worker, run = (
        block.replace("HOST", "127.0.0.1").replace("8786", str(port)).strip()
        for block in blocks("Machines that you can log in to")
    )
    assert scheduler.startswith("dask scheduler ") and worker.startswith("dask worker ")
    with running(f"{scheduler} --no-dashboard", f"{worker} --no-dashboard --memory-limit 0", folder=folder):
        shell(run, folder)
    equal_to_plain(folder)


SBATCH = """\
#!/bin/sh
for script; do :; done
cp "$script" "{folder}/job-$$.sh"
setsid sh "{folder}/job-$$.sh" > "{folder}/job-$$.log" 2>&1 &
echo $! >> "{folder}/jobs"
echo "Submitted batch job $!"
"""
SCANCEL = """\
#!/bin/sh
for job; do kill -9 -- "-$job"; echo "$job" >> "{folder}/cancelled"; done
"""


@pytest.mark.statistical
def test_slurm(folder: Path) -> None:
    """Where there is no SLURM, its two commands are ours: a job is a process of this machine."""
    settings, run = blocks("SLURM")
    (folder / "dask").mkdir()
    (folder / "dask" / "jobqueue.yaml").write_text(settings)
    (folder / "bin").mkdir()
    for name, text in {"sbatch": SBATCH, "scancel": SCANCEL}.items():
        (folder / "bin" / name).write_text(text.format(folder=folder))
        (folder / "bin" / name).chmod(0o700)
    shell(run.replace("slurm[8]", "slurm[2]"), folder, DASK_JOBQUEUE__SLURM__INTERFACE="lo")
    jobs = (folder / "jobs").read_text().split()
    assert len(jobs) == 2
    assert sorted((folder / "cancelled").read_text().split()) == sorted(jobs)
    until(lambda: not any(session_of(int(job)) for job in jobs))
    equal_to_plain(folder)


@pytest.mark.statistical
def test_a_fit_shared_by_processes(folder: Path) -> None:
    (folder / "model.qvr").write_text(MODEL)
    (folder / "book.txt").write_text("the quick brown fox jumps over the lazy dog; " * 400)
    (block,) = blocks("One machine")
    network, parts, chains = (line.replace("--nproc 4", "--nproc 2") for line in block.splitlines())
    assert "run svi model.qvr" in network and "run svi radon.qvr" in parts and "run nuts radon.qvr" in chains
    for line in (network, parts):
        shell(f"{line} --steps 20", folder, OMP_NUM_THREADS="1")
        ending = RunStore(folder).open("last").ending()
        assert ending is not None and ending.event == "finished"
    shell(chains, folder, OMP_NUM_THREADS="1")
    there = drawn(folder)
    shell(chains.replace("--nproc 2", "--cluster none"), folder)
    for name, values in drawn(folder).items():
        np.testing.assert_allclose(there[name], values, rtol=1e-12)


def drawn(folder: Path) -> dict[str, Any]:
    stored = read_netcdf(RunStore(folder).open("last").posterior)["posterior"].data_vars
    return {name: one.values for name, one in stored.items()}
