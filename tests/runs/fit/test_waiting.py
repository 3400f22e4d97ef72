"""A run that waits says what for."""

from __future__ import annotations

import threading

import pytest

from qvr_core.runs.fit import waiting_messages
from qvr_core.runs.record.protocol import Event, Message


def test_what_is_computed_after_the_last_draw_is_told_where_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_messages, "LONG_FIGURES", 0.0)
    told, there = list[Event](), threading.Event()

    def emit(event: Event) -> None:
        told.append(event)
        there.set()

    with waiting_messages.figures_told_if_long(emit):
        assert there.wait(60)
    assert [one.text for one in told if isinstance(one, Message)] == [
        "the chains are done: predictions and log likelihoods of their draws are computed"
    ]


def test_what_is_soon_computed_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_messages, "LONG_FIGURES", 3600.0)
    told = list[Event]()
    with waiting_messages.figures_told_if_long(told.append):
        pass
    assert told == []
