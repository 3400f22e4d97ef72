"""The engines of a run without torch, compared with torch: numbers, machine code and WebAssembly."""

from __future__ import annotations

import base64
import json
import math
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from qvr_core.arrays.engine_choice import VARIABLE
from qvr_core.inference.mcmc.potential import ProgramPotential
from tests.generator.engines import Answer, NotForThis, Wrong, data_of, loaded, table_of
from tests.generator.own_arrays import received, send
from tests.generator.sets import far
from tests.generator.steps import Case, Site

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[2]
NODE = shutil.which("node")
TOLERANCE = 1e-9


@cache
def _own() -> subprocess.Popen[bytes]:
    environment = {**os.environ, VARIABLE: "own"}
    command = [sys.executable, "-m", "tests.generator.own_arrays"]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@cache
def _node() -> subprocess.Popen[str]:
    assert NODE is not None, "Node is not installed"
    script = str(Path(__file__).with_name("densities.mjs"))
    return subprocess.Popen([NODE, script], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _asked(*question: Any) -> Any:
    own = _own()
    assert own.stdin is not None
    assert own.stdout is not None
    send(own.stdin, question)
    return next(received(own.stdout))


def _in_webassembly(q: Array, wasm: dict[str, Any]) -> tuple[float, Array]:
    def text(array: Any) -> str:
        return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()

    node = _node()
    assert node.stdin is not None
    assert node.stdout is not None
    question = {
        "module": base64.b64encode(wasm["module"]).decode(), "q": text(q), "room": max(1, wasm["room"]),
        "reals": text(wasm["reals"]), "wholes": text(wasm["wholes"]),
    }  # fmt: skip
    node.stdin.write(json.dumps(question) + "\n")
    node.stdin.flush()
    value, slope = json.loads(node.stdout.readline())
    return float(np.frombuffer(base64.b64decode(value))[0]), np.frombuffer(base64.b64decode(slope))


class Machine:
    """The density of a chain, value and gradient, by four ways at one position."""

    name = "machine"

    def __init__(self) -> None:
        self.lacking: dict[str, int] = {}
        """Why programs had no loops, and how often."""

    def score(self, case: Case) -> Answer:
        """Nothing to compare with elements, which `nuts` does; raises `Wrong` where the ways differ."""
        model = loaded(case)
        if any(isinstance(s, Site) and s.kind == "sample" and s.draw.row.discrete for s in case.all_steps()):
            raise NotForThis
        data = data_of(case)
        potential = ProgramPotential(model, None, data)
        numbers = torch.Generator().manual_seed(case.seed)
        q = torch.rand(1, potential.width, generator=numbers, dtype=torch.float64) * 2.0 - 1.0
        run, _ = potential.run(q)
        if any(far({b.coordinate.site: _table_of(run, b.coordinate.site)}) for b in potential.blocks):
            raise NotForThis
        value, gradient = potential.value_and_grad(q)
        wanted, slope, here = float(value), gradient[0].numpy(), q[0].numpy()
        found = _asked(case.text, {name: one.numpy() for name, one in data.items()}, case.open, here)
        if isinstance(found, str):
            raise Wrong(f"without torch {found}")
        if found["width"] != potential.width:
            raise Wrong(f"{found['width']} numbers move without torch, {potential.width} with it")
        _compare("numbers", (found["value"], slope), (wanted, slope))
        if "lacking" in found:
            self.lacking[found["lacking"]] = self.lacking.get(found["lacking"], 0) + 1
            if "differs" in found["lacking"]:
                raise Wrong(found["lacking"])
            raise NotForThis
        _compare("machine code", found["machine"], (wanted, slope))
        _compare("WebAssembly", _in_webassembly(here, found["wasm"]), (wanted, slope))
        return Answer([], [])


def _table_of(run: Any, name: str) -> Any:
    site = run.sites[name]
    return table_of((site.imputed if site.kind == "observe" else site.value)[0])


def _compare(way: str, found: tuple[float, Array], wanted: tuple[float, Array]) -> None:
    """Raises `Wrong` where values or gradients are off by more than the tolerance, relative to the largest of them."""
    size = max(1.0, abs(wanted[0])) if math.isfinite(wanted[0]) else 1.0
    if not (found[0] == wanted[0] or abs(found[0] - wanted[0]) <= TOLERANCE * size or math.isnan(found[0] + wanted[0])):
        raise Wrong(f"the value by {way} is {found[0]!r}, by torch {wanted[0]!r}")
    if not math.isfinite(wanted[0]) or not np.isfinite(wanted[1]).all():
        return
    most = max(size, float(np.abs(wanted[1]).max(initial=0.0)))
    if not bool((np.abs(found[1] - wanted[1]) <= TOLERANCE * most).all()):
        raise Wrong(f"the gradient by {way} is {found[1].tolist()}, by torch {wanted[1].tolist()}")
