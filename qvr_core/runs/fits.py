"""Does a program still fit the checkpoint of a run: which parameters are new, gone, or of another shape."""

from __future__ import annotations

from safetensors import safe_open

from qvr_core import dsl
from qvr_core.runs.failures import Refused
from qvr_core.runs.files import DamagedFile
from qvr_core.runs.settings import main_program
from qvr_core.runs.store import RunDirectory


def differences(text: str, run: RunDirectory) -> list[str]:
    """One line per parameter that does not fit; empty where a run of `text` could go on from the checkpoint.

    Raises `Refused` where there is no checkpoint or no such program, `DamagedFile` where it cannot be read.
    """
    job = run.job()
    loaded = dsl.loads(text)
    name = job.program or main_program(loaded.model)
    if name is None or name not in loaded.programs:
        raise Refused("no-program", f"the run fitted `{name}`, which this file does not declare")
    now = {key: tuple(value.shape) for key, value in loaded.programs[name].state_dict().items()}
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
    """Shapes of the model's parameters in the newest checkpoint."""
    folders = sorted(run.checkpoints.glob("step-*"), reverse=True)
    if not folders:
        raise Refused("no-checkpoint", f"run {run.run_id} has no checkpoint")
    file = folders[0] / "tensors.safetensors"
    try:
        with safe_open(file, framework="numpy") as opened:
            names: list[str] = [key for key in opened.keys() if key.startswith("model.")]  # noqa: SIM118
            return {key.removeprefix("model."): tuple(opened.get_slice(key).get_shape()) for key in names}
    except Exception as error:
        raise DamagedFile(f"{file} cannot be read: {error}") from error
