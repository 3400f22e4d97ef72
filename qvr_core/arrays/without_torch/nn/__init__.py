"""Modules that hold numbers: the tree of names that torch's are, without derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from qvr_core.arrays.graph import Array
from qvr_core.arrays.tensor_like import TensorLike
from qvr_core.arrays.without_torch.nn import functional, init

__all__ = [
    "Embedding", "Linear", "Module", "ModuleList", "MultiheadAttention", "Parameter", "ParameterDict", "functional",
    "init",
]  # fmt: skip


class Parameter(TensorLike):
    """Numbers that are fitted; whoever computes their gradient puts it into `grad`."""

    __slots__ = ("grad",)
    requires_grad = True

    def __init__(self, data: Array, requires_grad: bool = True) -> None:
        super().__init__(data.graph, "constant", (), (), tuple(data.shape), data.kind)
        # numbers of its own: they are written to
        self.data = np.array(data.data)
        self.grad: Array | None = None

    def set_(self, source: Array) -> None:
        """Share the numbers of another array."""
        self.data = source.data


class Module:
    """A part of a program, with parameters, buffers and parts of its own."""

    training: bool = True

    def __init__(self) -> None:
        self._tables()

    def _tables(self) -> None:
        for name in ("_parameters", "_buffers", "_modules"):
            self.__dict__.setdefault(name, {})

    def __setattr__(self, name: str, value: Any) -> None:
        self._tables()
        for table in ("_parameters", "_buffers", "_modules"):
            self.__dict__[table].pop(name, None)
        if isinstance(value, Parameter):
            self.__dict__["_parameters"][name] = value
        elif isinstance(value, Module):
            self.__dict__["_modules"][name] = value
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_buffers", "_modules"):
            held = self.__dict__.get(table, {})
            if name in held:
                return held[name]
        raise AttributeError(f"`{type(self).__name__}` has no attribute `{name}`")

    def __delattr__(self, name: str) -> None:
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, {}):
                del self.__dict__[table][name]
                return
        super().__delattr__(name)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.forward(*args, **keywords)

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """What the module computes."""
        raise AttributeError(f"`{type(self).__name__}` computes nothing")

    def register_parameter(self, name: str, value: Parameter | None) -> None:
        """Give it a parameter."""
        self._tables()
        self.__dict__["_parameters"][name] = value

    def register_buffer(self, name: str, value: Any, persistent: bool = True) -> None:
        """Give it numbers that are not learnt."""
        self._tables()
        self.__dict__["_buffers"][name] = value
        if not persistent:
            self.__dict__["_passing"] = self.__dict__.get("_passing", frozenset()) | {name}

    def add_module(self, name: str, module: Module | None) -> None:
        """Give it a part."""
        self._tables()
        self.__dict__["_modules"][name] = module

    def get_submodule(self, path: str) -> Module:
        """A part by its dotted name."""
        found = self
        for name in path.split(".") if path else ():
            found = found._modules[name]
        return found

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Its parts."""
        yield from self._modules.items()

    def children(self) -> Iterator[Module]:
        """Its parts."""
        yield from self._modules.values()

    def named_modules(self, memo: set[int] | None = None, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Itself and all parts, each once."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """Itself and all parts."""
        for _, module in self.named_modules():
            yield module

    def _held(self, table: str, recurse: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for prefix, module in self.named_modules() if recurse else [("", self)]:
            for name, value in module.__dict__[table].items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield (f"{prefix}.{name}" if prefix else name), value

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Any]]:
        """Parameters by their dotted names."""
        yield from self._held("_parameters", recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """All parameters."""
        for _, value in self.named_parameters(recurse=recurse):
            yield value

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Any]]:
        """Buffers by their dotted names."""
        yield from self._held("_buffers", recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """All buffers."""
        for _, value in self.named_buffers(recurse=recurse):
            yield value

    def state_dict(self) -> Mapping[str, Any]:
        """All numbers by name but those of buffers that do not persist."""
        passing = {
            f"{prefix}.{name}" if prefix else name
            for prefix, module in self.named_modules()
            for name in module.__dict__.get("_passing", ())
        }
        held = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        return {name: value for name, value in held.items() if name not in passing}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take all numbers by name.  Raises KeyError or ValueError where they are those of another module."""
        for name, value in self.state_dict().items():
            value.data[...] = np.asarray(state[name].data).reshape(value.data.shape)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for parameter in self.parameters():
            parameter.grad = None

    def train(self, mode: bool = True) -> Self:
        """Nothing is learnt here."""
        for module in self.modules():
            module.__dict__["training"] = mode
        return self

    def eval(self) -> Self:
        """As it is."""
        return self.train(False)

    def to(self, *args: Any, **keywords: Any) -> Self:
        """As it is."""
        return self

    double = float = cpu = to

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """As it is."""
        return self


class ModuleList(Module):
    """Parts in order."""

    def __init__(self, modules: Any = ()) -> None:
        super().__init__()
        for number, module in enumerate(modules):
            self.add_module(str(number), module)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __getitem__(self, at: int) -> Module:
        return list(self._modules.values())[at]


class ParameterDict(Module):
    """Parameters by name."""

    def __init__(self, parameters: Mapping[str, Parameter] | None = None) -> None:
        super().__init__()
        for name, parameter in (parameters or {}).items():
            self[name] = parameter

    def __setitem__(self, name: str, parameter: Parameter) -> None:
        self.register_parameter(name, parameter)

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def __len__(self) -> int:
        return len(self._parameters)

    def keys(self) -> Iterator[str]:
        """The names."""
        yield from self._parameters

    def values(self) -> Iterator[Parameter]:
        """The parameters."""
        yield from self._parameters.values()

    def items(self) -> Iterator[tuple[str, Parameter]]:
        """Both."""
        yield from self._parameters.items()


class _Layer(Module):
    def __init__(self, *args: Any, **keywords: Any) -> None:
        raise ModuleNotFoundError(f"`{type(self).__name__}` needs torch: pip install 'qvr-lsp[run]'", name="torch")


class Linear(_Layer):
    """Needs torch."""


class Embedding(_Layer):
    """Needs torch."""


class MultiheadAttention(_Layer):
    """Needs torch."""
