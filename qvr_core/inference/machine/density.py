"""A log density and its gradient as one compiled function, taken only where it gives what the plain one gives."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from numpy.typing import NDArray

from qvr_core.arrays.engine import TORCH, arrays
from qvr_core.arrays.graph import Unsupported
from qvr_core.codegen.llvm import MISSING, available
from qvr_core.codegen.lowering.density import lowered
from qvr_core.codegen.lowering.lowering import NoLoops
from qvr_core.codegen.source import Text
from qvr_core.inference.machine.compiled import MachineDensity
from qvr_core.inference.machine.referee import Plain, disagreement
from qvr_core.inference.machine.tracing import Traceable, density_graph, work_of
from qvr_core.runtime.programs.chains.adaptive import TooManySteps, patient_for

Array = NDArray[Any]
MOST_OPERATIONS = 12_000
"""Of a graph; lowering one takes 0.1 ms an operation."""
PLAIN_STEPS = 500
"""Of a differential equation solved by plain operations, 0.3 ms each, where its machine code is compared with them."""
MOST_LINES = 1000
"""Longer texts take the compiler longer than they are worth."""


class NotCompiled(Exception):
    """Why a density runs as torch operations; the message ends a sentence.  `surprising` where users would expect it to
    be compiled."""

    def __init__(self, why: str, *, surprising: bool = True) -> None:
        super().__init__(why)
        self.surprising = surprising


def text_of(potential: Traceable) -> tuple[Text, int]:
    """The loops of a density as text with its constants, and the work of one evaluation.  Raises `NotCompiled`."""
    try:
        value, gradient = density_graph(potential)
        if len(value.graph.nodes) > MOST_OPERATIONS:
            raise NotCompiled(f"there are no loops for so large a graph ({len(value.graph.nodes):,} operations)")
        text = lowered(value, gradient)
    except NoLoops as lacking:
        raise NotCompiled(f"there are no loops for {lacking}") from None
    except Unsupported as lacking:
        raise NotCompiled(f"there are no arrays for {lacking}") from None
    except (ValueError, IndexError, TypeError, RuntimeError) as error:
        raise NotCompiled(f"it cannot be traced ({_first_line(error)})") from error
    if text.lines > MOST_LINES:
        raise NotCompiled(f"there are no loops for so long a program ({text.lines:,} lines of loops)")
    return text, work_of(value)


def machine_density(potential: Traceable, start: Array, *, like: MachineDensity | None = None) -> MachineDensity:
    """The density of one chain compiled, compared with the plain one at positions around `start` (width,).

    Code that is that of `like`, with other data, was compared.  Raises `NotCompiled` where it has no loops, where there
    is no compiler, or where the two differ; and whatever the plain density raises at data that are wrong.
    """
    if not available():
        raise NotCompiled(MISSING)
    # what is wrong with the data is found by the plain program: nothing is looked at while it is traced
    start = _cheap_start(potential, start)
    text, work = text_of(potential)
    return _built(text, work, potential, start, like)


def _cheap_start(potential: Traceable, start: Array) -> Array:
    """A position on the way to the middle of the space where the plain density is soon evaluated: at rates out of all
    proportion an adaptive solution takes a million steps, minutes of plain operations."""
    for nearer in (1.0, 0.5, 0.2):
        with contextlib.suppress(TooManySteps), patient_for(PLAIN_STEPS):
            potential.log_densities(nearer * start[None])
            return nearer * start
    potential.log_densities(0.0 * start[None])
    return 0.0 * start


def _built(
    text: Text, work: int, potential: Traceable, start: Array, like: MachineDensity | None = None
) -> MachineDensity:
    """The compiled text, once it gives what the plain density gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = MachineDensity.of(text, potential.width)
        except Exception as error:
            raise NotCompiled(f"the compiler failed ({_first_line(error)})") from error
    if like is not None and like.source == text.source:
        return made
    slopes = gradients_of(potential) if text.adaptive else None
    try:
        with patient_for(PLAIN_STEPS):
            why = disagreement(made, potential.log_densities, start, work, adaptive=text.adaptive, slopes=slopes)
    except TooManySteps:
        # at the start itself it was evaluated
        why = disagreement(made, potential.log_densities, start, work, 1, adaptive=text.adaptive, slopes=slopes)
    if why is not None:
        raise NotCompiled(why)
    return made


def gradients_of(potential: Traceable) -> Plain | None:
    """Those of the plain density, (N, width) at positions (N, width), where the engine derives by itself."""
    derived = getattr(potential, "value_and_grad", None)
    if not TORCH or derived is None:
        return None
    return lambda q: derived(arrays.from_numpy(q))[1].detach().double().numpy()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
