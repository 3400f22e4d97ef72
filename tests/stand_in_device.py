"""A device that is not the CPU, on machines without one: tensors that say they lie on `gpu:0`, with numbers.

torch lets one backend be written in Python.  A tensor of this one holds a tensor of the CPU, which computes for it, and
keeps the rules of a GPU: operations whose tensors lie in two places are refused (numbers without a shape, and places by
which a tensor is read, may lie on the CPU), a generator of the CPU draws nothing there, and draws without a generator
come from the device's own.  What leaves the device is counted, because a host waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

NAME = "gpu"
aten = torch.ops.aten
TO = {aten._to_copy.default, *(getattr(aten.to, name) for name in aten.to.overloads())}
MOVES = {aten.copy_.default, aten._copy_from.default, *TO}
BY_PLACES = {aten.index.Tensor, aten._unsafe_index.Tensor, aten.index_put.default, aten.index_put_.default,
             aten._index_put_impl_.default}  # fmt: skip


class Elsewhere(RuntimeError):
    """What a GPU says of a tensor that lies somewhere else."""


class StandIn:
    """What torch asks of the module of a device."""

    def __init__(self) -> None:
        self.state = torch.Generator().manual_seed(1).get_state()
        self.waits = 0
        """How often a number has left the device."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def manual_seed(self, seed: int) -> None:
        self.state = torch.Generator().manual_seed(seed).get_state()

    manual_seed_all = manual_seed

    def get_rng_state(self, device: Any = None) -> Tensor:
        return self.state.clone()

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        self.state = state.clone()

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    @contextmanager
    def stream_of_draws(self) -> Iterator[None]:
        """The CPU's default generator is that of the device."""
        before = torch.get_rng_state()
        torch.set_rng_state(self.state)
        try:
            yield
        finally:
            self.state = torch.get_rng_state()
            torch.set_rng_state(before)


MODULE = StandIn()


class _Guard(torch._C._acc.DeviceGuard):
    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.PrivateUse1


class There(Tensor):
    """A tensor on the device; `here` has its numbers."""

    here: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, here: Tensor) -> There:
        made = Tensor._make_wrapper_subclass(
            cls, here.size(), strides=here.stride(), storage_offset=here.storage_offset(), dtype=here.dtype,
            layout=here.layout, device=torch.device(NAME, 0),
        )  # fmt: skip
        made.here = here
        return made

    def __repr__(self, **_: Any) -> str:
        return f"There({self.here!r})"

    def tolist(self) -> Any:
        MODULE.waits += 1
        return self.here.tolist()

    def new_tensor(self, data: Any, *, dtype: torch.dtype | None = None) -> Tensor:
        return _tensor(data, dtype=dtype or self.dtype, device=self.device)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


class _Made(TorchDispatchMode):
    """Tensors that are made on the device, from nothing or from those of the CPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


def _computed(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    flat, spec = tree_flatten((args, dict(kwargs)))
    tensors = [each for each in flat if isinstance(each, Tensor)]
    asked = kwargs.get("device")
    there = any(isinstance(each, There) for each in tensors)
    to_there = there if asked is None else torch.device(asked).type == NAME
    if there and func not in MOVES:
        _in_one_place(func, args, tensors)
    generator = next((each for each in flat if isinstance(each, torch.Generator)), None)
    if generator is not None and to_there != getattr(generator, "there", False):
        raise Elsewhere(f"{func}: expected a generator where the tensor is")
    (near, words) = tree_unflatten([each.here if isinstance(each, There) else each for each in flat], spec)
    if asked is not None:
        words["device"] = torch.device("cpu")
    if func is aten._efficientzerotensor.default:
        # torch keeps no numbers of one, and looks that it reads none in a place that a device of Python never comes to:
        # the sum with it reads where nothing is
        func = aten.zeros.default
    if to_there and generator is None and torch.Tag.nondeterministic_seeded in func.tags:
        with MODULE.stream_of_draws():
            result = func(*near, **words)
    else:
        result = func(*near, **words)
    if there and (not to_there or func is aten._local_scalar_dense.default):
        MODULE.waits += 1
    if not to_there or func is aten._local_scalar_dense.default:
        return result.clone() if there and func in TO else result
    result = tree_map_only(Tensor, There, result)
    return result if func in TO else return_and_correct_aliasing(func, args, kwargs, result)


def _in_one_place(func: Any, args: Sequence[Any], tensors: Sequence[Tensor]) -> None:
    if func in BY_PLACES and isinstance(args[0], There):
        tensors = [each for each in args[2:] if isinstance(each, Tensor)]
    strays = [each for each in tensors if not isinstance(each, There) and each.ndim > 0]
    changed = func._schema.name.endswith("_") and isinstance(args[0], Tensor) and not isinstance(args[0], There)
    if strays or changed or (func in BY_PLACES and not isinstance(args[0], There)):
        shapes = [f"{each.device} {tuple(each.shape)}" for each in tensors]
        raise Elsewhere(f"{func}: expected all tensors to be on the same device, but found {', '.join(shapes)}")


_of_numbers = torch.tensor


def _tensor(data: Any, *, device: Any = None, **words: Any) -> Tensor:
    """As torch makes one on a GPU: on the CPU, and then there."""
    # the default device of a context without an index asks `torch.tensor`, which this stands for
    asked = torch.empty(0).device if device is None else torch.device(device)
    return _of_numbers(data, device="cpu", **words).to(asked)


def _as_tensor(data: Any, dtype: torch.dtype | None = None, device: Any = None) -> Tensor:
    if not isinstance(data, Tensor):
        return _tensor(data, dtype=dtype, device=device)
    return data.to(data.device if device is None else device, dtype or data.dtype)


class _Generator(torch.Generator):
    """A generator that knows where it is."""

    def __new__(cls, device: Any = "cpu") -> _Generator:
        made = super().__new__(cls)
        made.there = torch.device(device).type == NAME
        return made


@cache
def registered() -> torch.device:
    """Tells torch of the device: before the first gradient of the process, for torch then starts a thread for each."""
    _device_constructors()  # what `with device:` changes, as it is called before this file changes it
    backend_registration._setup_privateuseone_for_python_backend(NAME, MODULE, device_guard=_Guard())
    _autocasts()
    # moved by a thread that has no mode of its own
    _library.impl("empty_strided", _empty_strided, "PrivateUse1")
    return torch.device(NAME, 0)


_library = torch.library.Library("aten", "IMPL")


def _empty_strided(size: Sequence[int], stride: Sequence[int], *, dtype: torch.dtype, **_: Any) -> Tensor:
    return There(torch.empty_strided(size, stride, dtype=dtype))


LOWER = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "mv", "conv1d", "conv2d", "scaled_dot_product_attention")
HIGHER = ("exp", "log", "log1p", "expm1", "pow.Tensor_Scalar", "softplus", "log_softmax.int", "softmax.int", "sum",
          "sum.dim_IntList", "prod", "rsqrt", "reciprocal", "layer_norm", "nll_loss")  # fmt: skip


def _autocasts() -> None:
    """Mixed precision by the lists of a GPU, those of its operations that programs use (torch.amp's page has them)."""
    key = "AutocastPrivateUse1"
    _fallback.fallback(torch.library.fallthrough_kernel, key)
    for names, dtype in ((LOWER, torch.bfloat16), (HIGHER, torch.float32)):
        for name in names:
            _library.impl(name, _in_precision(name, dtype), key)


def _in_precision(name: str, dtype: torch.dtype) -> Callable[..., Any]:
    packet, _, overload = name.partition(".")
    func = getattr(getattr(aten, packet), overload or "default")
    without = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)

    def cast(value: Any) -> Any:
        return (
            value.to(dtype) if isinstance(value, Tensor) and value.dtype in (torch.float32, torch.bfloat16) else value
        )

    def computed(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(without):
            return func(*map(cast, args), **{key: cast(value) for key, value in kwargs.items()})

    return computed


_fallback = torch.library.Library("_", "IMPL")


@contextmanager
def stand_in() -> Iterator[torch.device]:
    """The device, while tensors can be made on it."""
    device = registered()
    before = torch.__future__.get_swap_module_params_on_conversion()
    # a parameter of the CPU cannot be made one of a class of tensors in place
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with patch.multiple(torch, tensor=_tensor, as_tensor=_as_tensor, Generator=_Generator), _Made():
            yield device
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


def waits(of: Callable[[], object]) -> int:
    """How often a number leaves the device meanwhile."""
    before = MODULE.waits
    of()
    return MODULE.waits - before
