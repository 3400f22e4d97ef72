"""Stan in a process of its own, run by the Python of the bench environment: a line of JSON asks, a line answers.

httpstan's compiled model is called without its server, so that processor time is that of sampling.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpstan
import httpstan.models
import numpy as np

# Stan's own defaults, and those of its windows.
DEFAULTS = {
    "init_radius": 2.0, "refresh": 0, "stepsize": 1.0, "stepsize_jitter": 0.0, "max_depth": 10, "delta": 0.8,
    "gamma": 0.05, "kappa": 0.75, "t0": 10.0, "init_buffer": 75, "term_buffer": 50, "window": 25,
}  # fmt: skip
NEVER = 10**9
"""A thinning with which no draw but the first is written."""


def module_of(code: str) -> Any:
    """The compiled program, built where it is not yet."""
    name = httpstan.models.calculate_model_name(code)
    try:
        return httpstan.models.import_services_extension_module(name)
    except KeyError:
        asyncio.run(httpstan.models.build_services_extension_module(code))
        return httpstan.models.import_services_extension_module(name)


class Reader:
    """Takes what Stan writes to a socket, on a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "socket")
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind(self.path)
        self.listening.listen(4)
        self.parts: list[list[bytes]] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        connections: dict[socket.socket, list[bytes]] = {}
        while not self.over.is_set() or connections:
            for ready in select.select([self.listening, *connections], [], [], 0.05)[0]:
                if ready is self.listening:
                    connection, _ = ready.accept()
                    connections[connection] = []
                    self.parts.append(connections[connection])
                elif chunk := ready.recv(1 << 20):
                    connections[ready].append(chunk)
                else:
                    del connections[ready]
                    ready.close()

    def lines(self) -> list[dict[str, Any]]:
        """All messages, after the end."""
        self.over.set()
        self.thread.join()
        self.listening.close()
        return [json.loads(line) for part in self.parts for line in b"".join(part).splitlines()]


class Stan:
    """One program with data."""

    def __init__(self, program: str, data: str) -> None:
        self.module = module_of(Path(program).read_text())
        with np.load(data) as file:
            self.data = {name: file[name].tolist() for name in file.files}
        names, dims = self.module.get_param_names(self.data), self.module.get_dims(self.data)
        self.shapes = dict(zip(names, map(tuple, dims), strict=True))

    def chain(self, settings: dict[str, Any], *, thin: int, save_warmup: bool) -> tuple[list[dict[str, Any]], float]:
        """What a chain wrote, and the processor time it took in seconds."""
        with tempfile.TemporaryDirectory() as folder:
            reader = Reader(Path(folder))
            began = time.process_time()
            try:
                code = self.module.hmc_nuts_diag_e_adapt_wrapper(
                    reader.path, data=self.data, init={}, num_thin=thin, save_warmup=save_warmup, **settings
                )
            finally:
                spent = time.process_time() - began
                lines = reader.lines()
            if code:
                raise RuntimeError(f"Stan returned {code}: {lines[-3:]}")
            return lines, spent

    def sample(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Draws of all chains into the file `out`, gradients a chain in warm-up and after, divergences."""
        every, warmup, later, diverged = [], [], [], 0
        for chain in range(1, asked["chains"] + 1):
            settings = settings_of(asked, chain)
            lines, _ = self.chain(settings, thin=1, save_warmup=True)
            draws = [line["values"] for line in lines if line["topic"] == "sample" and "lp__" in line["values"]]
            steps = [draw["n_leapfrog__"] for draw in draws]
            kept = draws[asked["warmup"] :]
            warmup.append(sum(steps[: asked["warmup"]]))
            later.append(sum(steps[asked["warmup"] :]))
            diverged += int(sum(draw["divergent__"] for draw in kept))
            every.append({name: self.values(name, kept) for name in self.shapes})
        np.savez(asked["out"], **{name: np.stack([each[name] for each in every]) for name in self.shapes})
        return {"warmup": warmup, "sampling": later, "divergences": diverged}

    def values(self, name: str, draws: list[dict[str, Any]]) -> Any:
        """The draws of one parameter, (draws, …); Stan writes the first index fastest."""
        shape = self.shapes[name]
        columns = [name] if not shape else [
            ".".join([name, *(str(at + 1) for at in index)]) for index in np.ndindex(*shape)
        ]  # fmt: skip
        return np.array([[draw[column] for column in columns] for draw in draws]).reshape(len(draws), *shape)

    def seconds(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Processor time of one chain with its warm-up, of which nothing is written."""
        return {"seconds": self.chain(settings_of(asked, 1), thin=NEVER, save_warmup=False)[1]}


def settings_of(asked: dict[str, Any], chain: int) -> dict[str, Any]:
    """The arguments of one chain."""
    return {
        **DEFAULTS, "num_warmup": asked["warmup"], "num_samples": asked["draws"], "random_seed": asked["seed"],
        "chain": chain,
    }  # fmt: skip


def main(answers: Any) -> None:
    """Answer until the input ends."""
    here: Stan | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            match asked["do"]:
                case "version":
                    answer: dict[str, Any] = {"httpstan": httpstan.__version__}
                case "build":
                    module_of(Path(asked["program"]).read_text())
                    answer = {}
                case "load":
                    here = Stan(asked["program"], asked["data"])
                    answer = {}
                case other:
                    assert here is not None
                    answer = getattr(here, other)(asked)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    # Stan prints, too: that goes to standard error
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    main(own)
