"""A few draws of running chains on their way to who watches them: thinned, of some numbers, now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.inference.axes import Axes, each_element
from qvr_core.inference.mcmc import Progress
from qvr_core.inference.mcmc.mass import Array
from qvr_core.inference.mcmc.potential import Potential
from qvr_core.runs.evaluation.posterior_table import labels_of
from qvr_core.runs.record.protocol import ChainSoFar, Draws

MOST_NUMBERS, MOST_CHAINS = 12, 8
"""Numbers that are shown, and chains."""
MOST_DRAWN, MOST_AT_ONCE = 200, 24
"""Draws of a chain in all events together (more where a run is extended), and in one of them."""
INTERVAL = 0.5
"""Seconds between two events."""
SHARE, LONGEST = 0.05, 0.2
"""Of a run's time that showing draws may take, and seconds after which no further draw goes into an event."""


@dataclass(slots=True)
class Waiting:
    """Draws of some chains that have not been sent: at most `MOST_AT_ONCE`, every `every`-th that came."""

    chains: tuple[int, ...]
    draws: list[int] = field(default_factory=list[int])
    positions: list[Array] = field(default_factory=list[Array])
    diverging: list[Array] = field(default_factory=list[Array])

    def add(self, draw: int, now: Progress) -> None:
        self.draws.append(draw)
        self.positions.append(now.position)
        self.diverging.append(now.diverging)

    def thin(self) -> None:
        """Drop every other draw."""
        for kept in (self.draws, self.positions, self.diverging):
            del kept[1::2]


class ShownDraws:
    """Takes the transitions behind the warm-up, and emits some of them.  No draw depends on it."""

    def __init__(
        self,
        potential: Potential,
        sites: Collection[str],
        axes: Axes,
        warmup: int,
        samples: int,
        emit: Callable[[Draws], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._potential, self._sites, self._axes = potential, sites, axes
        self._warmup, self._samples = warmup, samples
        self._emit, self._clock = emit, clock
        self._every = max(1, -(-samples // MOST_DRAWN))
        self._next = clock() + INTERVAL
        self._waiting: dict[tuple[int, ...], Waiting] = {}
        """By chains that move together; on a cluster each moves alone."""
        self._numbers: list[tuple[str, int, str]] | None = None

    def shown_between(self, first: int, after: int) -> range:
        """Which transitions from `first` up to `after` are shown at all."""
        begin = first + (self._warmup - first) % self._every
        return range(begin, after, self._every)

    def take(self, chains: Sequence[int], now: Progress) -> None:
        """One transition of these chains."""
        draw, shown = now.draw - self._warmup, tuple(chains)
        if draw % self._every or shown[0] >= MOST_CHAINS:
            return
        waiting = self._waiting.setdefault(shown, Waiting(shown))
        waiting.add(draw, now)
        if self._clock() >= self._next:
            self.flush()
        elif len(waiting.draws) > MOST_AT_ONCE:
            waiting.thin()

    def flush(self) -> None:
        """Emit what waits."""
        waiting, self._waiting = [*self._waiting.values()], {}
        if not waiting:
            return
        began = self._clock()
        made = [so_far for one in waiting for so_far in self._sent(one, began)]
        names = tuple(label for _, _, label in self._numbers or ())
        if names:
            self._emit(Draws(names=names, total=self._samples, chains=tuple(made)))
        now = self._clock()
        self._next = now + max(INTERVAL, (now - began) / SHARE)

    def _sent(self, waiting: Waiting, began: float) -> list[ChainSoFar]:
        values: list[Tensor] = []
        for position in waiting.positions:
            # as many rows at a time as the chains have: nothing is laid out for another number of them
            values.append(self._values(arrays.from_numpy(position.copy())))
            if self._clock() - began > LONGEST:
                break
        rows = range(sum(chain < MOST_CHAINS for chain in waiting.chains))
        return [_so_far(waiting, values, row) for row in rows]

    def _values(self, position: Tensor) -> Tensor:
        """(chains, numbers) of what is shown."""
        latents = self._potential.report(position)
        if self._numbers is None:
            self._numbers = list(_worth_showing(latents, self._sites, self._axes))
        columns = [latents[name].reshape(len(position), -1)[:, at] for name, at, _ in self._numbers]
        return arrays.stack([column.double() for column in columns], 1) if columns else arrays.zeros(len(position), 0)


def _so_far(waiting: Waiting, values: Sequence[Tensor], row: int) -> ChainSoFar:
    diverging = [place for place, found in enumerate(waiting.diverging[: len(values)]) if bool(found[row])]
    columns = arrays.stack([one[row] for one in values], 1).numpy().tolist()
    return ChainSoFar(
        chain=waiting.chains[row],
        draws=tuple(waiting.draws[: len(values)]),
        diverging=tuple(diverging),
        values=tuple(tuple(float(f"{value:.5g}") for value in column) for column in columns),
    )


def _worth_showing(latents: Mapping[str, Tensor], sites: Collection[str], axes: Axes) -> Iterator[tuple[str, int, str]]:
    """Site, place in it and label: numbers that stand alone, then the first of each larger site in turn."""
    own = {name: value for name, value in latents.items() if name in sites and value[0].numel()}
    single = [name for name, value in own.items() if value[0].numel() == 1]
    larger = [name for name in own if name not in single]
    places = [(name, 0) for name in single]
    places += [(name, at) for at in range(MOST_NUMBERS) for name in larger if at < own[name][0].numel()]
    shown = places[:MOST_NUMBERS]
    for name in dict.fromkeys(name for name, _ in shown):
        wanted = sum(1 for one, _ in shown if one == name)
        all_labels = each_element(name, own[name].shape[1:], labels_of(axes, name))
        yield from ((name, at, label) for at, label in enumerate(islice(all_labels, wanted)))
