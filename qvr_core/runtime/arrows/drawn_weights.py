"""Weights with a prior: no parameters of a module, but what its program has drawn for this run."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.runtime.arrows.kernel import KernelArrow
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.runtime.values.leaves import leaves_of
from qvr_core.semantics.arrows.parameters import Shapes, parameter_shapes
from qvr_core.semantics.types.model.arrows import Embed, Kernel, LinearMap

A = TypeVar("A", bound=ArrowModule)

Priored = Embed | LinearMap | Kernel


def with_prior(arrow: A, node: Priored) -> A:
    """The module of a morphism; where its weights have a prior they are buffers, not parameters."""
    if node.prior is None:
        return arrow
    for module in list(arrow.modules()):
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, parameter.detach(), persistent=False)
    if isinstance(arrow, KernelArrow) and not arrow.net.finite:
        arrow.net.look_up("_buffers")
    vars(arrow)["weight_shapes"] = _shapes(node)
    vars(arrow)["uniform_start"] = isinstance(node, LinearMap) and node.rank is None and node.init == "default"
    return arrow


def _shapes(node: Priored) -> tuple[Shapes, bool]:
    """Names and shapes of the weights, and whether the bias is the last column of one matrix."""
    affine = isinstance(node, LinearMap) and node.rank is None and node.bias
    return parameter_shapes(node), affine


def undrawn(leaves: Mapping[str, nn.Module], drawn: Sequence[str], used: Iterable[nn.Module]) -> list[str]:
    """The leaves whose weights nobody draws: neither the program that has these leaves nor one that it uses."""
    inner = {name for one in used for name in leaves_of(one) if name not in getattr(one, "lacking", [name])}
    held = [name for name, leaf in leaves.items() if "weight_shapes" in vars(leaf)]
    return [name for name in held if name not in drawn and name not in inner]


@contextmanager
def weights_set(leaf: nn.Module, value: Tensor) -> Generator[None]:
    """Within the block the module computes with these weights, laid out as the site of the weights is."""
    kept: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, tensor in split(vars(leaf)["weight_shapes"], value).items():
            table, last = _table(leaf, name), name.rpartition(".")[2]
            kept.append((table, last, table[last]))
            table[last] = tensor
        yield
    finally:
        for table, last, original in kept:
            table[last] = original


def _table(leaf: nn.Module, name: str) -> dict[str, Any]:
    """The buffers of the module inside that has a weight."""
    return vars(leaf.get_submodule(name.rpartition(".")[0]))["_buffers"]


def initial(leaf: nn.Module) -> Tensor:
    """Where a fit may start, laid out as the site of the weights is: at what the module was made with.  At 0 the units
    of a layer are alike, and stay so.

    The uniform start of linear layers has a variance of 1/(3 n) for n inputs; here it is 1/n (LeCun et al. 1998), for a
    guide's noise lies on top: from the smaller one none of three fits of a layer of 16 units found the data's curve.
    """
    shapes, affine = vars(leaf)["weight_shapes"]
    spread = math.sqrt(3.0) if vars(leaf)["uniform_start"] else 1.0
    tensors = {name: spread * _table(leaf, name)[name.rpartition(".")[2]] for name in shapes}
    if affine:
        return arrays.cat([tensors["weight"], tensors["bias"].unsqueeze(-1)], -1)
    return arrays.cat([tensor.reshape(-1) for tensor in tensors.values()])


def split(layout: tuple[Shapes, bool], value: Tensor) -> dict[str, Tensor]:
    """The weights by name.  A linear map's are one matrix (out, in + 1) with the bias in its last column; those of
    several layers stand behind one another."""
    shapes, affine = layout
    if affine:
        return {"weight": value[..., :-1], "bias": value[..., -1]}
    flat, found, at = value.reshape(-1), dict[str, Tensor](), 0
    for name, shape in shapes.items():
        count = math.prod(shape)
        found[name] = flat[at : at + count].reshape(shape)
        at += count
    return found
