"""Arithmetic as a tree that prints itself and computes one element at a time.

A tree prints in one of two styles: with indices (`a[county[i]] + x[i]`), or plain, as whole tables that meet by name
(`a[county] + x`).  Its value at an element is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol

from scipy import special

from tests.generator.elementary import exp, log, logsumexp, sigmoid, softplus
from tests.generator.sets import Place, Set


class Scope(Protocol):
    """Where an element stands: its indices, and the values that it can read."""

    index: dict[str, int]
    """Each binder's number."""

    def cell(self, name: str, place: Place) -> float:
        """One number of a named value."""
        ...

    def function(self, name: str) -> Def:
        """A declared function."""
        ...

    def argument(self, name: str) -> float:
        """What a parameter of the function that is running was given."""
        ...

    def calling(self, arguments: dict[str, float]) -> Scope:
        """The scope of a function's body."""
        ...


class Expr:
    """A number, or for a `Vec` several."""

    def text(self, plain: bool = False) -> str:
        """As written."""
        raise NotImplementedError

    def value(self, scope: Scope) -> float:
        """At one element."""
        raise NotImplementedError


def parts(node: Any) -> list[Any]:
    """The dataclasses right below a node."""
    found: list[Any] = []
    for field in fields(node):
        value = getattr(node, field.name)
        if is_dataclass(value) and not isinstance(value, Set):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(_inside(value))
    return found


def _inside(items: tuple[Any, ...]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if is_dataclass(item) and not isinstance(item, Set):
            found.append(item)
        elif isinstance(item, tuple):
            found.extend(_inside(item))
    return found


def walk(node: Any) -> list[Any]:
    """A node and everything below it."""
    found, ahead = [], [node]
    while ahead:
        here = ahead.pop()
        found.append(here)
        ahead.extend(parts(here))
    return found


# ------------------------------------------------------------------ leaves


@dataclass(frozen=True)
class Num(Expr):
    """A literal."""

    number: float

    def text(self, plain: bool = False) -> str:
        return repr(self.number)

    def value(self, scope: Scope) -> float:
        return float(self.number)


@dataclass(frozen=True)
class Binder(Expr):
    """An index: of its set in brackets, its number elsewhere."""

    name: str
    over: Set

    def text(self, plain: bool = False) -> str:
        return self.name

    def value(self, scope: Scope) -> float:
        return scope.index[self.name]


@dataclass(frozen=True)
class Shift(Expr):
    """`t - c`, or `t - c - j` for an index j."""

    binder: Binder
    by: int
    further: Binder | None = None

    def text(self, plain: bool = False) -> str:
        return f"{self.binder.name} - {self.by}" + (f" - {self.further.name}" if self.further else "")

    def value(self, scope: Scope) -> float:
        back = self.by + (scope.index[self.further.name] if self.further else 0)
        return scope.index[self.binder.name] - back


@dataclass(frozen=True)
class Element(Expr):
    """A fixed element of a set, by its label or number; −1 is the last."""

    over: Set
    at: int

    def text(self, plain: bool = False) -> str:
        return self.over.labels[self.at] if self.over.labels and self.at >= 0 else str(self.at)

    def value(self, scope: Scope) -> float:
        return self.at % self.over.size


@dataclass(frozen=True)
class Ref(Expr):
    """An element of a named value.  `bare` hides the indices: a summed-out name without binders, a group by `via`."""

    name: str
    indices: tuple[Expr, ...] = ()
    bare: bool = False

    def text(self, plain: bool = False) -> str:
        if self.bare or not self.indices:
            return self.name
        written = list(self.indices)
        if plain:
            while written and isinstance(written[-1], Binder):
                written.pop()
            if not written:
                return self.name
        return f"{self.name}[{', '.join(index.text(plain) for index in written)}]"

    def value(self, scope: Scope) -> float:
        return scope.cell(self.name, tuple(int(index.value(scope)) for index in self.indices))


@dataclass(frozen=True)
class Parameter(Expr):
    """A parameter in a function's body."""

    name: str

    def text(self, plain: bool = False) -> str:
        return self.name

    def value(self, scope: Scope) -> float:
        return scope.argument(self.name)


# ------------------------------------------------------------------ operations


@dataclass(frozen=True)
class Binary(Expr):
    """`a + b` and its kin."""

    op: str
    left: Expr
    right: Expr

    def text(self, plain: bool = False) -> str:
        left = self.left.text(plain)
        # a sign binds less than a power
        left = f"({left})" if self.op == "^" and left.startswith("-") else left
        return f"({left} {self.op} {self.right.text(plain)})"

    def value(self, scope: Scope) -> float:
        a, b = self.left.value(scope), self.right.value(scope)
        if self.op == "+":
            return a + b
        if self.op == "-":
            return a - b
        if self.op == "*":
            return a * b
        if self.op == "/":
            return a / b if b else math.nan
        return a**b


@dataclass(frozen=True)
class Negative(Expr):
    """`-a`."""

    of: Expr

    def text(self, plain: bool = False) -> str:
        return f"(-{self.of.text(plain)})"

    def value(self, scope: Scope) -> float:
        return -self.of.value(scope)


FUNCTIONS: dict[str, Callable[..., float]] = {
    "exp": exp,
    "log": log,
    "log1p": lambda x: math.log1p(x) if x > -1.0 else math.nan,
    "expm1": lambda x: math.expm1(x) if x < 700.0 else math.inf,
    "sqrt": lambda x: math.sqrt(x) if x >= 0.0 else math.nan,
    "square": lambda x: x * x,
    "abs": abs,
    "tanh": math.tanh,
    "sin": math.sin,
    "cos": math.cos,
    "atan": math.atan,
    "erf": math.erf,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "logsigmoid": lambda x: -softplus(-x),
    "logit": lambda x: math.log(x) - math.log1p(-x) if 0.0 < x < 1.0 else math.nan,
    "ndtr": lambda x: float(special.ndtr(x)),
    "log_ndtr": lambda x: float(special.log_ndtr(x)),
    "lgamma": math.lgamma,
    "minimum": min,
    "maximum": max,
    "logaddexp": lambda x, y: logsumexp([x, y]),
    "hypot": math.hypot,
}


@dataclass(frozen=True)
class Call(Expr):
    """A built-in function of numbers."""

    function: str
    arguments: tuple[Expr, ...]

    def text(self, plain: bool = False) -> str:
        return f"{self.function}({', '.join(each.text(plain) for each in self.arguments)})"

    def value(self, scope: Scope) -> float:
        return FUNCTIONS[self.function](*[each.value(scope) for each in self.arguments])


@dataclass(frozen=True)
class Def:
    """`def f(x, k = 1.0)` with its body, and lets in it."""

    name: str
    parameters: tuple[tuple[str, float | None], ...]
    lets: tuple[tuple[str, Expr], ...]
    body: Expr

    @property
    def lines(self) -> list[str]:
        """The declaration."""
        written = ", ".join(name if default is None else f"{name} = {default!r}" for name, default in self.parameters)
        if not self.lets:
            return [f"def {self.name}({written}) = {self.body.text()}"]
        lets = [f"    let {name} = {each.text()}" for name, each in self.lets]
        return [f"def {self.name}({written})", *lets, f"    return {self.body.text()}"]


@dataclass(frozen=True)
class Apply(Expr):
    """A call of a declared function; arguments behind `keywords` are by name."""

    function: str
    arguments: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()

    def text(self, plain: bool = False) -> str:
        written = [each.text(plain) for each in self.arguments]
        written += [f"{name}={each.text(plain)}" for name, each in self.keywords]
        return f"{self.function}({', '.join(written)})"

    def value(self, scope: Scope) -> float:
        called = scope.function(self.function)
        given = {name: default for name, default in called.parameters if default is not None}
        given |= {n: e.value(scope) for (n, _), e in zip(called.parameters, self.arguments, strict=False)}
        given |= {name: each.value(scope) for name, each in self.keywords}
        inner = scope.calling(given)
        for name, each in called.lets:
            given[name] = each.value(inner)
        return called.body.value(inner)


COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@dataclass(frozen=True)
class Compare(Expr):
    """A comparison: 1 where it holds."""

    op: str
    left: Expr
    right: Expr

    def text(self, plain: bool = False) -> str:
        return f"{self.left.text(plain)} {self.op} {self.right.text(plain)}"

    def value(self, scope: Scope) -> float:
        return float(COMPARISONS[self.op](self.left.value(scope), self.right.value(scope)))


@dataclass(frozen=True)
class Where(Expr):
    """`where(condition, a, b)`."""

    condition: Expr
    then: Expr
    otherwise: Expr

    def text(self, plain: bool = False) -> str:
        return f"where({self.condition.text(plain)}, {self.then.text(plain)}, {self.otherwise.text(plain)})"

    def value(self, scope: Scope) -> float:
        # both are read: what is missing in either leaves the element out
        then, otherwise = self.then.value(scope), self.otherwise.value(scope)
        return then if self.condition.value(scope) else otherwise


@dataclass(frozen=True)
class Number(Expr):
    """A condition as a number: `(s == t)`."""

    condition: Expr

    def text(self, plain: bool = False) -> str:
        return f"({self.condition.text(plain)})"

    def value(self, scope: Scope) -> float:
        return self.condition.value(scope)


REDUCTIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum,
    "prod": math.prod,
    "mean": lambda terms: math.fsum(terms) / len(terms) if terms else math.nan,
    "max": max,
    "min": min,
    "logsumexp": logsumexp,
    "any": lambda terms: float(any(terms)),
    "all": lambda terms: float(all(terms)),
}


@dataclass(frozen=True)
class Reduce(Expr):
    """`sum(e for f : F, g : G if condition)`; plain `sum(e, over=F)` or `matmul(x, b)`."""

    kind: str
    body: Expr
    binders: tuple[Binder, ...]
    condition: Expr | None = None
    product: bool = False

    def text(self, plain: bool = False) -> str:
        if plain and self.product and isinstance(self.body, Binary):
            return f"matmul({self.body.left.text(True)}, {self.body.right.text(True)})"
        if plain:
            return f"{self.kind}({self.body.text(True)}, over={self.binders[0].over.name})"
        binders = ", ".join(f"{b.name} : {b.over.name}" for b in self.binders)
        condition = f" if {self.condition.text()}" if self.condition else ""
        return f"{self.kind}({self.body.text()} for {binders}{condition})"

    def value(self, scope: Scope) -> float:
        terms: list[float] = []
        self._gather(scope, self.binders, terms)
        return REDUCTIONS[self.kind](terms)

    def _gather(self, scope: Scope, binders: tuple[Binder, ...], terms: list[float]) -> None:
        if not binders:
            if self.condition is None or self.condition.value(scope):
                terms.append(self.body.value(scope))
            return
        for k in range(binders[0].over.size):
            scope.index[binders[0].name] = k
            self._gather(scope, binders[1:], terms)
        del scope.index[binders[0].name]
