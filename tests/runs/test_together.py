"""Several processes fit one program as one process does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qvr_core.runs.exports import losses_of
from qvr_core.runs.protocol import Finished, Started, parse_event
from qvr_core.runs.store import RunStore

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


def fit(folder: Path, *more: str) -> list[float]:
    folder.mkdir()
    (folder / "m.qvr").write_text(MODEL)
    (folder / "t.txt").write_bytes(b"the quick brown fox jumps over the lazy dog; " * 100)
    command = [sys.executable, "-m", "qvr_core.cli", "run", "svi", "m.qvr", "--data", "text:t.txt", "--steps", "25",
               "--batch-size", "33", "--held-out", "0", "--threads", "1", "--learning-rate", "0.01", "--json",
               *more]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=120, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
    events = [parse_event(line) for line in done.stdout.splitlines()]
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    assert sum(isinstance(event, Finished) for event in events) == 1
    store = RunStore(folder)
    assert len(store.names()) == 1
    return losses_of(store.open("last"))


def test_two_processes_give_the_losses_of_one(tmp_path: Path) -> None:
    one, two = fit(tmp_path / "one"), fit(tmp_path / "two", "--nproc", "2")
    assert len(one) == len(two) == 25
    assert two == pytest.approx(one, abs=1e-5)
    assert one[-1] < one[0]
