"""A step of SVI of two statistical programs, as torch operations and as machine code."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch

from benchmarks.models import MODELS
from qvr_core.dsl import loads
from qvr_core.inference import ELBO, SVI, AutoNormalGuide

FASTER = 20.0


def milliseconds(name: str, steps: int, *, compiled: bool) -> float:
    """Median processor time of a step."""
    given = MODELS[name]
    model = loads(given.text).morphism
    # as a run has them
    data = {key: value.float() if value.is_floating_point() else value for key, value in given.data().items()}
    torch.manual_seed(0)
    guide = AutoNormalGuide(model, observed_names={key for key in data if key in model.sites})
    adam = torch.optim.Adam(guide.parameters(), lr=0.02, fused=True)
    svi = SVI(model, guide, adam, ELBO(), engine="compiled" if compiled else "plain")
    times: list[float] = []
    for _ in range(steps + 20):
        began = time.process_time()
        svi.step(None, data)
        times.append(time.process_time() - began)
    return statistics.median(times[20:]) * 1e3


def rows(table: Any, quick: bool) -> None:
    """Two programs, one after the other."""
    print("\n-- a step of SVI", flush=True)
    for name in ("eight schools", "radon"):
        plain, compiled = (milliseconds(name, 100 if quick else 400, compiled=compiled) for compiled in (False, True))
        table.row(name, f"{plain:.2f} ms, compiled {compiled:.3f} ms", plain / compiled, FASTER)
