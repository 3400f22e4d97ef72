"""What parts of a program ask of the builder of their file; `build.Builder` is the one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from qvr_core.arrays.engine import Tensor
from qvr_core.runtime.tensors.algebras import Algebra
from qvr_core.runtime.tensors.transformations import Map
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.semantics.types.model.arrows import Arrow, Stack
from qvr_core.semantics.types.model.file import Model


class ArrowBuilder(Protocol):
    """Builds the arrows of one file; a declared name is built once."""

    @property
    def model(self) -> Model: ...

    @property
    def data(self) -> Mapping[str, Tensor]: ...

    def named(self, name: str) -> ArrowModule:
        """The arrow of a declared morphism, let or program; the same module at each call."""
        ...

    def arrow(self, node: Arrow) -> ArrowModule:
        """The module of an arrow expression."""
        ...

    def copies(self, node: Stack) -> list[ArrowModule]:
        """The fresh copies of a stack's body."""
        ...

    def transformation(self, name: str) -> Map:
        """A map of weights from one algebra to another, builtin or declared in the file."""
        ...

    def algebra(self, name: str) -> Algebra:
        """The algebra of a composition, builtin or defined in the file."""
        ...
