"""Vectors among expressions: what a family takes for its vector or matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tests.generator.elementary import logsumexp
from tests.generator.expressions import Expr, Ref, Scope


class Vec(Expr):
    """Several numbers: a family's vector."""

    def values(self, scope: Scope) -> list[Any]:
        """Its numbers, or for a matrix its rows."""
        raise NotImplementedError


@dataclass(frozen=True)
class Items(Vec):
    """`[a, b, c]`, of numbers or of rows."""

    items: tuple[Expr, ...]

    def text(self, plain: bool = False) -> str:
        return f"[{', '.join(each.text(plain) for each in self.items)}]"

    def values(self, scope: Scope) -> list[Any]:
        return [each.values(scope) if isinstance(each, Vec) else each.value(scope) for each in self.items]


@dataclass(frozen=True)
class Row(Vec):
    """What is left of a named value behind its indices: `P[z[t - 1]]`, a vector of `size` numbers."""

    name: str
    indices: tuple[Expr, ...]
    size: int

    def text(self, plain: bool = False) -> str:
        return Ref(self.name, self.indices).text(plain)

    def values(self, scope: Scope) -> list[float]:
        at = tuple(int(index.value(scope)) for index in self.indices)
        return [scope.cell(self.name, (*at, k)) for k in range(self.size)]


@dataclass(frozen=True)
class Softmax(Vec):
    """`softmax(v)`."""

    of: Vec

    def text(self, plain: bool = False) -> str:
        return f"softmax({self.of.text(plain)})"

    def values(self, scope: Scope) -> list[float]:
        logits = self.of.values(scope)
        whole = logsumexp(logits)
        return [math.exp(each - whole) for each in logits]


@dataclass(frozen=True)
class Repeated(Vec):
    """One number for each place of a vector, as families take it."""

    of: Expr
    size: int

    def text(self, plain: bool = False) -> str:
        return self.of.text(plain)

    def values(self, scope: Scope) -> list[Any]:
        return [self.of.value(scope)] * self.size


def vector_size(expr: Expr) -> int:
    """How many numbers a vector has."""
    match expr:
        case Items(items):
            return len(items)
        case Softmax(of):
            return vector_size(of)
        case Row(size=size) | Repeated(size=size):
            return size
        case _:
            raise TypeError(f"{expr} is no vector")
