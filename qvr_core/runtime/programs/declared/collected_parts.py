"""The arrows and deductions that a program or an encoder takes while its expressions are compiled."""

from __future__ import annotations

from typing import Any

from qvr_core.arrays.engine import nn
from qvr_core.runtime.programs.deduction import deduction_of
from qvr_core.runtime.tensors.builder import ArrowBuilder
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.semantics.types.model.arrows import Arrow


class CollectedParts:
    """`Parts` of a builder; `used` has each module taken, whose parameters become those of the whole."""

    def __init__(self, builder: ArrowBuilder) -> None:
        self.builder = builder
        self.used: list[nn.Module] = []

    def arrow(self, node: Arrow) -> ArrowModule:
        """The module of an arrow."""
        module = self.builder.arrow(node)
        self.used.append(module)
        return module

    def deduction(self, name: str) -> Any:
        """The module of a deduction."""
        module = deduction_of(self.builder, name)
        self.used.append(module)
        return module
