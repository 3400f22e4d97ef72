"""What is said while a run waits: for its machine code, and for what is computed of its draws."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from qvr_core.codegen.llvm import told
from qvr_core.runs.record.protocol import Event, Message

LONG = 1.0
"""Seconds of compiling after which it is said that it goes on; reading what was compiled before is none."""


LONG_FIGURES = 5.0
"""Seconds of computing after the last draw, of which a differential equation may want a minute."""


@contextmanager
def figures_told_if_long(emit: Callable[[Event], None]) -> Generator[None]:
    """Within the block what follows from all draws is computed: say so where that takes long."""
    text = "the chains are done: predictions and log likelihoods of their draws are computed"
    timer = threading.Timer(LONG_FIGURES, lambda: emit(Message(level="info", text=text)))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def told_if_long(emit: Callable[[Event], None]) -> Generator[None]:
    """Within the block something is compiled, or read from disk: say so where compiling takes long."""
    text = "preparing the program's machine code: it is compiled once, then kept on disk"
    timer = threading.Timer(LONG, lambda: emit(Message(level="info", text=text)))
    begun = threading.Event()

    def begins() -> None:
        if not begun.is_set():
            begun.set()
            timer.start()

    try:
        with told(begins):
            yield
    finally:
        timer.cancel()
        if begun.is_set():
            timer.join()
