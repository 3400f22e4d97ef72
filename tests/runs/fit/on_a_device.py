"""Runs of `test_devices.py`, in a process of their own: torch is told of a device before its first gradient.

Reads cases from the standard input, {name: {"path", "config", "steps"}}, and prints {name: what is found}.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, SVI, AutoPriorGuide
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare import prepare as preparing
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import Event, Finished, HeldOut, Job
from qvr_core.runs.record.store import RunStore
from qvr_core.runtime.values.errors import NonFinite
from tests.stand_in_device import MODULE, registered, stand_in, waits


@contextmanager
def placed(on: str) -> Iterator[None]:
    """Runs are prepared on the CPU or on the stand-in."""
    with stand_in() if on != "cpu" else nullcontext() as device:
        found = device or torch.device("cpu")
        with patch.object(preparing, "device_of", lambda job: found):
            yield


def job_of(case: dict[str, Any], folder: Path, **more: Any) -> Job:
    path = Path(case["path"])
    config = {"threads": 1, "engine": "plain", "precision": "float64", "steps": 3, **case["config"], **more}
    asked = RunConfig.model_validate(config)
    return RunStore(folder).create(
        path=str(path), text=path.read_text(), program=None, config=asked, base=str(path.parent)
    )


def prepared(job: Job) -> SviFit:
    return SviFit(preparing.prepare(job, analysed(job)), Stop())


def figures(fit: SviFit, events: list[Event]) -> dict[str, Any]:
    """What a run comes to."""
    ended = next(event for event in events if isinstance(event, Finished))
    held_out = [event.bits_per_byte for event in events if isinstance(event, HeldOut)]
    rows = {row.name: [row.mean, row.sd or 0.0] for row in ended.posterior}
    return {"losses": fit.losses, "held_out": held_out, "posterior": rows}


def looked_at(case: dict[str, Any]) -> dict[str, Any]:
    """A run here; one that begins on the device, and goes on in both places; and how a step there waits."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        with placed("cpu"):
            fit = prepared(job_of(case, Path(folder)))
            found["cpu"] = figures(fit, list(fit.run()))
        with placed("device"):
            job = job_of(case, Path(folder))
            begun = prepared(job)
            for _ in range(2):
                begun.losses.append(begun.advance()[0])
            found["gradients"] = sorted({str(p.grad.device) for p in begun.parameters if p.grad is not None})
            begun.save()
        with placed("cpu"):
            again = prepared(job)
            list(again.restore())
            again.losses.append(again.advance()[0])
            found["resumed"] = again.losses
        with placed("device"):
            there = prepared(job)
            list(there.restore())
            states = [value for state in there.optimizer.state.values() for value in state.values() if value.ndim]
            found["returned"] = sorted({str(each.device) for each in (*there.parameters, *states)})
            found["waits"] = waits(lambda: there.losses.append(there.advance()[0]))
            found["device"] = figures(there, list(there.run()))
        if not fit.prepared.needs.statistical:
            found["mixed"] = {on: mixed(case, Path(folder), on) for on in ("cpu", "device")}
    return found


def mixed(case: dict[str, Any], folder: Path, on: str) -> dict[str, Any]:
    """The first losses in mixed precision, and of what kind the weights are after them."""
    with placed(on):
        fit = prepared(job_of(case, folder, precision="bfloat16"))
        return {
            "losses": [fit.advance()[0] for _ in range(2)],
            "weights": sorted({str(p.dtype) for p in fit.parameters}),
        }


LATENT = """
object X : Real 3
object Y : Real 1
morphism f : X -> Y [role=kernel, hidden_dim=4] ~ Normal
program net(x) : X -> Y
    sample h : Y <- f(x)
    observe y : Y <- Normal(h, 1.0)
    return y
export net
"""


def blamed() -> dict[str, Any]:
    """A step whose loss is not finite, on the device: whether looking for the one to blame uses up random numbers."""
    with stand_in() as device:
        model = loads(LATENT).morphism.to(device)
        guide = AutoPriorGuide(model, observed_names={"y"})
        svi = SVI(model, guide, torch.optim.Adam(model.parameters(), 1e-3), ELBO())
        data = {"y": torch.full((5, 1), 1e30, device=device)}
        torch.manual_seed(3)
        svi.objective(model, guide, torch.zeros(5, 3, device=device), data)
        once = MODULE.get_rng_state()
        torch.manual_seed(3)
        try:
            svi.step(torch.zeros(5, 3, device=device), data)
        except NonFinite as problem:
            return {"said": str(problem), "kept": torch.equal(once, MODULE.get_rng_state())}
    return {}


def main() -> None:
    warnings.simplefilter("ignore")
    registered()
    print(json.dumps({"blame": blamed()}), flush=True)
    for name, case in json.load(sys.stdin).items():
        print(json.dumps({name: looked_at(case)}), flush=True)


if __name__ == "__main__":
    main()
