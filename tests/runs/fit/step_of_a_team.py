"""Run by torchrun from `test_distributed.py`: one step of each job; the leading process writes loss and gradients."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from qvr_core.analysis import Analyzer
from qvr_core.runs.fit.distributed import join, leave
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.protocol import Job

team = join("cpu")
if hasattr(os, "sched_getaffinity"):
    Path(sys.argv[1]).with_name(f"cores-{team.rank}").write_text(" ".join(map(str, os.sched_getaffinity(0))))
for path in map(Path, sys.argv[1:]):
    job = Job.model_validate_json(path.read_text())
    fit = SviFit(prepare(job, Analyzer(job.text).snapshot()), Stop(), team)
    loss, _ = fit.advance()
    found = {name: p.grad for name, p in fit.bound.named_parameters() if p.grad is not None}
    if team.leads:
        save_file({**found, "loss": torch.tensor(loss)}, path.with_suffix(".safetensors"))
leave()
# Everything is written: torch, torn down with its threads, may wait for itself.
os._exit(0)
