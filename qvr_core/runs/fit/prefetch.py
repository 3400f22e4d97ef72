"""Batches made while the step before is computed: a few at a time, in a thread of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Ahead(Generic[Made]):
    """`make(step)` for the steps that come next, at most `depth` of them, below `stop`.

    `make` is a function of the step alone, so a batch is the same whether it was made ahead or asked for; a run that is
    resumed sees the batches of an unbroken one.  What it raises is raised where its step is asked for.
    """

    def __init__(self, make: Callable[[int], Made], stop: int, depth: int = 2) -> None:
        self._make = make
        self._stop = stop
        self._depth = depth
        self._made: dict[int, Future[Made]] = {}
        # One thread: `make` may keep state that two would share.
        self._thread = ThreadPoolExecutor(1, "prefetch")

    def __call__(self, step: int) -> Made:
        for old in [known for known in self._made if not step <= known < step + self._depth]:
            self._made.pop(old).cancel()
        for coming in range(step, min(step + self._depth + 1, max(self._stop, step + 1))):
            if coming not in self._made:
                self._made[coming] = self._thread.submit(self._make, coming)
        return self._made.pop(step).result()
