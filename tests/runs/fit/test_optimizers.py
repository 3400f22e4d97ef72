"""Optimisers of runs: torch's own numbers and states, without its compiler."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from qvr_core.runs.fit.optimizers import FUSED, OPTIMIZERS
from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[3]
TORCHS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
}


class Fit:
    """Two parameters on their way to a point, with an optimiser."""

    def __init__(self, kind: Any, name: str) -> None:
        self.parameters = [torch.nn.Parameter(torch.tensor([0.5, -2.0])), torch.nn.Parameter(torch.ones(2, 3))]
        self.optimizer = kind(self.parameters, lr=0.1, **({"fused": True} if name in FUSED else {}))

    def steps(self, count: int) -> Fit:
        for _ in range(count):
            self.optimizer.zero_grad()
            sum(((p - 3.0) ** 2).sum() for p in self.parameters).backward()
            self.optimizer.step()
        return self

    def taken_over(self, other: Fit) -> Fit:
        self.optimizer.load_state_dict(other.optimizer.state_dict())
        for own, theirs in zip(self.parameters, other.parameters, strict=True):
            own.data.copy_(theirs.data)
        return self


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_and_states_are_those_of_torch(name: str) -> None:
    assert set(OPTIMIZERS) == set(TORCHS)
    ours, torchs = (Fit(kind[name], name).steps(4) for kind in (OPTIMIZERS, TORCHS))
    assert isinstance(ours.optimizer, TORCHS[name])
    # a state goes from one to the other, both ways
    kinds = (TORCHS, OPTIMIZERS, TORCHS)
    ends = [ours.steps(3), torchs.steps(3)]
    ends += [
        Fit(kind[name], name).taken_over(Fit(other[name], name).steps(4)).steps(3)
        for kind, other in itertools.pairwise(kinds)
    ]
    for end in ends[1:]:
        assert all(torch.equal(a, b) for a, b in zip(ends[0].parameters, end.parameters, strict=True))
    assert not any(p.grad_fn for p in ours.parameters)


WATCHING = """
import os, sys
def told(event, given):
    if event == "import" and given[0] in ("torch", "torch._dynamo", "sympy"):
        with open(os.environ["QVR_TEST_TOLD"], "a") as file:
            file.write(given[0] + "\\n")
sys.addaudithook(told)
"""
NETWORK = """\
object Wide : Real 2
object Class : FinSet 3
morphism head : Wide -> Class [role=kernel] ~ Categorical
program classes : Wide -> Class
    observe y <- head
    return y
"""


@pytest.mark.long
def test_a_fit_of_a_network_does_not_load_the_compiler(tmp_path: Path) -> None:
    """Importing it takes as long as torch itself, and 70 MB."""
    (tmp_path / "sitecustomize.py").write_text(WATCHING)
    (tmp_path / "m.qvr").write_text(NETWORK)
    told = tmp_path / "told"
    told.write_text("")
    flags = ["--rows", "20", "--steps", "6", "--checkpoint-steps", "3", "--threads", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "qvr_core.cli", "run", "svi", "m.qvr", *flags],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG,
        env={**os.environ, "QVR_TEST_TOLD": str(told), "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(told.read_text().split()) == {"torch"}
