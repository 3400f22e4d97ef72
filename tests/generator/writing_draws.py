"""What all steps of a random program are written with: data, places, families with arguments."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.generator.expressions import (
    Binder,
    Expr,
    Num,
    Ref,
)
from tests.generator.families import FAMILIES, Family
from tests.generator.scope import Context, Entry, Names, number
from tests.generator.sets import Set, Table
from tests.generator.steps import Data, Declared, Draw, Step
from tests.generator.vectors import vector_size
from tests.generator.writing_expressions import Expressions

ROWS = 2
"""Rows of latents that each case has."""

SAMPLED = {
    "real": ("Normal", "Normal", "Normal", "StudentT", "Laplace", "Cauchy", "Gumbel", "MixtureNormal"),
    "positive": ("HalfNormal", "HalfNormal", "Exponential", "Gamma", "LogNormal", "InverseGamma", "HalfCauchy",
                 "HalfStudentT", "Weibull", "Chi2"),
    "unit": ("Beta", "Kumaraswamy", "LogitNormal", "ContinuousBernoulli"),
    "interval": ("Uniform", "TruncatedNormal"),
    "angle": ("VonMises",),
}  # fmt: skip
KINDS = ("real", "real", "real", "positive", "positive", "unit", "interval", "angle")
CHAINS = {
    "real": ("Normal", "Normal", "StudentT", "Laplace", "Gumbel", "Cauchy"),
    "positive": ("LogNormal", "Gamma", "Exponential", "Weibull", "HalfNormal"),
    "unit": ("Beta", "LogitNormal"),
}
DISCRETE = (
    "Bernoulli", "Bernoulli/logits", "Binomial", "Binomial/logits", "BetaBinomial", "Geometric", "Poisson",
    "Poisson/log_rate", "NegativeBinomial", "NegativeBinomial/dispersion", "ZeroInflatedPoisson",
    "ZeroInflatedNegativeBinomial", "DiscreteUniform", "Categorical", "Categorical/logits", "OrderedLogistic",
)  # fmt: skip
OBSERVED = (*(name for names in SAMPLED.values() for name in names), *DISCRETE, *DISCRETE)
READING = tuple(
    key for key in OBSERVED if any(kind in ("real", "positive", "unit") for _, kind in FAMILIES[key].parameters)
)
"""Families with a number that a hidden value can be in."""
FINITE = ("Bernoulli", "Bernoulli/logits", "Binomial", "Categorical", "Categorical/logits")


@dataclass(frozen=True)
class Ending:
    """`h[g : Group, t : Time] [lengths=n]`: the sets of steps that end together, and what says where."""

    axes: tuple[Set, ...]
    name: str
    """A name of data, or a number."""

    def at(self, binders: Sequence[Binder]) -> Ref | Num:
        """How many elements a chain has."""
        return Num(int(self.name)) if self.name.isdigit() else Ref(self.name, tuple(binders[:-1]))


WRITTEN_OUT = {
    "Normal": (
        "(loc, scale : Real 1 [low=0.0]) : Real 1",
        "    let z = 1.0 / scale",
        "    density(x) = -0.5 * ((x - loc) * z)^2 - log(scale) - 0.9189385332046727",
        "    draw = loc + scale * Normal(0.0, 1.0)",
    ),
    "Laplace": (
        "(loc, scale : Real 1 [low=0.0]) : Real 1",
        "    density(x) = -abs(x - loc) / scale - log(2.0 * scale)",
        "    draw = Laplace(loc, scale)",
    ),
    "HalfNormal": (
        "(scale : Real 1 [low=0.0]) : Real 1 [low=0.0]",
        "    density(y) = -0.2257913526447274 - log(scale) - 0.5 * (y / scale)^2",
        "    draw = abs(Normal(0.0, scale))",
    ),
    "Exponential": (
        "(rate : Real 1 [low=0.0]) : Real 1 [low=0.0]",
        "    density(y) = log(rate) - rate * y",
        "    draw = Exponential(1.0) / rate",
    ),
    "Beta": (
        "(a : Real 1 [low=0.0], b : Real 1 [low=0.0]) : Real 1 [low=0.0, high=1.0]",
        "    let whole = lgamma(a) + lgamma(b) - lgamma(a + b)",
        "    density(y) = (a - 1) * log(y) + (b - 1) * log1p(-y) - whole",
        "    draw = Beta(a, b)",
    ),
    "Poisson": (
        "(rate : Real 1 [low=0.0]) : Nat",
        "    density(k) = k * log(rate) - rate - lgamma(k + 1)",
        "    draw = Poisson(rate)",
    ),
    "Bernoulli": (
        "(probs : Real 1 [low=0.0, high=1.0]) : Bool",
        "    density(k) = k * log(probs) + (1 - k) * log1p(-probs)",
        "    draw = Bernoulli(probs)",
    ),
}
"""Headers and bodies of families that are written out in the file: a number's density, and how it is drawn."""


class Draws:
    """Families with arguments, at places."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.names = Names(self.rng)
        self.expressions = Expressions(self.names)
        self.steps: list[Step] = []
        self.pending: Table | None = None
        """Data that the next observed step has."""
        self.features = self.names.features
        self.ending: Ending | None = None
        """Where the steps that are being written end."""

    def chance(self, probability: float) -> bool:
        """Whether something happens that often."""
        return self.rng.random() < probability

    def _column(
        self,
        stem: str,
        axes: tuple[Set, ...],
        kind: str,
        of: str,
        value: Callable[[], float],
        member: Set | None = None,
    ) -> str:
        name = self.names.fresh(stem)
        self.names.data[name] = Table.filled(tuple(a.size for a in axes), value)
        self.names.entries.append(Entry(name, axes, kind, member))
        self.steps.append(Data(name, axes, of))
        return name

    # ------------------------------------------------------------ places

    def _plates(self, most: int = 2, time: bool = True) -> tuple[Set, ...]:
        if self.ending is not None:
            return self.ending.axes
        sets = [s for s in self.names.sets if time or s.name != "Time"]
        return tuple(self.rng.sample(sets, min(len(sets), self.rng.choice((1, 1, 2)[: 2 * most]))))

    def _time(self) -> Set | None:
        if self.ending is not None:
            return self.ending.axes[-1]
        return next((s for s in self.names.sets if s.name == "Time"), None)

    def _context(self, axes: Sequence[Set], plain: bool) -> Context:
        binders = tuple(self.names.binder(axis) for axis in axes)
        if self.ending is not None and tuple(axes) == self.ending.axes:
            return Context(binders, lengths=self.ending.name)
        return Context(binders, plain and bool(axes))

    # ------------------------------------------------------------ draws

    def _draw(
        self, key: str, context: Context, depth: int = 2, size: int = 0, over: Set | None = None
    ) -> tuple[Draw, float | None, float | None]:
        """A family with arguments; its bounds where it has some of its own."""
        row = FAMILIES[key]
        low = round(self.rng.uniform(-2.0, 0.0), 2)
        high = round(low + self.rng.uniform(1.0, 3.0), 2)
        size = size or self.rng.randint(2, 3)
        arguments = [
            self._argument(row, k, context, depth, (low, high), size, over) for k in range(len(row.parameters))
        ]
        if row.name == "GaussianRandomWalk":
            arguments = arguments[: self.rng.randint(1, 3)]
        self.features.add(f"family {row.key}")
        bounded = row.support == "interval"
        called = self._declared(key) if key in WRITTEN_OUT and self.chance(0.07) else ""
        return (
            Draw(key, tuple(arguments), self.chance(0.2), called),
            low if bounded else None,
            high if bounded else None,
        )

    def _declared(self, key: str) -> str:
        """A family of the file with the density of one of the language."""
        known = self.names.families
        if key not in known:
            name = self.names.fresh("Own")
            known[key] = Declared(name, (f"family {name}{WRITTEN_OUT[key][0]}", *WRITTEN_OUT[key][1:]))
        self.features.add(f"declared {key}")
        return known[key].name

    def _argument(
        self,
        row: Family,
        k: int,
        context: Context,
        depth: int,
        bounds: tuple[float, float],
        size: int,
        over: Set | None,
    ) -> Expr:
        kind = row.parameters[k][1]
        match kind:
            case "total":
                return Num(self.rng.randint(1, 4))
            case "zero":
                return Num(0)
            case "low":
                return Num(bounds[0])
            case "high":
                return Num(bounds[1])
            case "ordered":
                return self.expressions.vector(kind, size - 1, None, context)
            case "simplex" | "logits" | "positives" | "tril":
                return self.expressions.vector(kind, size, over, context)
            case _:
                return self.expressions.of(kind, context, depth)

    def _support(self, row: Family, draw: Draw, low: float | None, high: float | None) -> Callable[[], float]:
        """Values that a family can take."""
        rng = self.rng
        if low is not None and high is not None:
            return lambda: rng.uniform(low, high)
        if row.support == "whole":
            total = draw.arguments[1 if row.name == "DiscreteUniform" else 0]
            assert isinstance(total, Num)
            return lambda: float(rng.randint(0, int(total.number)))
        if row.support == "member":
            return lambda: float(rng.randrange(categories(draw)))
        return lambda: number(rng, row.support)

    def _kind(self, row: Family) -> str:
        return {"interval": "real", "angle": "real", "whole": "count"}.get(row.support, row.support)

    def _categories(self) -> tuple[Set | None, int]:
        states = [s for s in self.names.sets if s.size > 1]
        over = self.rng.choice(states) if states and self.chance(0.5) else None
        return over, over.size if over else self.rng.randint(2, 3)


def categories(draw: Draw) -> int:
    """How many values a category has."""
    last = draw.arguments[-1]
    if draw.row.name == "OrderedLogistic":
        return vector_size(last) + 1
    return vector_size(last)
