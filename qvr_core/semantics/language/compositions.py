"""The compositions that come with the language, and what one that a file declares must define."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from qvr_core.syntax.immutable import immutable

COMPOSITION = "composition "
"""Before the name of a composition in the file's namespace."""
DEFAULT = "product_fuzzy"
"""What is in force where no composition stands above."""


@immutable
class Algebra:
    """A composition that comes with the language: how two weights combine (`times`) and how alternatives are joined,
    with what leaves the other as it is (`unit`, `zero`).  Weights lie from `low` to `high`; `whole` ones are 0 and 1.
    """

    says: str
    times: Callable[[float, float], float]
    join: Callable[[Sequence[float]], float]
    unit: float
    zero: float
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False


def _product(a: float, b: float) -> float:
    return a * b


def _sum(a: float, b: float) -> float:
    return a + b


def _noisy_or(weights: Sequence[float]) -> float:
    return 1.0 - math.prod(1.0 - weight for weight in weights)


def log_sum_exp(values: Sequence[float]) -> float:
    """log Σ exp, −∞ of nothing but −∞."""
    top = max(values)
    return top if math.isinf(top) else top + math.log(math.fsum(math.exp(value - top) for value in values))


COMPOSITIONS: Mapping[str, Algebra] = {
    "product_fuzzy": Algebra("a · b and 1 − ∏(1 − x): truth values", _product, _noisy_or, 1.0, 0.0, 0.0, 1.0),
    "boolean": Algebra("and, any", _product, max, 1.0, 0.0, 0.0, 1.0, whole=True),
    "lukasiewicz": Algebra(
        "max(a + b − 1, 0) and min(Σ, 1)",
        lambda a, b: max(a + b - 1.0, 0.0),
        lambda weights: min(math.fsum(weights), 1.0),
        1.0, 0.0, 0.0, 1.0,
    ),
    "godel": Algebra("min and max", min, max, 1.0, 0.0, 0.0, 1.0),
    "tropical": Algebra("+ and min: shortest paths", _sum, min, 0.0, math.inf),
    "max_plus": Algebra("+ and max: best scores", _sum, max, 0.0, -math.inf),
    "log_prob": Algebra("+ and logsumexp: log probabilities", _sum, log_sum_exp, 0.0, -math.inf),
    "real": Algebra("· and Σ: matrices", _product, math.fsum, 1.0, 0.0),
    "probability": Algebra("· and Σ on probabilities", _product, math.fsum, 1.0, 0.0, 0.0, 1.0),
    "counting": Algebra("· and Σ on counts", _product, math.fsum, 1.0, 0.0, 0.0),
    "markov": Algebra("· and Σ on rows that sum to 1", _product, math.fsum, 1.0, 0.0, 0.0, 1.0),
}  # fmt: skip
"""The builtin compositions by name; the runtime has the same on arrays (`runtime/tensors/algebras.py`)."""

BUILTIN_COMPOSITIONS: Mapping[str, str] = {name: algebra.says for name, algebra in COMPOSITIONS.items()}
"""The builtin compositions: how two weights combine and how alternatives are joined."""

_NOWHERE = (0.0, 0.0)
STARTS: Mapping[str, tuple[float, float]] = {
    name: _NOWHERE if name in ("boolean", "probability", "markov") else (algebra.low, algebra.high)
    for name, algebra in COMPOSITIONS.items()
}
"""Between which numbers weights can be told to start (`init=0.01`); between none where they are rows or rounded."""

COMPOSITION_KINDS: Mapping[str, tuple[str, ...]] = {
    "algebra": ("tensor_op", "join", "unit", "zero"),
    "semigroupoid": ("tensor_op", "join"),
    "bilinear_form": ("tensor_op", "join"),
    "rule": ("tensor_op", "join"),
}
"""What each kind of composition must define."""

COMPOSITION_OPERATIONS: Mapping[str, int] = {"tensor_op": 2, "join": 1, "unit": 0, "zero": 0, "negation": 1}
"""Every operation and how many parameters it takes."""

UNREAD = ("negation",)
"""Operations that a composition may define, though nothing asks for them."""
