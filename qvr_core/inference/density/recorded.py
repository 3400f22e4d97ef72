"""A log density and its gradient as one recorded graph of torch operations, replayed without autograd.

Small models spend most of a leapfrog step in Python and in autograd's bookkeeping.  The graph holds for one shape; it
is taken only where it gives what the plain function gives at other positions, too.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from qvr_core.inference.compilation import compiled
from qvr_core.inference.density.direct_calls import call_directly

ValueAndGrad = Callable[[Tensor], tuple[Tensor, Tensor]]

_CONSTANT = frozenset(("new_zeros", "new_ones", "new_full", "zeros_like", "ones_like", "full_like", "full", "zeros"))
"""Operations whose result depends on nothing but shapes."""
_IDENTITY = frozenset(("detach", "alias"))
_IDENTITY_IF_SAME_SHAPE = frozenset(("view", "expand", "reshape", "_unsafe_view"))
_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "div": 1}
CHECKS = 3
TRACE_AFTER = 100
"""Evaluations before a graph is recorded (some 0.3 s): short runs are over by then."""
WORTH_REPLAYING = 400
"""Operations up to which a single chain gains by a replay; above it the arithmetic costs what it costs.  Several
chains gain in any case, since a replay batches them in plain operations."""


SMALL = 1000
"""Numbers of a result up to which an operation costs what its call costs."""


class Recorded:
    """A function that is recorded once for each number of chains, after some evaluations; at once where compiled.

    A replay may round in another way, so chains that go on later (`state`, `restore`) go over to it where they did.
    """

    def __init__(self, plain: ValueAndGrad, *, compiled: bool = False) -> None:
        self.plain = plain
        self.compiled = compiled
        self._after = 1 if compiled else TRACE_AFTER
        self._evaluations: dict[int, int] = {}
        self._replay: dict[int, ValueAndGrad | None] = {}
        self._decided_at: dict[int, Tensor] = {}

    def __call__(self, q: Tensor) -> tuple[Tensor, Tensor]:
        chains = q.shape[0]
        count = self._evaluations[chains] = self._evaluations.get(chains, 0) + 1
        if count == self._after:
            self._decide(chains, q)
        replay = self._replay.get(chains) if count >= self._after else None
        return self.plain(q) if replay is None else replay(q)

    def _decide(self, chains: int, q: Tensor) -> None:
        self._decided_at[chains] = q.detach().clone()
        # one graph serves all that come after: it does not depend on where it was recorded
        if chains not in self._replay:
            gains = self.compiled or self._gains(q)
            self._replay[chains] = traced(self.plain, q, compile=self.compiled) if gains else None

    def restart(self, chains: int) -> None:
        """Count the evaluations anew."""
        self._evaluations[chains] = 0

    def state(self, chains: int) -> tuple[int, Tensor | None]:
        """Evaluations so far, and the position where it was recorded, or found not worth it."""
        count = self._evaluations.get(chains, 0)
        return count, self._decided_at.get(chains) if count >= self._after else None

    def restore(self, chains: int, count: int, decided_at: Tensor | None) -> None:
        """Undo `state`."""
        self._evaluations[chains] = count
        if decided_at is not None:
            self._decide(chains, decided_at)

    def _gains(self, q: Tensor) -> bool:
        if q.shape[0] > 1:
            return True
        with Counter() as counter:
            self.plain(q)
        return counter.operations <= WORTH_REPLAYING


class Counter(TorchDispatchMode):
    """Counts the operations that run inside it, and what they cost: one of many numbers is several small ones."""

    operations = 0
    cost = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.operations += 1
        self.cost += max(1.0, made.numel() / SMALL) if isinstance(made, Tensor) else 1.0
        return made


def traced(function: ValueAndGrad, q: Tensor, *, compile: bool = False) -> ValueAndGrad | None:
    """`function` recorded at positions like `q`, or None where it cannot be (control flow that depends on values).

    `compile` hands the graph to inductor, whose cache on disk outlives the process.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = recorded(function, q)
            simplify(graph, q)
            replay: Any = compiled(graph, [q]) if compile else None
            if replay is None:
                if not _mutates(graph):
                    call_directly(graph, node_values(graph, q))
                replay = graph

            def run(position: Tensor) -> tuple[Tensor, Tensor]:
                with torch.no_grad():
                    return replay(position)

            return run if _agrees(function, run, q) else None
    except Exception:  # whatever cannot be recorded runs as it is
        return None


def recorded(function: Callable[..., tuple[Tensor, Tensor]], q: Tensor, *data: Tensor) -> fx.GraphModule:
    """The operations of `function` at positions like `q`, and of `data` that it takes beside; what works in place is
    written as what gives a new tensor, since only such a graph can be simplified.  Raises where values decide what is
    done."""
    # a bound method would be counted with its self
    graph = make_fx(lambda *given: function(*given))(q, *data)  # noqa: PLW0108
    # autograd has its say first: functionalize allows none inside
    return make_fx(functionalize(graph, remove="mutations"))(q, *data) if _mutates(graph) else graph


def with_data(graph: fx.GraphModule, data: Sequence[Tensor]) -> fx.GraphModule:
    """A recorded graph whose arguments behind the position have become constants."""
    made = copy.deepcopy(graph)
    for number, (node, value) in enumerate(zip(made.graph.find_nodes(op="placeholder")[1:], data, strict=True)):
        made.register_buffer(f"data_{number}", value)
        with made.graph.inserting_before(node):
            node.replace_all_uses_with(made.graph.get_attr(f"data_{number}"))
        made.graph.erase_node(node)
    made.recompile()
    return made


def _agrees(function: ValueAndGrad, replay: ValueAndGrad, q: Tensor) -> bool:
    generator = torch.Generator().manual_seed(0)
    for _ in range(CHECKS):
        here = q + 0.3 * torch.randn(q.shape, generator=generator, dtype=q.dtype)
        for found, wanted in zip(replay(here), function(here), strict=True):
            if not torch.allclose(found, wanted, rtol=1e-5, atol=1e-6, equal_nan=True):
                return False
    return True


class _Recorder(fx.Interpreter):
    """Runs a graph and keeps what every node gave."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.seen: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        self.seen[n] = super().run_node(n)
        return self.seen[n]


def node_values(module: fx.GraphModule, q: Tensor) -> dict[fx.Node, Any]:
    """What every node gives at `q`."""
    recorder = _Recorder(module)
    with torch.no_grad():
        recorder.run(q)
    return recorder.seen


def _mutates(module: fx.GraphModule) -> bool:
    """True where an operation changes its argument."""
    schemas = [getattr(node.target, "_schema", None) for node in module.graph.nodes if node.op == "call_function"]
    return any(schema is not None and schema.is_mutable for schema in schemas)


def simplify(module: fx.GraphModule, q: Tensor, *, neutral: bool = True) -> None:
    """Fold what does not depend on the position, and drop what changes nothing; with `neutral` also x + 0, x · 1 and
    their like, of which some are made by data."""
    graph = module.graph
    calls = [node for node in graph.nodes if node.op == "call_function"]
    if _mutates(module):
        return
    seen = node_values(module, q)
    fixed = {node for node in graph.nodes if node.op == "get_attr"}
    for node in calls:
        value = seen[node]
        inputs = node.all_input_nodes
        name = _name(node)
        if isinstance(value, Tensor) and (name in _CONSTANT or all(source in fixed for source in inputs)):
            folded = _constant(module, node, value)
            fixed.add(folded)
            seen[folded] = value
            continue
        same = _same(node, name, seen) or (_neutral(node, name, seen, fixed) if neutral else None)
        if same is not None:
            node.replace_all_uses_with(same)
    graph.eliminate_dead_code()
    module.recompile()


def _name(node: fx.Node) -> str:
    return str(getattr(node.target, "__name__", node.target)).split(".")[0]


def _constant(module: fx.GraphModule, node: fx.Node, value: Tensor) -> fx.Node:
    name = f"folded_{node.name}"
    module.register_buffer(name, value.contiguous())
    with module.graph.inserting_before(node):
        made = module.graph.get_attr(name)
    node.replace_all_uses_with(made)
    return made


def _same(node: fx.Node, name: str, seen: dict[fx.Node, Any]) -> fx.Node | None:
    """The input that a node merely passes on."""
    first = node.args[0] if node.args else None
    if not isinstance(first, fx.Node) or first not in seen:
        return None
    if name in _IDENTITY:
        return first
    if name in _IDENTITY_IF_SAME_SHAPE and seen[first].shape == seen[node].shape:
        return first
    return None


def _neutral(node: fx.Node, name: str, seen: dict[fx.Node, Any], fixed: set[fx.Node]) -> fx.Node | None:
    """What is left of x + 0, x - 0, x · 1, x / 1 and x¹."""
    if name == "pow" and len(node.args) == 2 and node.args[1] == 1 and isinstance(node.args[0], fx.Node):
        return node.args[0]
    if name not in _NEUTRAL or len(node.args) != 2 or node.kwargs:
        return None
    left, right = node.args
    pairs = [(left, right)] if name in ("sub", "div") else [(left, right), (right, left)]
    for kept, other in pairs:
        if not isinstance(kept, fx.Node) or not isinstance(other, fx.Node) or other not in fixed:
            continue
        value, result = seen[other], seen[node]
        unchanged = seen[kept].shape == result.shape and seen[kept].dtype == result.dtype
        if unchanged and bool((value == _NEUTRAL[name]).all()):
            return kept
    return None
