"""WebAssembly of functions of the subset, run by Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node is not installed")
SCRIPT = Path(__file__).with_name("webassembly.mjs")
Numbers = NDArray[Any]


@dataclass
class Call:
    """A call of an exported function: numbers, and arrays, which come back as they are afterwards."""

    name: str
    arguments: Sequence[Any]
    times: int = 1


@dataclass
class Job:
    """A module, and calls of what it exports."""

    module: bytes
    calls: list[Call] = field(default_factory=list[Call])


@dataclass
class Answer:
    """What a call gave, its arrays afterwards, and how many milliseconds it took."""

    value: float | None
    arrays: list[Numbers]
    took: float


def ran(jobs: Sequence[Job], folder: Path) -> list[list[Answer]]:
    """The answers of all calls of all modules, by one process; an array goes as its place and extents, or, within a
    list of one, as its place alone."""
    assert NODE is not None
    held = bytearray()

    def kept(array: Numbers) -> dict[str, Any]:
        at = len(held)
        held.extend(np.ascontiguousarray(array).tobytes())
        held.extend(bytes(-len(held) % 8))
        return {"at": at, "whole": array.dtype == np.int64, "shape": list(array.shape), "size": int(array.size)}

    def given(argument: Any) -> Any:
        match argument:
            case np.ndarray():
                return {**kept(argument), "bare": False}
            case [np.ndarray() as array]:
                return {**kept(array), "bare": True}
            case float():
                return kept(np.array(argument)) | {"number": "real"}
            case _:
                return kept(np.array(int(argument))) | {"number": "whole"}

    plan: list[Any] = []
    for number, job in enumerate(jobs):
        (folder / f"{number}.wasm").write_bytes(job.module)
        calls = [
            {"name": call.name, "times": call.times, "arguments": list(map(given, call.arguments))}
            for call in job.calls
        ]
        plan.append({"module": f"{number}.wasm", "calls": calls})
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    (folder / "arrays.bin").write_bytes(bytes(held))
    done = subprocess.run([NODE, str(SCRIPT), str(folder)], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = np.fromfile(folder / "found.bin", dtype=np.uint8).tobytes()
    answers: list[list[Answer]] = []
    for job, told in zip(jobs, json.loads(done.stdout), strict=True):
        own: list[Answer] = []
        for call, (value, places, took) in zip(job.calls, told, strict=True):
            arrays = [a[0] if isinstance(a, list) else a for a in call.arguments if isinstance(a, np.ndarray | list)]
            back = [
                np.frombuffer(found, array.dtype, array.size, place).reshape(array.shape)
                for array, place in zip(arrays, places, strict=True)
            ]
            number = None if value is None else float(np.frombuffer(found, np.float64, 1, value)[0])
            own.append(Answer(number, back, took))
        answers.append(own)
    return answers
