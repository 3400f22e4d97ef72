"""Checkpoints: tensors as safetensors, the rest as JSON, a digest over both; a folder that is whole or absent.

checkpoints/step-000001200/tensors.safetensors, state.json
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from qvr_core.arrays.engine import TORCH, Tensor, arrays
from qvr_core.runs.record.atomic_files import DamagedFile, file_digest, read_json, sync_folder, write_json

KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to go on: `state` is JSON, with the step under `step`."""

    step: int
    tensors: dict[str, Tensor]
    state: dict[str, Any]


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint beside the others, then remove all but the newest ones.  Raises OSError on a full disk; the
    older checkpoints then stand."""
    target = folder / f"step-{checkpoint.step:012d}"
    write(target, checkpoint)
    for old in _folders(folder)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def write(target: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint as this folder, whole or not at all.  Raises OSError."""
    partial = target.parent / f".{target.name}.{os.getpid()}.part"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        file = partial / "tensors.safetensors"
        distinct = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in checkpoint.tensors.items()}
        try:
            _save(distinct, file)
        except SafetensorError as error:
            raise OSError(f"the checkpoint could not be written: {error}") from error
        with open(file, "rb") as written:
            os.fsync(written.fileno())
        write_json(
            partial / "state.json",
            {"step": checkpoint.step, "state": checkpoint.state, "tensors": file_digest(file)},
        )
        shutil.rmtree(target, ignore_errors=True)
        os.replace(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    sync_folder(target.parent)


def read(folder: Path) -> Checkpoint:
    """One checkpoint.  Raises `DamagedFile` where a byte of it is not as it was written."""
    try:
        head = read_json(folder / "state.json")
        file = folder / "tensors.safetensors"
        if file_digest(file) != head["tensors"]:
            raise DamagedFile(f"{file} is damaged: its content does not match its checksum")
        return Checkpoint(head["step"], _load(file), head["state"])
    except (OSError, KeyError, SafetensorError) as error:
        raise DamagedFile(f"{folder} is damaged: {error}") from error


def _save(tensors: dict[str, Tensor], file: Path) -> None:
    if TORCH:
        from safetensors import torch

        torch.save_file(tensors, file)
    else:
        from safetensors import numpy

        numpy.save_file({name: tensor.numpy() for name, tensor in tensors.items()}, file)


def _load(file: Path) -> dict[str, Tensor]:
    if TORCH:
        from safetensors import torch

        return torch.load_file(file)
    from safetensors import numpy

    return {name: arrays.from_numpy(array) for name, array in numpy.load_file(file).items()}


def newest(folder: Path) -> tuple[Checkpoint | None, list[DamagedFile]]:
    """The newest whole checkpoint, and what is wrong with the newer ones that were passed over."""
    damaged: list[DamagedFile] = []
    for candidate in _folders(folder):
        try:
            return read(candidate), damaged
        except DamagedFile as error:
            damaged.append(error)
    return None, damaged


def _folders(folder: Path) -> list[Path]:
    """Checkpoints, newest first."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if path.name.startswith("step-")), reverse=True)


# ---------------------------------------------------------------- torch objects as flat tensors and JSON


def optimizer_tensors(optimizer: arrays.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's state as `optimizer.<parameter number>.<key>`; plain numbers become 0-d float64 tensors."""
    flat: dict[str, Tensor] = {}
    for number, entries in optimizer.state_dict()["state"].items():
        for key, value in entries.items():
            tensor = value if isinstance(value, Tensor) else arrays.tensor(value, dtype=arrays.float64)
            flat[f"optimizer.{number}.{key}"] = tensor
    return flat


def restore_optimizer(optimizer: arrays.optim.Optimizer, tensors: Mapping[str, Tensor], groups: list[Any]) -> None:
    """Undo `optimizer_tensors`; `groups` are the JSON of its param_groups."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _under("optimizer.", tensors):
        number, _, key = name.partition(".")
        # A copy of its own: a file's tensors lie where the file has them, not where torch would put them.
        state.setdefault(int(number), {})[key] = tensor.clone()
    own = optimizer.state_dict()["param_groups"]
    merged = [mine | {**given, "params": mine["params"]} for mine, given in zip(own, groups, strict=True)]
    optimizer.load_state_dict({"state": state, "param_groups": merged})


def module_tensors(prefix: str, module: arrays.nn.Module) -> dict[str, Tensor]:
    """A module's parameters and buffers under `<prefix>.`."""
    return {f"{prefix}.{name}": tensor for name, tensor in module.state_dict().items()}


def restore_module(prefix: str, module: arrays.nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Undo `module_tensors`.  Earlier versions also kept buffers that do not persist: left out."""
    kept, buffers = module.state_dict(), dict(module.named_buffers())
    given = dict(_under(f"{prefix}.", tensors))
    module.load_state_dict({name: one for name, one in given.items() if name in kept or name not in buffers})


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    for name, tensor in tensors.items():
        if name.startswith(prefix):
            yield name[len(prefix) :], tensor
