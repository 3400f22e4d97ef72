"""What ends a run early, or asks it for a checkpoint."""

from __future__ import annotations

import threading


class Stop:
    """Whether the run was asked to end or to write a checkpoint; set from the stdin thread and from signals."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.checkpoint = threading.Event()

    def cancel(self, *_: object) -> None:
        self.cancelled.set()
