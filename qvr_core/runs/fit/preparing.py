"""What makes the steps of a fit: machine code, made ready before the first one, or torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qvr_core.data.binding import Whole
from qvr_core.inference.compiled_steps import Choice, Fitted, choose
from qvr_core.runs.fit.compiling import told_if_long
from qvr_core.runs.record.protocol import Event

if TYPE_CHECKING:
    from qvr_core.runs.fit.svi import SviFit

WORTH_COMPILING = 1000
"""Optimiser steps from which on machine code pays."""


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
