"""What makes the steps of a fit: machine code, made ready before the first one, or torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qvr_core.arrays.engine import TORCH
from qvr_core.arrays.engine_choice import TorchWanted
from qvr_core.data.binding import Whole
from qvr_core.inference.compiled_steps import Choice, Fitted, choose
from qvr_core.runs.fit.waiting_messages import told_if_long
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.record.protocol import Event

if TYPE_CHECKING:
    from qvr_core.runs.fit.svi import SviFit


def chosen_steps(fit: SviFit, emit: Callable[[Event], None]) -> Choice:
    """What makes the steps of a fit, once its parameters are those that it starts or goes on from.

    Raises `TorchWanted` where a process without torch has no machine code for it, and `Refused` where a fit would go on
    with another kind of steps.
    """
    choice = _chosen(fit, emit)
    if not TORCH and choice.engine != "compiled":
        raise TorchWanted(choice.note or "its steps are those of torch")
    if fit.began_on == "compiled" != choice.engine:
        why = f": {choice.note}" if choice.note else ""
        raise Refused(
            "other-engine",
            f"the steps of this run began as machine code, which is not to be had now{why}",
            fixes=("Go on where they began", "Start a new run"),
        )
    return choice


def _chosen(fit: SviFit, emit: Callable[[Event], None]) -> Choice:
    config, wanted = fit.config, fit.config.engine
    # steps that torch has made go on there: these see other noise
    if wanted == "plain" or fit.began_on not in (None, "compiled"):
        return Choice("plain")
    if (why := _stays_on_torch(fit)) is not None:
        return Choice("plain", note=None if wanted == "auto" else f"the steps run as torch operations: {why}")
    x, observations = fit.batch(0)[0]
    with told_if_long(emit):
        fitted = Fitted(fit.model, fit.guide, fit.objective, fit.optimizer)
        return choose(fitted, x, observations, wanted, config.clip_gradient)


def _stays_on_torch(fit: SviFit) -> str | None:
    if TORCH and not isinstance(fit.train, Whole):
        # the loops of each part are traced anew, which takes longer than torch does
        return "each sees a part of the rows"
    if fit.team.size > 1:
        return "several processes share them"
    return "they are asked for in bfloat16" if fit.config.precision == "bfloat16" else None
