"""A cluster over a network of its own: two network namespaces, as two machines, with a cable between them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from qvr_core.runs.record.protocol import Failed, Finished, Progress, parse_event
from tests.cluster.processes import NO_NANNY, Started, killed
from tests.cluster.test_clustered_chains import SCHOOLS
from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
HERE, THERE = "10.77.41.1", "10.77.41.2"


@dataclass
class Machine:
    """A network namespace."""

    name: str

    @property
    def inside(self) -> tuple[str, ...]:
        """What is put in front of a command that runs there."""
        return ("ip", "netns", "exec", self.name)


@pytest.fixture
def machines() -> Iterator[tuple[Machine, Machine]]:
    """Two of them, where this machine lets us have them."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces want root and iproute2")
    pair = Machine(f"qvr-{os.getpid()}-a"), Machine(f"qvr-{os.getpid()}-b")
    try:
        for one in pair:
            if subprocess.run(["ip", "netns", "add", one.name], capture_output=True, check=False).returncode:
                pytest.skip("this machine has no network namespaces")
        first, second = (one.name for one in pair)
        cable = ["ip", "link", "add", "cable", "netns", first, "type", "veth", "peer", "name", "cable", "netns", second]
        subprocess.run(cable, check=True)
        for one, address in zip(pair, (HERE, THERE), strict=True):
            subprocess.run(["ip", "-n", one.name, "address", "add", f"{address}/24", "dev", "cable"], check=True)
            for device in ("lo", "cable"):
                subprocess.run(["ip", "-n", one.name, "link", "set", device, "up"], check=True)
        yield pair
    finally:
        for one in pair:
            subprocess.run(["ip", "netns", "delete", one.name], capture_output=True, check=False)


# in `make test` on loopback: test_a_worker_that_is_killed_changes_no_draw
@pytest.mark.slow
def test_chains_on_two_machines(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    here, there = machines
    (tmp_path / "m.qvr").write_text(SCHOOLS)
    command = [sys.executable, "-m", "qvr_core.cli", "run", "nuts", "m.qvr", "--chains", "6", "--warmup", "100",
               "--samples", "100", "--checkpoint-steps", "20", "--data", "synthetic", "--json"]  # fmt: skip
    alone = [*here.inside, *command]
    plain = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=HANG)
    cluster = Started(tmp_path, HERE, here.inside)
    try:
        cluster.start_scheduler()
        cluster.start_worker(NO_NANNY, in_front=here.inside)
        cluster.start_worker(NO_NANNY, in_front=there.inside)
        second = cluster.start_worker(NO_NANNY, in_front=there.inside)
        with subprocess.Popen(
            [*alone, "--cluster", cluster.address], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            told = iter(process.stdout)
            next(line for line in told if isinstance(parse_event(line), Progress))
            killed(second)
            last = [*told][-1]
    finally:
        cluster.end()
    assert isinstance(parse_event(last), Finished)
    first, second_run = sorted((tmp_path / ".qvr" / "runs").iterdir())
    assert isinstance(parse_event(plain.stdout.splitlines()[-1]), Finished)
    assert (first / "posterior.nc").read_bytes() == (second_run / "posterior.nc").read_bytes()
    assert cluster.address == f"tcp://{HERE}:{cluster.address.rpartition(':')[2]}"


@pytest.mark.statistical
def test_chains_of_a_scheduler_that_is_lost_go_on_with_that_of_another_machine(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    """Radon in sixteen chains: begun on one machine's cluster, whose scheduler is killed, and ended on the other's."""
    for file in (ROOT / "examples" / "statistics").glob("radon*"):
        shutil.copy(file, tmp_path)
    command = [sys.executable, "-m", "qvr_core.cli", "run", "nuts"]
    asked = ["radon.qvr", "--chains", "16", "--warmup", "40", "--samples", "40", "--checkpoint-steps", "20",
             "--data", "csv:radon.csv", "--data", "County=csv:radon_counties.csv", "--json"]  # fmt: skip
    # there as well: what is started here is a fork with torch, whose predictions come from another generator
    alone = [*machines[0].inside, *command, *asked]
    subprocess.run(alone, cwd=tmp_path, capture_output=True, check=True, timeout=HANG)
    clusters: list[Started] = []
    try:
        for number, (machine, address) in enumerate(zip(machines, (HERE, THERE), strict=True)):
            folder = tmp_path / f"cluster-{number}"
            folder.mkdir()
            clusters.append(cluster := Started(folder, address, machine.inside))
            cluster.start_scheduler()
            for _ in range(2):
                cluster.start_worker(NO_NANNY, in_front=machine.inside)
        first, second = clusters
        with subprocess.Popen(
            [*alone, "--cluster", first.address],
            cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            told = iter(process.stdout)
            next(line for line in told if isinstance(parse_event(line), Progress))
            assert first.scheduler is not None
            killed(first.scheduler)
            last = parse_event([*told][-1])
        assert isinstance(last, Failed) and "scheduler" in last.message
        plain, broken = sorted((tmp_path / ".qvr" / "runs").iterdir())
        again = [*machines[1].inside, *command, "--resume", broken.name, "--cluster", second.address, "--json"]
        done = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=HANG)
        assert isinstance(parse_event(done.stdout.splitlines()[-1]), Finished)
    finally:
        for cluster in clusters:
            cluster.end()
    assert (plain / "posterior.nc").read_bytes() == (broken / "posterior.nc").read_bytes()
