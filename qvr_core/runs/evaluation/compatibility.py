"""Does a program still fit the checkpoint of a run: which parameters are new, gone, or of another shape."""

from __future__ import annotations

from qvr_core.analysis import Snapshot
from qvr_core.runs.evaluation.checkpoint import newest
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.runnable import built, chosen
from qvr_core.runs.prepare.typed_data import known_of
from qvr_core.runs.record.program import analysed, of_snapshot
from qvr_core.runs.record.store import RunDirectory


def differences(file: Snapshot, run: RunDirectory) -> list[str]:
    """One line per parameter that does not fit; empty where a run of the file could go on from the checkpoint.

    Raises `Refused` where there is no checkpoint or no such program, `DamagedFile` where it cannot be read.
    """
    job = run.job()
    again = of_snapshot(job, file)
    snapshot = analysed(again)
    program = chosen(again, snapshot.model)
    now = {
        key: tuple(value.shape) for key, value in built(again, known_of(again, program, snapshot)).state_dict().items()
    }
    then = _shapes(run)
    lines: list[str] = []
    for key in sorted(now.keys() | then.keys()):
        if key not in then:
            lines.append(f"`{key}` {now[key]} is new: the checkpoint has no value for it")
        elif key not in now:
            lines.append(f"`{key}` {then[key]} is gone from the program")
        elif now[key] != then[key]:
            lines.append(f"`{key}` was {then[key]} and is {now[key]}")
    return lines


def _shapes(run: RunDirectory) -> dict[str, tuple[int, ...]]:
    """Shapes of the model's parameters in the newest whole checkpoint."""
    found, damaged = newest(run.checkpoints)
    if found is None:
        raise damaged[0] if damaged else Refused("no-checkpoint", f"run {run.run_id} has no checkpoint")
    own = {name: value for name, value in found.tensors.items() if name.startswith("model.")}
    return {name.removeprefix("model."): tuple(value.shape) for name, value in own.items()}
