"""How a module is made again.

A module computes with functions that were put together from the text of its program, so it is pickled and copied as
what it was made from, with its parameters: `pickle`, `torch.save` and `copy.deepcopy` give a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, Self

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.runtime.values.errors import RuntimeProblem

Recipe = Callable[[], nn.Module]
"""Makes the module anew; can be pickled itself."""


class Remade(nn.Module):
    """A module that is pickled as its recipe, its parameters and which of its layers are in training."""

    recipe: Recipe | None = None
    noted: tuple[str, ...] = ()
    """Plain attributes that come along."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.recipe is None:
            return super().__reduce_ex__(protocol)
        plain = {name: getattr(self, name) for name in self.noted}
        # each layer by itself: dropout and batch norm train only where SVI says so
        training = {name: module.training for name, module in _layers(self)}
        return remade, (self.recipe, tensors_of(self), training, plain)

    def __copy__(self) -> Self:
        # a shallow copy shares everything
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made


def _layers(module: nn.Module) -> Iterable[tuple[str, nn.Module]]:
    return module.named_modules()  # pyright: ignore[reportUnknownVariableType]


def remade(
    recipe: Recipe, tensors: Mapping[str, Tensor], training: Mapping[str, bool], plain: Mapping[str, Any]
) -> nn.Module:
    """The module of a recipe with these parameters, and these of its layers in training."""
    with numbers_kept():
        made = recipe()
    own = tensors_of(made)
    if own.keys() != tensors.keys():
        name = next(iter(own.keys() ^ tensors.keys()))
        raise RuntimeProblem(f"`{name}` is a parameter of one, the stored module or its program as it is built now")
    for name, tensor in own.items():
        take(tensor, tensors[name])
    for name, value in plain.items():
        setattr(made, name, value)
    for name, module in _layers(made):
        module.training = training.get(name, module.training)
    return made


def tensors_of(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def take(tensor: Tensor, given: Tensor) -> None:
    """Give a parameter or buffer the numbers, precision and device of another one."""
    tensor.data = given.data
    tensor.requires_grad_(given.requires_grad)


@contextmanager
def numbers_kept() -> Generator[None]:
    """Nobody's random numbers are used up by what is made inside."""
    with arrays.random.fork_rng(devices=[]):
        yield
