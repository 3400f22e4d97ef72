"""Events on their way out of the worker: stored, sent, progress merged to ten a second, or a hundred a curve."""

from __future__ import annotations

import time
from collections.abc import Callable

from qvr_core.runs.record.protocol import ENDINGS, Event, Message, Progress
from qvr_core.runs.record.store import RunDirectory

INTERVAL = 0.1
STORED_INTERVAL = 1.0
POINTS = 100
"""Of a curve of losses, however fast its steps are: two points would make a line of any curve."""


class Emitter:
    """Hands events to `send` and writes them to the run directory.

    Of progress events that come faster than ten a second only the newest goes out, and only one a second is stored,
    but that a curve of losses has its points; what is held back goes out before the next event of another kind.
    """

    def __init__(
        self, directory: RunDirectory, send: Callable[[Event], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._directory = directory
        self._send = send
        self._clock = clock
        self._sent = self._stored = -1e9
        self._held: Progress | None = None
        self._point = 0
        self._store_works = True

    def emit(self, event: Event) -> None:
        """Send an event; a progress event perhaps later, merged into a newer one."""
        now = self._clock()
        if isinstance(event, Progress):
            on_curve = event.loss is not None and event.step >= self._point
            if now - self._sent < INTERVAL and not on_curve:
                self._held = event
                return
            self._held = None
            self._sent = now
            self._send(event)
            if on_curve:
                self._point = event.step + max(1, event.steps // POINTS)
            if on_curve or now - self._stored >= STORED_INTERVAL:
                self._stored = now
                self._store(event)
            return
        if self._held is not None:
            held, self._held = self._held, None
            self._send(held)
            self._store(held)
        self._store(event)
        self._send(event)

    def _store(self, event: Event) -> None:
        """A disk that is full must not end the run: it is said once, and checkpoints tell the rest."""
        if not self._store_works:
            return
        try:
            self._directory.append(event)
            if isinstance(event, ENDINGS):
                self._directory.end(event)
        except OSError as error:
            self._store_works = False
            self._send(Message(level="warning", text=f"events are no longer stored: {error}"))
