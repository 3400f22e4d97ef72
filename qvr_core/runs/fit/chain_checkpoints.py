"""Chains on disk: where each stands, what it has learned, its generator, and the draws so far.

checkpoints/chains-0-3/step-000000000120/     the chains 0 to 3 after 120 transitions, see `evaluation/checkpoint.py`
checkpoints/chains-0-3/draws-0-20/            draws of theirs after the warm-up, in pieces: none is written twice

Each process keeps its own chains.  One that is gone on with is the one that was broken off, bit for bit, whichever
process has it.
"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qvr_core import __version__
from qvr_core.arrays.engine import arrays
from qvr_core.inference.mcmc.draws import ChainsState, Columns, Draws
from qvr_core.inference.mcmc.mass import Array
from qvr_core.runs.evaluation import checkpoint as checkpoints
from qvr_core.runs.evaluation.checkpoint import Checkpoint
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.record.atomic_files import DamagedFile
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import CheckpointWritten, Event, Message
from qvr_core.runs.record.store import RunDirectory

FORMAT = 1
"""Of what is written here."""
MOST_PIECES = 64
"""Of the draws of chains; then they are put together."""


@dataclass(frozen=True, slots=True)
class ChainCheckpoint:
    """Where chains that move together stood, and their draws so far."""

    folder: Path
    numbers: tuple[int, ...]
    state: ChainsState
    columns: Columns
    pieces: tuple[str, ...]


@dataclass(slots=True)
class Saved:
    """What a run has kept of its chains."""

    chains: dict[int, ChainCheckpoint] = field(default_factory=dict[int, ChainCheckpoint])
    """By number the newest that is whole."""
    engine: str | None = None
    """`replay` in a run of an earlier release, which no chain goes on with."""
    versions: dict[str, str] = field(default_factory=dict[str, str])
    seconds: float = 0.0
    damaged: list[DamagedFile] = field(default_factory=list[DamagedFile])


def versions(engine: str) -> dict[str, str]:
    """What decides how numbers are rounded."""
    own = {"qvr": __version__, "numpy": np.__version__, "machine": platform.machine()}
    package = "llvmlite" if engine == "compiled" else "torch"
    return own | {package: importlib.metadata.version(package)}


def read(directory: RunDirectory) -> Saved:
    """The chains of a run.  Raises `Refused` where another version has written them in another way."""
    saved = Saved()
    heads = sorted(directory.checkpoints.glob("chains-*/step-*"), key=lambda path: path.name, reverse=True)
    for head in heads:
        try:
            _take(saved, head)
        except DamagedFile as problem:
            saved.damaged.append(problem)
    return saved


def _take(saved: Saved, head: Path) -> None:
    found = checkpoints.read(head)
    state = found.state
    if state.get("format") != FORMAT:
        raise Refused(
            "other-version",
            f"{head} was written by another version of qvr ({state['versions']['qvr']}), in another form: "
            f"this is {__version__}",
            fixes=("Go on with that version", "Start a new run"),
        )
    numbers = tuple(state["numbers"])
    if all(number in saved.chains for number in numbers):
        return
    columns = _joined([_arrays(checkpoints.read(head.parent / name).tensors) for name in state["pieces"]])
    chains = ChainsState(found.step, _arrays(found.tensors), state["common"], state["generators"])
    kept = ChainCheckpoint(head.parent, numbers, chains, columns, tuple(state["pieces"]))
    saved.chains = {number: kept for number in numbers} | saved.chains
    saved.engine, saved.versions = state["engine"], state["versions"]
    saved.seconds = max(saved.seconds, state["seconds"])


def _arrays(tensors: dict[str, arrays.Tensor]) -> dict[str, Array]:
    return {name: tensor.numpy().copy() for name, tensor in tensors.items()}


def _joined(parts: Sequence[Columns], axis: int = 1) -> Columns:
    return {name: np.concatenate([part[name] for part in parts], axis) for name in parts[0]} if parts else {}


class ChainCheckpoints:
    """Keeps the chains of this process, and knows those that a broken-off run has left."""

    def __init__(
        self,
        directory: RunDirectory,
        config: RunConfig,
        engine: str,
        saved: Saved,
        stop: Stop,
        seconds: Callable[[], float],
        emit: Callable[[Event], None],
    ) -> None:
        self.directory, self.config, self.engine, self.saved = directory, config, engine, saved
        self.stop, self.seconds, self.emit = stop, seconds, emit
        self.total = config.warmup + config.samples
        self.path: str | None = None

    def draw_of(self, number: int) -> int:
        """Where a chain stands."""
        kept = self.saved.chains.get(number)
        return 0 if kept is None else kept.state.draw

    def keeper(self, place: int, numbers: Sequence[int]) -> GroupKeeper:
        """That of some chains, the `place`-th group of this process."""
        return GroupKeeper(self, place, tuple(numbers))


class GroupKeeper:
    """Keeps chains that move together; see `inference.mcmc.draws.Keeper`."""

    def __init__(self, run: ChainCheckpoints, place: int, numbers: tuple[int, ...]) -> None:
        self.run, self.place, self.numbers = run, place, numbers
        self.every = run.config.checkpoint_steps
        self.folder = run.directory.checkpoints / f"chains-{numbers[0]}-{numbers[-1]}"
        self._kept_at = run.seconds()
        self._draw: int | None = None
        self._pieces: list[str] = []
        self._written = 0

    def begun(self) -> tuple[ChainsState, Columns] | None:
        kept = [self.run.saved.chains.get(number) for number in self.numbers]
        found = [one for one in kept if one is not None]
        if len(found) < len(kept):
            return None
        whole = found[0]
        if whole.numbers == self.numbers and all(one is whole for one in found):
            if whole.folder == self.folder:
                self._draw, self._pieces = whole.state.draw, list(whole.pieces)
                self._written = whole.columns["q"].shape[1] if whole.columns else 0
            return whole.state, whole.columns
        rows = [one.numbers.index(number) for one, number in zip(found, self.numbers, strict=True)]
        states = [one.state.of([row]) for one, row in zip(found, rows, strict=True)]
        columns = [{n: c[row : row + 1] for n, c in one.columns.items()} for one, row in zip(found, rows, strict=True)]
        return together(states), _joined(columns, 0)

    def due(self, draw: int) -> bool:
        asked = self.run.stop.checkpoint.is_set()
        late = self.run.seconds() - self._kept_at >= self.run.config.checkpoint_seconds
        return asked or late or (self.every is not None and draw % self.every == 0)

    def keep(self, state: ChainsState, draws: Draws) -> None:
        self.run.stop.checkpoint.clear()
        self._kept_at = self.run.seconds()
        if state.draw == self._draw or not self.run.directory.path.is_dir():
            return
        step = self.place * self.run.total + state.draw
        try:
            pieces = self._with_new_draws(draws)
            path = checkpoints.save(
                self.folder, Checkpoint(state.draw, _tensors(state.arrays), self._head(state, pieces))
            )
        except OSError as error:
            text = f"no checkpoint at draw {state.draw}: {error}; the one before stands"
            self.run.emit(Message(level="warning", text=text))
            return
        self._drop_all_but({*pieces, *self._pieces})
        self._draw, self._pieces, self._written = state.draw, pieces, draws.count
        self.run.path = str(path)
        self.run.emit(CheckpointWritten(step=step, path=str(path)))

    def _head(self, state: ChainsState, pieces: Sequence[str]) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "numbers": list(self.numbers),
            "engine": self.run.engine,
            "versions": versions(self.run.engine),
            "seconds": self.run.seconds(),
            "common": dict(state.common),
            "generators": [dict(generator) for generator in state.generators],
            "pieces": list(pieces),
        }

    def _with_new_draws(self, draws: Draws) -> list[str]:
        """Write those that are not on disk yet; the pieces that all of them are in."""
        if draws.count == self._written:
            return self._pieces
        again = len(self._pieces) >= MOST_PIECES
        first = 0 if again else self._written
        name = f"draws-{first}-{draws.count}"
        new = {column: values[:, first:] for column, values in draws.columns().items()}
        checkpoints.write(self.folder / name, Checkpoint(draws.count, _tensors(new), {}))
        return [name] if again else [*self._pieces, name]

    def _drop_all_but(self, pieces: set[str]) -> None:
        for folder in self.folder.glob("draws-*"):
            if folder.name not in pieces:
                shutil.rmtree(folder, ignore_errors=True)


def together(states: Sequence[ChainsState]) -> ChainsState:
    """Chains at the same draw that were kept apart, side by side."""
    first = states[0]
    alike = all(state.common == first.common for state in states)
    # those that did not go over to a recorded density at once do so again
    common = first.common if alike else {**first.common, "evaluations": 0}
    names = [name for name in first.arrays if name != "recorded_at" or alike]
    joined = {name: np.concatenate([state.arrays[name] for state in states]) for name in names}
    return ChainsState(first.draw, joined, common, [generator for state in states for generator in state.generators])


def _tensors(held: Any) -> dict[str, arrays.Tensor]:
    return {name: arrays.from_numpy(np.ascontiguousarray(array)) for name, array in held.items()}
