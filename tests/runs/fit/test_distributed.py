"""Several processes fit one program as one process does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from qvr_core.analysis import Analyzer
from qvr_core.runs.fit.distributed import Team
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.exports import export_csv, losses_of
from qvr_core.runs.record.protocol import CheckpointWritten, Finished, Job, Started, parse_event
from qvr_core.runs.record.store import RunDirectory, RunStore
from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[3]
# Without noise between the input and the head: the loss of a batch is a number, however it is shared.
MODEL = """\
object Token : FinSet 256
object Embedded : Real 8
morphism embed : Token -> Embedded [role=embed]
morphism head : Embedded -> Token [role=kernel, hidden_dim=16] ~ Categorical
let context = embed >> mean_over_time
program bag_of_bytes : Token -> Token
    sample h <- context
    observe next_token : Token <- head(h)
    return next_token
export bag_of_bytes
"""


NOISY = MODEL.replace("let context = embed >>", "morphism blur : Embedded -> Embedded [scale=0.3] ~ Normal\n"
                      "let context = embed >> blur >>")  # fmt: skip


def fit(folder: Path, *more: str) -> list[float]:
    folder.mkdir()
    (folder / "m.qvr").write_text(MODEL)
    (folder / "t.txt").write_bytes(b"the quick brown fox jumps over the lazy dog; " * 100)
    command = [sys.executable, "-m", "qvr_core.cli", "run", "svi", "m.qvr", "--data", "text:t.txt", "--steps", "25",
               "--batch-size", "33", "--held-out", "0", "--threads", "1", "--learning-rate", "0.01", "--json",
               *more]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=HANG, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
    events = [parse_event(line) for line in done.stdout.splitlines()]
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    assert sum(isinstance(event, Finished) for event in events) == 1
    store = RunStore(folder)
    assert len(store.names()) == 1
    return losses_of(store.open("last"))


@pytest.mark.parametrize("processes", ["2", pytest.param("3", marks=pytest.mark.slow)])
@pytest.mark.long
def test_several_processes_give_the_losses_of_one(processes: str, tmp_path: Path) -> None:
    """Two exchange their gradients in another way than more do."""
    one = fit(tmp_path / "one")
    assert len(one) == 25 and one[-1] < one[0]
    assert fit(tmp_path / processes, "--nproc", processes) == pytest.approx(one, abs=1e-5)


def one_step(job: Job, team: Team) -> dict[str, torch.Tensor]:
    """Loss and gradients of one share of a batch, computed here: no process is asked anything."""
    made = SviFit(prepare(job, Analyzer(job.text).snapshot()), Stop())
    made.team = team
    loss = made.differentiate(0)
    found = {name: p.grad for name, p in made.bound.named_parameters() if p.grad is not None}
    return {**found, "loss": torch.tensor(loss)}


def test_loss_and_gradients_of_two_processes_are_those_of_one(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"the quick brown fox jumps over the lazy dog; " * 100)
    jobs: dict[str, Job] = {}
    for name, model in {"plain": MODEL, "noisy": NOISY}.items():
        asked = RunConfig.model_validate({"data": "text:t.txt", "batch_size": 33, "held_out": 0, "threads": 1})
        jobs[name] = RunStore(tmp_path).create(path="m.qvr", text=model, program=None, config=asked, base=str(tmp_path))
        (tmp_path / f"{name}.json").write_text(jobs[name].model_dump_json())
    script = "tests.runs.fit.step_of_a_team"
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", script,
         *(str(tmp_path / f"{name}.json") for name in jobs)],
        capture_output=True, text=True, check=False, timeout=HANG, env={**os.environ, "OMP_NUM_THREADS": "1"}, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) == os.cpu_count() != 1:
        first, second = (set((tmp_path / f"cores-{rank}").read_text().split()) for rank in (0, 1))
        assert first and first.isdisjoint(second)
    found = {name: load_file(tmp_path / f"{name}.safetensors") for name in jobs}
    whole = one_step(jobs["plain"], Team())
    # Each process has noise of its own: 17 rows with that of the first, 16 with that of the second.
    shares = [one_step(jobs["noisy"], Team(rank, 2)) for rank in (0, 1)]
    mean = {name: (17 * shares[0][name] + 16 * shares[1][name]) / 33 for name in shares[0]}
    for expected, got in ((whole, found["plain"]), (mean, found["noisy"])):
        assert expected.keys() == got.keys()
        assert any("head" in name and value.abs().max() > 1e-3 for name, value in got.items())
        for name, value in expected.items():
            assert torch.allclose(got[name], value, rtol=0, atol=1e-5), name
    assert not torch.allclose(shares[0]["loss"], shares[1]["loss"], atol=1e-3)


def ranks_of(run: RunDirectory) -> dict[str, int]:
    """The pids of a team of two by their rank: the one that keeps the run, and the other child of its parent."""
    leading = int(json.loads((run.path / "process.json").read_text())["pid"])
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    (other,) = [pid for pid, parent in parents.items() if parent == parents[leading] and pid != leading]
    return {"0": leading, "1": other}


@pytest.mark.parametrize("how", ["--nproc", "torchrun"])
@pytest.mark.parametrize("victim", ["0", "1"])
@pytest.mark.sampled(3)
def test_a_killed_process_ends_the_others_with_a_sentence(how: str, victim: str, tmp_path: Path) -> None:
    (tmp_path / "m.qvr").write_text(MODEL)
    (tmp_path / "t.txt").write_bytes(b"the quick brown fox jumps over the lazy dog; " * 100)
    words = ["run", "svi", "m.qvr", "--data", "text:t.txt", "--steps", "1000000", "--checkpoint-steps", "5",
             "--held-out", "0", "--json"]  # fmt: skip
    launch = {
        "--nproc": ["-m", "qvr_core.cli", *words, "--nproc", "2"],
        "torchrun": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "qvr_core.cli", *words],
    }
    command = [sys.executable, *launch[how]]
    there = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=there
    ) as team:
        assert team.stdout is not None
        for line in team.stdout:
            if isinstance(parse_event(line), CheckpointWritten):
                break
        os.kill(ranks_of(RunStore(tmp_path).open("last"))[victim], signal.SIGKILL)
        out, err = team.communicate(timeout=HANG)
    assert team.returncode == 1
    said = err if victim == "0" else out.splitlines()[-1]
    assert "one of the 2 processes of this run is gone" in said and "--resume" in said
    assert "Traceback" not in err.partition("torch/distributed/elastic")[0], err
    store = RunStore(tmp_path)
    run = store.open("last")
    assert run.status() == {"0": "crashed", "1": "failed"}[victim] and run.step() > 0
    assert len(losses_of(run)) > 0
    resume = ["run", "svi", "--resume", "last", "--steps", str(run.step() + 5)]
    again = subprocess.run(
        [sys.executable, "-m", "qvr_core.cli", *resume], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0 and run.status() == "finished", again.stderr


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ((), "sees all of its data in every step"),
        pytest.param(("--device", "cuda"), "torch finds no GPU", marks=pytest.mark.slow),
    ],
)
def test_what_several_processes_cannot_do_is_reported_once(more: tuple[str, ...], wanted: str, tmp_path: Path) -> None:
    (tmp_path / "m.qvr").write_text(
        "program p : FinSet 2 -> FinSet 2\n    sample mu <- Normal(0.0, 1.0)\n"
        "    observe y <- Normal(mu, 1.0)\n    return mu\n"
    )
    command = [sys.executable, "-m", "qvr_core.cli", "run", "svi", "m.qvr", "--nproc", "2", *more]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == 2
    assert wanted in done.stderr and done.stderr.count("failed: ") == 1, done.stderr
    assert "Traceback" not in done.stderr and "torch.distributed" not in done.stderr


SCHOOLS = """\
object School : FinSet 8
program eight_schools : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample z : School <- Normal(0.0, 1.0)
    let theta = mu + tau * z
    observe y : School <- Normal(theta, 10.0)
    return y
"""


Y = "y\n28\n8\n-3\n7\n-1\n1\n18\n12\n"


def drawn(folder: Path, model: str, *more: str) -> str:
    """The draws of four chains as a table, to the last digit."""
    folder.mkdir()
    (folder / "m.qvr").write_text(model)
    (folder / "y.csv").write_text(Y)
    command = [sys.executable, "-m", "qvr_core.cli", "run", "nuts", "m.qvr", "--chains", "4", "--threads", "1",
               "--max-tree-depth", "3", "--warmup", "16", "--samples", "8", *more]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == 0, done.stderr
    output = folder / "draws.csv"
    export_csv(RunStore(folder).open("last"), output)
    return output.read_text()


NETWORK = MODEL.replace("FinSet 256", "FinSet 5").replace("16", "2")


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("model", "more", "processes"),
    [
        (SCHOOLS, ("--data", "csv:y.csv", "--engine", "compiled"), "4"),
        (SCHOOLS, ("--data", "csv:y.csv", "--engine", "plain"), "2"),
        (NETWORK, ("--rows", "8"), "2"),
        *(pytest.param(SCHOOLS, ("--data", "csv:y.csv", "--engine", engine), processes, marks=pytest.mark.slow)
          for engine, processes in (("compiled", "2"), ("plain", "4"))),
    ],
)  # fmt: skip
def test_draws_do_not_depend_on_the_number_of_processes(
    model: str, more: tuple[str, ...], processes: str, tmp_path: Path
) -> None:
    one, several = (
        np.loadtxt(drawn(tmp_path / name, model, *more, *how).splitlines(), delimiter=",", skiprows=1)
        for name, how in (("one", ()), ("several", ("--nproc", processes)))
    )
    assert len(one) == 32
    # one process does without torch where it can, whose exponentials are rounded otherwise: the chains are the same
    np.testing.assert_allclose(several, one, rtol=1e-13)


def test_the_line_for_several_machines_in_the_docs_works(tmp_path: Path) -> None:
    page = ROOT / "docs" / "many-machines.md"
    (line,) = [line for line in page.read_text().splitlines() if line.startswith("torchrun ")]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = line.replace("HOST", "127.0.0.1").replace("29500", str(port)).replace("--batch-size 256", "--batch-size 32")
    machines: list[subprocess.Popen[str]] = []
    for rank, name in enumerate(("first", "second")):
        words = line.replace("--node-rank 0", f"--node-rank {rank}").split()
        command = [sys.executable, "-m", "torch.distributed.run", *words[1:], "--steps", "5", "--json"]
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.qvr").write_text(MODEL)
        (tmp_path / name / "book.txt").write_bytes(b"the quick brown fox jumps over the lazy dog; " * 100)
        machines.append(
            subprocess.Popen(
                command,
                cwd=tmp_path / name,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        )
    try:
        said = [machine.communicate(timeout=HANG)[0] for machine in machines]
    finally:
        for machine in machines:
            machine.terminate()
    assert [machine.returncode for machine in machines] == [0, 0]
    (told,) = [out for out in said if out]  # only the first process speaks
    assert isinstance(parse_event(told.splitlines()[-1]), Finished)
    stores = [RunStore(tmp_path / name).names() for name in ("first", "second")]
    assert sorted(map(len, stores)) == [0, 1]
