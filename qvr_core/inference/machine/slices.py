"""A slice of a chain as a unit of work: its state as bytes out, its transitions and new state as bytes back.

The archive of all slices is the density as the text of its loops with the data that it reads, the settings of the
chains, and values at a few positions: the machine that gets it compiles for its own processor and compares.  How far a
slice goes is a matter of seconds, which change no draw; so a slice that is made again on another machine of the same
kind may be longer or shorter, and its transitions are the same to the last bit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core import __version__
from qvr_core.cluster.packing import Archive, UnitFailed, answered, packed, unpacked
from qvr_core.codegen.build import address_of
from qvr_core.codegen.llvm import processor
from qvr_core.codegen.source import Text
from qvr_core.inference.machine.chain import Chain, Settings
from qvr_core.inference.machine.compiled import MachineDensity

Array = NDArray[Any]
KIND = "chains"
SECONDS = 1.0
"""That a slice takes about: some tens of thousands of what a scheduler spends on it, and little to lose."""
TRANSITIONS, LONG = 25, 0.25
"""Between two looks at the clock at most, and the seconds that they should take at most."""
TOLERANCE = 1e-7
"""Of a value or gradient on another processor, relative to the larger of 1 and the number: sums are rounded in another
order."""


def kind_of_machine() -> str:
    """What decides how machine code rounds here: releases, architecture, processor and its features."""
    import llvmlite  # pyright: ignore[reportMissingTypeStubs]

    _, name, features = processor()
    version: str = llvmlite.__version__
    return f"qvr {__version__}, numpy {np.__version__}, llvmlite {version}, {name} ({_short(features)})"


def _short(features: str) -> str:
    """Features of a processor by a number that is the same where they are."""
    import zlib

    return f"{zlib.crc32(features.encode()):08x}"


def archive_of(density: MachineDensity, settings: Settings, positions: Array) -> Archive:
    """A density with the settings of its chains; compared where it arrives at `positions` (n, D)."""
    found = [density(q) for q in positions]
    head = {
        "kind": KIND,
        "source": density.source,
        "room": density.room,
        "width": density.width,
        "settings": asdict(settings),
    }
    arrays = {
        "reals": density.reals,
        "wholes": density.wholes,
        "positions": positions,
        "values": np.array([value for value, _ in found]),
        "gradients": np.stack([gradient for _, gradient in found]),
    }
    return Archive(packed(head, arrays))


def request(chain: Chain, until: int, seconds: float) -> bytes:
    """Go on from where a chain stands to the transition `until`, or as far as is come in so many seconds."""
    state = chain.state()
    head = {"draw": state.pop("draw"), "generator": state.pop("generator"), "until": until, "seconds": seconds}
    return packed(head, state)


@dataclass(frozen=True, slots=True)
class Advanced:
    """What a slice has made: positions (transitions, D) and reports (transitions, 7), and on which kind of machine."""

    positions: Array
    reports: Array
    machine: str


def taken(chain: Chain, answer: bytes) -> Advanced:
    """Put a chain where the answer to its request has brought it.  Raises `UnitFailed` where there is none, ValueError
    where it is the answer to another one."""
    head, arrays = answered(answer)
    positions, reports = arrays.pop("positions"), arrays.pop("reports")
    if head["from"] != chain.draw or len(positions) != head["draw"] - chain.draw:
        raise ValueError(f"a slice from transition {head['from']} has come where one from {chain.draw} was asked for")
    chain.restore({**arrays, "draw": head["draw"], "generator": head["generator"]})
    return Advanced(positions, reports, head["machine"])


class Slices:
    """The other end: makes the slices that are asked for."""

    def __init__(self, head: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        source, room, width = head["source"], head["room"], head["width"]
        address, keeps = address_of(Text(source, room, [], []))
        self.density = MachineDensity(address, width, room, arrays["reals"], arrays["wholes"], keeps, source)
        settings: dict[str, Any] = head["settings"]
        ends: tuple[int, ...] = tuple(settings.pop("ends"))
        self.settings = Settings(ends=ends, **settings)
        self._compare(arrays["positions"], arrays["values"], arrays["gradients"])

    def _compare(self, positions: Array, values: Array, gradients: Array) -> None:
        for q, value, gradient in zip(positions, values, gradients, strict=True):
            here, slope = self.density(q)
            if not (_close(np.array([here]), np.array([value])) and _close(slope, gradient)):
                raise UnitFailed(
                    f"the machine code of {kind_of_machine()} gives another density than that of the command: "
                    f"{here!r}, not {float(value)!r}"
                )

    def answer(self, asked: bytes) -> bytes:
        """What `taken` takes."""
        head, arrays = unpacked(asked)
        q = arrays["q"]
        chain = Chain(self.density, self.settings, q, 0.0, arrays["g"], np.random.default_rng(0))
        chain.restore({**arrays, "draw": head["draw"], "generator": head["generator"]})
        parts = list(self._advanced(chain, head["until"], head["seconds"]))
        state = chain.state()
        back = {"from": head["draw"], "draw": state.pop("draw"), "generator": state.pop("generator")}
        made = {"positions": _joined([p for p, _ in parts], len(q)), "reports": _joined([r for _, r in parts], 7)}
        return packed({**back, "machine": kind_of_machine()}, {**state, **made})

    def _advanced(self, chain: Chain, until: int, seconds: float) -> Any:
        began, size = time.perf_counter(), 1
        while chain.draw < until:
            before = time.perf_counter()
            yield chain.advance(min(size, until - chain.draw))
            now = time.perf_counter()
            if now - began >= seconds:
                break
            size = max(1, size // 2) if now - before > LONG else min(TRANSITIONS, size * 2)


def _joined(parts: Sequence[Array], width: int) -> Array:
    return np.concatenate(parts) if parts else np.empty((0, width))


def _close(here: Array, there: Array) -> bool:
    """Whether numbers agree but for rounding; those that are not finite are nobody's."""
    if not np.isfinite(there).all():
        return not np.isfinite(here).all()
    return bool(np.all(np.abs(here - there) <= TOLERANCE * max(1.0, float(np.abs(there).max()))))
