"""`python -m tests.generator.own_arrays`: densities of programs in a process without torch, as a run's worker has them.

Pickled questions come on stdin and answers go to stdout, each behind its length: a `Question` as a tuple, an `Answer`
as a dictionary, or what was wrong as text.
"""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from qvr_core.arrays.engine_choice import without_torch


def received(stream: IO[bytes]) -> Iterator[Any]:
    """What was sent, until the stream ends."""
    while head := stream.read(4):
        yield pickle.loads(stream.read(struct.unpack("<I", head)[0]))


def send(stream: IO[bytes], value: Any) -> None:
    """One value, at once."""
    text = pickle.dumps(value)
    stream.write(struct.pack("<I", len(text)) + text)
    stream.flush()


def answer(text: str, data: dict[str, Any], opened: bool, q: Any) -> dict[str, Any]:
    """Of a program at coordinates (width,): the value by arrays of numbers, value and gradient by machine code, and a
    WebAssembly module with its constants.  What has no loops says why under `lacking`."""
    from qvr_core.arrays.engine import arrays
    from qvr_core.codegen.wasm.module import Module
    from qvr_core.dsl import loads
    from qvr_core.inference.machine.density import NotCompiled, machine_density, text_of
    from qvr_core.inference.mcmc.potential import potential_of

    given = {name: arrays.tensor(value) for name, value in data.items()}
    model = loads(text, data=given).morphism if opened else loads(text).morphism
    potential = potential_of(model, None, given)
    found: dict[str, Any] = {"width": potential.width}
    if potential.width != len(q):
        return found
    found["value"] = float(np.asarray(potential.log_densities(q[None])).reshape(-1)[0])
    try:
        machine = machine_density(potential, q)
        loops, _ = text_of(potential)
    except NotCompiled as why:
        return found | {"lacking": str(why)}
    module = Module()
    module.take_loops(loops)
    wasm = {"module": module.encoded(), "room": machine.room, "reals": machine.reals, "wholes": machine.wholes}
    return found | {"machine": machine(q), "wasm": wasm}


def main() -> None:
    without_torch()
    theirs, sys.stdout = sys.stdout.buffer, sys.stderr
    for question in received(sys.stdin.buffer):
        try:
            said: Any = answer(*question)
        except Exception as problem:
            said = f"{type(problem).__name__}: {problem}"
        send(theirs, said)


if __name__ == "__main__":
    main()
