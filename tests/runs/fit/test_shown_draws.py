"""Draws that are shown while chains run: some of those that are stored, never more than a bounded number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from qvr_core.inference.mcmc import Progress
from qvr_core.runs.fit import shown_draws
from qvr_core.runs.fit.shown_draws import MOST_AT_ONCE, MOST_CHAINS, MOST_DRAWN, MOST_NUMBERS, ShownDraws
from qvr_core.runs.record.protocol import Draws, Event, Finished, parse_event
from qvr_core.runs.record.store import RunDirectory
from tests.runs.fit.killed_chains import conducted
from tests.runs.jobs import LATENTS, make_job

LABELLED = """\
object Site : {north, south, west}
program heights : Site -> Site
    sample mu <- Normal(0.0, 5.0)
    sample b : Site <- Normal(mu, 1.0)
    observe y : Site <- Normal(b, 1.0)
    return y
"""


def sampled(folder: Path, model: str = LATENTS, **config: object) -> tuple[Any, list[Draws], list[Event]]:
    import xarray

    settings: dict[str, Any] = {
        "warmup": 20,
        "samples": 40,
        "chains": 2,
        "max_tree_depth": 4,
        "engine": "plain",
        **config,
    }
    folder.mkdir(exist_ok=True)
    job = make_job(folder, model, algorithm="nuts", data="synthetic", **settings)
    events = conducted(job)
    assert isinstance(events[-1], Finished)
    stored: Any = xarray.open_datatree(str(RunDirectory.of(job).posterior), engine="h5netcdf")  # pyright: ignore
    return stored["posterior"], [event for event in events if isinstance(event, Draws)], events


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_shown_draws_are_those_that_are_stored(tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_draws, "INTERVAL", 0.0)
    monkeypatch.setattr(shown_draws, "SHARE", 1e9)
    posterior, shown, _ = sampled(tmp_path, LABELLED, engine=engine)
    assert len(shown) > 1
    assert {event.names for event in shown} == {("mu", "b[north]", "b[south]", "b[west]")}
    seen: dict[int, list[int]] = {}
    for event in shown:
        assert event.total == 40
        for chain in event.chains:
            seen.setdefault(chain.chain, []).extend(chain.draws)
            draws = list(chain.draws)
            stored = [posterior["mu"].to_numpy()[chain.chain, draws]]
            stored += list(posterior["b"].to_numpy()[chain.chain, draws].reshape(len(draws), 3).T)
            np.testing.assert_allclose(np.array(chain.values, dtype=float), np.stack(stored), rtol=1e-4)
    assert seen == {0: list(range(40)), 1: list(range(40))}


@pytest.mark.long
def test_watching_changes_no_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unseen, shown, _ = sampled(tmp_path / "a")
    monkeypatch.setattr(shown_draws, "INTERVAL", 0.0)
    monkeypatch.setattr(shown_draws, "SHARE", 1e9)
    seen, often, _ = sampled(tmp_path / "b")
    assert len(often) > len(shown)
    for name in ("mu", "tau", "z"):
        np.testing.assert_array_equal(unseen[name].to_numpy(), seen[name].to_numpy())


def test_chains_one_after_the_other_are_shown_by_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(*_: object) -> bool:
        return False

    monkeypatch.setattr("qvr_core.runs.fit.chains.rows_are_independent", alone)
    _, shown, _ = sampled(tmp_path, chains=3)
    assert {chain.chain for event in shown for chain in event.chains} == {0, 1, 2}


class Clock:
    """Stands still until it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Wide:
    """Positions of 50 numbers, and one that stands alone."""

    def report(self, q: Tensor) -> dict[str, Tensor]:
        return {"w": q[:, :50], "alone": q[:, 50], "net/weight": q}


def transition(draw: int, chains: int) -> Progress:
    each = torch.zeros(chains)
    return Progress(draw, 10_000, False, each, each > 0, each, each, each, np.full((chains, 51), float(draw)))


def test_events_are_bounded() -> None:
    clock, events = Clock(), list[Draws]()
    shown = ShownDraws(Wide(), {"w", "alone"}, {}, 100, 5_000, events.append, clock)  # pyright: ignore
    chains = list(range(20))
    for draw in range(100, 5_100):
        if draw % 1_000 == 0:
            clock.now += 1.0
        shown.take(chains, transition(draw, 20))
    shown.flush()
    assert 4 <= len(events) <= 6
    made = 0
    for event in events:
        assert event.names == ("alone", *(f"w[{at}]" for at in range(MOST_NUMBERS - 1)))
        assert [chain.chain for chain in event.chains] == list(range(MOST_CHAINS))
        assert all(len(chain.draws) <= MOST_AT_ONCE + 1 for chain in event.chains)
        made += len(event.chains[0].draws)
        assert event.chains[0].values[0] == tuple(float(draw + 100) for draw in event.chains[0].draws)
        assert parse_event(event.encoded()) == event
    assert made <= MOST_DRAWN


def test_slow_programs_show_less_and_more_rarely() -> None:
    clock, events = Clock(), list[Draws]()

    class Slow(Wide):
        def report(self, q: Tensor) -> dict[str, Tensor]:
            clock.now += 1.0
            return super().report(q)

    shown = ShownDraws(Slow(), {"w"}, {}, 0, 100, events.append, clock)  # pyright: ignore
    for draw in range(100):
        clock.now += 1.0
        shown.take([0, 1], transition(draw, 2))
    assert all(len(event.chains[0].draws) == 1 for event in events)
    # a twentieth of the time, not half of it
    assert 4 <= len(events) <= 6


def test_numbers_that_are_not_finite_travel_as_null() -> None:
    events: list[Draws] = []
    shown = ShownDraws(Wide(), {"alone"}, {}, 0, 100, events.append)  # pyright: ignore
    now = transition(0, 1)
    now.position[0, 50] = float("inf")
    shown.take([0], now)
    shown.flush()
    assert '"values":[[null]]' in events[0].encoded()
