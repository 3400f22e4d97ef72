"""Machine code for a run, made ready before its first step; what takes long is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from qvr_core.codegen.llvm import told
from qvr_core.data.binding import Whole
from qvr_core.inference.compiled_steps import Choice, Fitted, choose
from qvr_core.runs.record.protocol import Event, Message

if TYPE_CHECKING:
    from qvr_core.runs.fit.svi import SviFit

LONG = 1.0
"""Seconds of compiling after which it is said that it goes on; reading what was compiled before is none."""
WORTH_COMPILING = 1000
"""Optimiser steps from which on machine code pays."""


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


def chosen_steps(fit: SviFit, emit: Callable[[Event], None]) -> Choice:
    """What makes the steps of a fit, once its parameters are those that it starts or goes on from."""
    config, wanted = fit.config, fit.config.engine
    if wanted == "plain" or (wanted == "auto" and config.steps < WORTH_COMPILING):
        return Choice("plain")
    if (why := _stays_on_torch(fit)) is not None:
        return Choice("plain", note=None if wanted == "auto" else f"the steps run as torch operations: {why}")
    x, observations = fit.batch(0)[0]
    with told_if_long(emit):
        fitted = Fitted(fit.model, fit.guide, fit.objective, fit.optimizer)
        return choose(fitted, x, observations, wanted, config.clip_gradient)


def _stays_on_torch(fit: SviFit) -> str | None:
    if not isinstance(fit.train, Whole):
        return "each sees a part of the rows"
    if fit.team.size > 1:
        return "several processes share them"
    return "they are asked for in bfloat16" if fit.config.precision == "bfloat16" else None
