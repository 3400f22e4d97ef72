"""A log density and its gradient as one compiled function, taken only where it gives what the plain one gives."""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx

from qvr_core.arrays.graph import Unsupported
from qvr_core.codegen.build import address_of
from qvr_core.codegen.intrinsics import DENSITY
from qvr_core.codegen.llvm import MISSING, available
from qvr_core.codegen.lowering.lowering import NoLoops
from qvr_core.codegen.lowering.whole import lowered
from qvr_core.codegen.source import Text, written
from qvr_core.inference.density.recorded import ValueAndGrad, node_values, recorded, simplify
from qvr_core.inference.density.tracing import Traceable, density_graph
from qvr_core.inference.machine import elementwise, factorisations, gathers, reductions, views
from qvr_core.inference.machine.kept import keep, kept
from qvr_core.inference.machine.lowering import Lowering, Unknown
from qvr_core.runtime.programs.chains.elements import written_out

RULES = (elementwise, reductions, views, gathers, factorisations)
"""The modules whose import registers the operations."""
Array = NDArray[Any]
CHECKS = 5
TOLERANCE = 1e-9
"""Largest difference from the plain density, relative to the larger of 1 and the number."""
MOST_OPERATIONS = 12_000
"""Of a graph; recording and lowering one takes 2 ms an operation."""
LONG_GRAPH, LONG_TEXT = 1500, 150
"""Operations, and lines, from which on steps that repeat are looked for."""
WORTH_ROLLING = 0.6
"""How long, of the text written out, one with loops over steps may be."""
MOST_LINES = 1000
"""Longer texts take the compiler longer than they are worth: 350 lines 10 s, 900 lines 40 s."""


@dataclass(slots=True)
class MachineDensity:
    """A compiled density: its address, the constants it reads, and the room that each chain lends it."""

    address: int
    width: int
    room: int
    reals: Array
    wholes: Array
    keeps: Any
    """The compiled code, which must outlive its address."""

    def __call__(self, q: Array) -> tuple[float, Array]:
        """Value and gradient at a position (D,)."""
        here = np.ascontiguousarray(q, dtype=np.float64)
        gradient, room = np.empty(self.width), np.empty(max(self.room, 1))
        arrays = (here, gradient, room, self.reals, self.wholes)
        value = DENSITY(self.address)(*(array.ctypes.data for array in arrays))
        return float(value), gradient


class NotCompiled(Exception):
    """Why a density runs as torch operations; the message ends a sentence.  `surprising` where users would expect it to
    be compiled."""

    def __init__(self, why: str, *, surprising: bool = True) -> None:
        super().__init__(why)
        self.surprising = surprising


def text_of(function: ValueAndGrad, q: Tensor, graph: fx.GraphModule | None = None) -> tuple[Text, int]:
    """The loops of `function` at one chain's position (1, D) as text with its constants, and its width; `graph` where
    it is recorded already.  Raises `Unknown`."""
    with written_out():
        graph = recorded(function, q) if graph is None else graph
    if len(graph.graph.nodes) > MOST_OPERATIONS:
        raise Unknown(f"so large a graph ({len(graph.graph.nodes)} operations)")
    texts: list[Text] = []
    if len(graph.graph.nodes) < LONG_GRAPH:
        texts.append(written(_lowering(copy.deepcopy(graph), q, repeats=False).program()))
    if not texts or texts[0].lines > LONG_TEXT:
        texts.append(written(_lowering(graph, q, repeats=True).program(), roll=True))
    return _better(texts), q.shape[1]


def _better(texts: Sequence[Text]) -> Text:
    """The text with a loop over steps where that is much shorter: it stores what a longer one need not."""
    text = texts[-1] if texts[-1].lines < WORTH_ROLLING * texts[0].lines or len(texts) == 1 else texts[0]
    if text.lines > MOST_LINES:
        raise Unknown(f"so long a program ({text.lines} lines of loops)")
    return text


def _lowering(graph: fx.GraphModule, q: Tensor, *, repeats: bool) -> Lowering:
    # what changes nothing by chance, as y · 1 at some step does, would make steps differ
    simplify(graph, q, neutral=not repeats)
    return Lowering(graph, node_values(graph, q), repeats=repeats)


def machine_density(
    function: ValueAndGrad,
    q: Tensor,
    graph: fx.GraphModule | None = None,
    *,
    traced: Traceable | None = None,
    key: str | None = None,
) -> MachineDensity:
    """`function` compiled at positions like `q` (1, D): from the arrays that `traced` is run on, else from its recorded
    `graph`.  What was kept under `key` need not be recorded.  Raises `NotCompiled` where it has no loops, where there
    is no compiler, or where the two differ."""
    if not available():
        raise NotCompiled(MISSING)
    if q.dtype != torch.float64:
        raise NotCompiled("the program has parameters of single precision", surprising=False)
    # what is wrong with the data is found by the plain program: nothing is looked at while it is recorded
    function(q)
    held = None if key is None else kept(key)
    if held is not None and held[1] == q.shape[1]:
        with contextlib.suppress(NotCompiled):
            return _built(*held, function, q)
    found = _from_arrays(traced, function, q)
    if found is None:
        text, width = _lowered(function, q, graph)
        found = text, _built(text, width, function, q)
    text, made = found
    width = made.width
    if key is not None:
        keep(key, text, width)
    return made


def _from_arrays(traced: Traceable | None, function: ValueAndGrad, q: Tensor) -> tuple[Text, MachineDensity] | None:
    """The density by a graph of arrays; None where it does what has no place there, as looking at latents."""
    if traced is None:
        return None
    try:
        with written_out():
            outputs = density_graph(traced)
        if len(outputs[0].graph.nodes) > MOST_OPERATIONS:
            # what torch records of it is longer still
            raise Unknown(f"so large a graph ({len(outputs[0].graph.nodes)} operations)")
        text = _better(list(lowered(*outputs)))
        return text, _built(text, traced.width, function, q)
    except Unknown as unknown:
        raise NotCompiled(f"there are no loops for {unknown}") from None
    except (Unsupported, NoLoops, NotCompiled, ValueError, IndexError, RuntimeError):
        return None


def _lowered(function: ValueAndGrad, q: Tensor, graph: fx.GraphModule | None) -> tuple[Text, int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return text_of(function, q, graph)
        except Unknown as unknown:
            raise NotCompiled(f"there are no loops for {unknown}") from None
        except Exception as error:
            raise NotCompiled(f"it cannot be recorded ({_first_line(error)})") from error


def _built(text: Text, width: int, function: ValueAndGrad, q: Tensor) -> MachineDensity:
    """The compiled text, once it gives what `function` gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            address, keeps = address_of(text)
        except Exception as error:
            raise NotCompiled(f"the compiler failed ({_first_line(error)})") from error
    reals, wholes = np.array(text.reals or [0.0]), np.array(text.wholes or [0], dtype=np.int64)
    made = MachineDensity(address, width, text.room, reals, wholes, keeps)
    _check(made, function, q)
    return made


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _check(made: Callable[[Array], tuple[float, Array]], plain: ValueAndGrad, q: Tensor) -> None:
    """Compare value and gradient at several positions.  Where the density is infinite or NaN both must be, and the
    gradient is nobody's."""
    generator = torch.Generator().manual_seed(0)
    for number in range(CHECKS):
        here = q + 0.3 * number * torch.randn(q.shape, generator=generator, dtype=q.dtype)
        value, gradient = plain(here)
        found_value, found_gradient = made(here[0].numpy())
        alike = _close(np.array([found_value]), value.numpy())
        if not alike or (math.isfinite(found_value) and not _close(found_gradient, gradient[0].numpy())):
            raise NotCompiled("its value differs from that of the plain density")


def _close(found: Array, wanted: Array) -> bool:
    finite = np.isfinite(wanted)
    if not np.array_equal(found[~finite], wanted[~finite], equal_nan=True):
        return False
    largest = np.maximum(1.0, np.abs(wanted[finite]).max(initial=0.0))
    return bool((np.abs(found[finite] - wanted[finite]) <= TOLERANCE * largest).all())
