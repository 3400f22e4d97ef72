"""Talking with the process of another engine: a line of JSON asks, a line answers, arrays go through files."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
STAN_PROGRAMS = HERE / "stan"
HOW = "python -m benchmarks.engines.environment"


def root() -> Path:
    """Where the environment and Stan's compiled programs are."""
    return Path(os.environ.get("QVR_BENCH") or Path.home() / ".cache" / "qvr-bench")


class Missing(Exception):
    """The engine is not installed, or does not start; the message says how to get it."""


@dataclass(frozen=True)
class Sample:
    """What chains gave: draws {name: (chains, draws, …)}, gradients of each chain in warm-up and after it."""

    draws: dict[str, Any]
    warmup: list[float]
    sampling: list[float]
    divergences: int


class Engine:
    """One engine in a process of its own."""

    def __init__(self, server: str, name: str) -> None:
        python = root() / "env" / "bin" / "python"
        if not python.exists():
            raise Missing(f"{name} is not here: `{HOW}` makes its environment in {root()}")
        self.name = name
        self.process = subprocess.Popen(
            [python, HERE / server],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # httpstan keeps its builds there
            env={**os.environ, "XDG_CACHE_HOME": str(root())},
        )
        self.folder = tempfile.TemporaryDirectory()
        try:
            self.version = ", ".join(f"{key} {value}" for key, value in self.ask("version").items())
        except (BrokenPipeError, RuntimeError, ValueError) as error:
            self.close()
            raise Missing(f"{name} does not start ({error}): `{HOW}` makes its environment") from None

    def ask(self, what: str, **more: Any) -> dict[str, Any]:
        """The answer to a question; `RuntimeError` where it is an error."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps({"do": what, **more}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def load(self, data: Mapping[str, Any], **which: str) -> None:
        """Take a program, or a model, with data."""
        path = self.path("data")
        np.savez(path, **{name: np.asarray(value) for name, value in data.items()})
        self.ask("load", data=path, **which)

    def sample(self, warmup: int, draws: int, chains: int, seed: int) -> Sample:
        """Chains of the program that is loaded."""
        out = self.path("draws")
        answer = self.ask("sample", warmup=warmup, draws=draws, chains=chains, seed=seed, out=out)
        with np.load(out) as file:
            found = {name: file[name] for name in file.files}
        return Sample(found, answer["warmup"], answer["sampling"], answer["divergences"])

    def path(self, name: str) -> str:
        """A file for arrays."""
        return str(Path(self.folder.name) / f"{name}.npz")

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stan() -> Engine:
    """Stan; raises `Missing`."""
    return Engine("stan_server.py", "Stan")


def numpyro() -> Engine:
    """NumPyro; raises `Missing`."""
    return Engine("numpyro_server.py", "NumPyro")
