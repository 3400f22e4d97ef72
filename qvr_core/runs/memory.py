"""The memory a run will need, computed from the typed model before anything is built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from qvr_core.ide.arrows import parameter_count
from qvr_core.runs.config import RunConfig
from qvr_core.runs.failures import Refused
from qvr_core.semantics.model import Arrow, Kernel, Model, Program
from qvr_core.semantics.spaces import width

# torch, the interpreter and their buffers.
BASE = 400 * 2**20
# Copies of a parameter that a step holds: itself, its gradient, and the optimiser's moments.
STATES = {"adam": 4, "adamw": 4, "rmsprop": 3, "adagrad": 3, "sgd": 2}
# Forward values kept for the backward pass, and gradients of about the same size.
ACTIVATION_COPIES = 2


@dataclass(frozen=True)
class Estimate:
    """Bytes, and the declarations that need most of them: (name, bytes, how it is written)."""

    parameters: int
    activations: int
    draws: int
    largest: tuple[tuple[str, int, str], ...]

    @property
    def total(self) -> int:
        return BASE + self.parameters + self.activations + self.draws


def estimate(model: Model, program: Program, config: RunConfig, *, rows: int, sequence: bool) -> Estimate:
    """What a run of `program` needs with `rows` rows in a step."""
    number = 8 if config.precision == "float64" else 4
    count = parameter_count(model, program) or 0
    declared = sorted(_declared(model), key=lambda item: -item[1])
    positions = rows * (config.sequence_length if sequence else 1)
    particles = config.particles if config.algorithm == "svi" else 1
    values = sum(_values(arrow) for arrow in model.arrows.values())
    activations = ACTIVATION_COPIES * values * positions * particles * number
    if config.algorithm == "svi":
        return Estimate(STATES[config.optimizer] * count * number, activations, 0, _largest(model, declared, number))
    # A chain's state, its momentum, gradient, mass, and the ends of its tree; and every draw that is kept.
    chains = config.chains * count * number
    return Estimate(
        10 * chains, activations * config.chains, chains * config.samples, _largest(model, declared, number)
    )


def _declared(model: Model) -> Iterator[tuple[str, int]]:
    for name, arrow in model.arrows.items():
        yield name, parameter_count(model, arrow) or 0


def _largest(model: Model, declared: list[tuple[str, int]], number: int) -> tuple[tuple[str, int, str], ...]:
    return tuple(
        (name, count * number, f"{model.arrows[name].domain.written} -> {model.arrows[name].codomain.written}")
        for name, count in declared[:3]
        if count
    )


def _values(arrow: Arrow) -> int:
    """Numbers that one application leaves for the backward pass."""
    size = width(arrow.codomain.space)
    kept = size if isinstance(size, int) else 0
    return 3 * kept + 2 * arrow.hidden_dim if isinstance(arrow, Kernel) else kept


def check_fits(needed: Estimate, limit: int | None) -> None:
    """Refuse a run that cannot fit, with the numbers and the declarations to blame."""
    free = limit if limit is not None else available()
    if free is None or needed.total <= free:
        return
    blamed = "; ".join(f"`{name} : {written}` has {_bytes(size)}" for name, size, written in needed.largest)
    detail = f"{_bytes(needed.parameters)} for parameters and optimiser, {_bytes(needed.activations)} for a step"
    if needed.draws:
        detail += f", {_bytes(needed.draws)} for the draws that are kept"
    raise Refused(
        "memory",
        f"the run would need about {_bytes(needed.total)} and {_bytes(free)} are free: {detail}. {blamed}",
        fixes=(
            "Make the widest spaces smaller",
            "Use a smaller batch_size or sequence_length",
            "Raise memory_limit if you know better",
        ),
    )


def available() -> int | None:
    """Bytes that this process may still take: the machine's, or its cgroup's where that is less.  None: unknown."""
    found: list[int] = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except OSError:
        pass
    try:
        most = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if most != "max":
            found.append(int(most) - int(Path("/sys/fs/cgroup/memory.current").read_text()))
    except (OSError, ValueError):
        pass
    return min(found) if found else None


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if count < 1000 or unit == "PB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError
