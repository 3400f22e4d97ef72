"""A loss and its gradients as one compiled graph, for `SVI(…, compile=True)`.

The graph is recorded from the plain objective.  Its noise is not part of it: the operations that draw are taken out and
run one after the other before it, so that torch's generator gives the numbers that it gives without a compiler.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.experimental.proxy_tensor import make_fx

from qvr_core.arrays.engine import linalg
from qvr_core.arrays.random_state import random_state, set_random_state
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.lifting import owners_of, parameters_set
from qvr_core.inference.torch_compile import compiled, not_compiled
from qvr_core.runtime.arrows.training import training_layers
from qvr_core.runtime.programs.frame import as_tensor
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.layout import from_parts, parts

Objective = Callable[..., Tensor]
TOLERANCE = 0.02
"""Relative; recurrent networks with large weights amplify the rounding of single precision, a wrong graph more so."""


@dataclass(frozen=True, slots=True)
class _Draw:
    """One operation that draws noise, with its arguments."""

    target: Callable[..., Tensor]
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]

    def __call__(self) -> Tensor:
        return self.target(*self.args, **self.keywords)


class _CannotRecord(Exception):
    """The objective does something that a graph cannot hold; the message says what."""


class CompiledLoss:
    """Sets the gradients of model and guide and gives the loss, by one compiled graph per shape of the data.

    None where an input cannot be compiled: a warning has said why, and the caller goes on in the plain way.
    """

    def __init__(self, model: ProgramModule, guide: Guide, objective: Objective) -> None:
        self.model, self.guide, self.objective = model, guide, objective
        self._graphs: dict[object, Callable[..., Any] | None] = {}

    def __call__(self, x: object, observations: Mapping[str, Any] | None) -> Tensor | None:
        value = self.model.input(x)
        inputs = [] if value is None else list(parts(value))
        named = {name: as_tensor(item) for name, item in (observations or {}).items()}
        if not all(isinstance(item, Tensor) for item in named.values()):
            return None
        tensors = [*self.parameters, *inputs, *named.values()]
        key = (tuple(named), len(inputs), *((t.shape, t.dtype, t.device) for t in tensors))
        if key not in self._graphs:
            self._graphs[key] = self._compiled(tensors, len(inputs), tuple(named))
        graph = self._graphs[key]
        if graph is None:
            return None
        loss, *gradients = graph(*tensors)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        return loss

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What the loss is differentiated by, once each."""
        both = (*self.model.parameters(), *self.guide.parameters())
        return list(dict.fromkeys(p for p in both if p.requires_grad))

    def _compiled(self, tensors: Sequence[Tensor], inputs: int, names: tuple[str, ...]) -> Callable[..., Any] | None:
        for layer in training_layers((self.model, self.guide)):
            if layer.reads_batch:
                not_compiled(f"`{layer.name}` stores statistics of each batch, which a graph cannot")
                return None
        plain = self._plain(inputs, names)
        state = random_state(tensors[0].device)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                graph = make_fx(plain)(*tensors)
            draws = _take_draws(graph)
        except Exception as problem:  # whatever cannot be recorded runs as it is
            not_compiled(f"the objective cannot be recorded ({str(problem).strip().splitlines()[0]})")
            return None
        finally:
            set_random_state(tensors[0].device, state)
        noise = [draw() for draw in draws]
        run = compiled(graph, [*tensors, *noise])
        set_random_state(tensors[0].device, state)
        if run is None:
            return None

        def replay(*given: Tensor) -> Any:
            with torch.no_grad():
                return run(*given, *(draw() for draw in draws))

        if not self._agrees(replay, plain, tensors):
            not_compiled("the compiled loss differs from the plain one")
            return None
        return replay

    def _plain(self, inputs: int, names: tuple[str, ...]) -> Callable[..., list[Tensor | None]]:
        """The loss and the gradients as a function of parameters, input and data."""
        model, guide, own = self.model, self.guide, self.parameters
        homes = [owners_of(model), owners_of(guide)]
        places = [
            {name: index for name, p in module.named_parameters(remove_duplicate=False)
             for index, mine in enumerate(own) if mine is p}
            for module in (model, guide)
        ]  # fmt: skip

        def function(*tensors: Tensor) -> list[Tensor | None]:
            free = [tensor.detach().requires_grad_() for tensor in tensors[: len(own)]]
            data = tensors[len(own) :]
            x = from_parts(data[:inputs]) if inputs else None
            observations = dict(zip(names, data[inputs:], strict=True))
            model_values, guide_values = ({name: free[i] for name, i in place.items()} for place in places)
            with (
                torch.enable_grad(),
                parameters_set(model, model_values, homes[0]),
                parameters_set(guide, guide_values, homes[1]),
            ):
                loss = self.objective(model, guide, x, observations)
                return [loss.detach(), *torch.autograd.grad(loss, free, allow_unused=True)]

        return function

    def _agrees(
        self, replay: Callable[..., Any], plain: Callable[..., list[Tensor | None]], given: Sequence[Tensor]
    ) -> bool:
        state = random_state(given[0].device)
        ours = replay(*given)
        set_random_state(given[0].device, state)
        reference = plain(*given)
        set_random_state(given[0].device, state)
        return all(map(_close, ours, reference))


def _close(ours: Tensor | None, reference: Tensor | None) -> bool:
    """Also for what a parameter does not touch, None in both."""
    if ours is None or reference is None:
        return ours is reference
    return float(linalg.vector_norm(ours - reference)) <= TOLERANCE * float(linalg.vector_norm(reference)) + 1e-6


def _take_draws(module: fx.GraphModule) -> list[_Draw]:
    """Make every operation that draws an input of the graph.  Raises where one depends on values."""
    graph = module.graph
    last = [node for node in graph.nodes if node.op == "placeholder"][-1:]
    draws: list[_Draw] = []
    for node in list(graph.nodes):
        tags = getattr(node.target, "tags", ()) if node.op == "call_function" else ()
        if torch.Tag.nondeterministic_seeded not in tags:
            continue
        if node.all_input_nodes:
            raise _CannotRecord(f"it draws by `{node.target}`, whose parameters are values")
        with graph.inserting_after(last[0]) if last else graph.inserting_before(next(iter(graph.nodes))):
            made = graph.placeholder(f"noise_{len(draws)}")
        node.replace_all_uses_with(made)
        graph.erase_node(node)
        last = [made]
        draws.append(_Draw(node.target, tuple(node.args), dict(node.kwargs)))
    graph.eliminate_dead_code()
    module.recompile()
    return draws
