"""What is said while a run waits for its machine code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from qvr_core.codegen.llvm import told
from qvr_core.runs.record.protocol import Event, Message

LONG = 1.0
"""Seconds of compiling after which it is said that it goes on; reading what was compiled before is none."""


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
