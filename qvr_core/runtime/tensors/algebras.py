"""The algebras in which tensor arrows compose, builtin and defined by a file (docs/reference.md#compositions)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.values.errors import RuntimeProblem
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.language.compositions import COMPOSITIONS

Binary = Callable[[Tensor, Tensor], Tensor]
Reduce = Callable[[Tensor], Tensor]

MOST_NUMBERS = 2**24
"""Numbers that one product of matrices may hold at a time; larger ones are cut by rows."""


@dataclass(frozen=True, slots=True)
class Algebra:
    """Weights that compose: `times` of two, `join` of the last axis, their units, and where a latent's weights live.

    `value` maps free parameters into the value set; `low` and `high` bound given weights.  `unit` or `zero` None: the
    composition is no algebra and has no identity.  `product` is a faster matrix product where there is one.
    """

    name: str
    times: Binary
    join: Reduce
    unit: float | None
    zero: float | None
    value: Callable[[Tensor], Tensor]
    low: float = -math.inf
    high: float = math.inf
    product: Binary | None = None
    from_log_probs: Callable[[Tensor], Tensor] = arrays.exp

    def free(self, weight: float) -> float:
        """The free parameter whose weight this is, for truth values, counts and numbers."""
        if self.value is arrays.sigmoid:
            return math.log(weight) - math.log1p(-weight)
        return math.log(math.expm1(weight)) if self.value is F.softplus else weight

    def need(self, part: str) -> float:
        """`unit` or `zero`, or the error that says why there is none."""
        number = self.unit if part == "unit" else self.zero
        if number is None:
            raise RuntimeProblem(f"composition `{self.name}` defines no `{part}`, so it has no identity")
        return number

    def matmul(self, left: Tensor, right: Tensor) -> Tensor:
        """(n, k) and (k, m) to (n, m)."""
        if self.product is not None:
            return self.product(left, right)
        rows = max(1, MOST_NUMBERS // max(1, right.numel()))
        # the contracted axis last, as `join` wants it
        columns = right.mT.unsqueeze(0)
        pieces = [self.join(self.times(piece.unsqueeze(1), columns)) for piece in arrays.split(left, rows)]
        return pieces[0] if len(pieces) == 1 else arrays.cat(pieces)

    def identity(self, size: int, like: Tensor | None = None) -> Tensor:
        """(n, n): unit on the diagonal, zero elsewhere."""
        dtype = like.dtype if like is not None else precision()
        device = like.device if like is not None else None
        diagonal = arrays.eye(size, dtype=arrays.bool, device=device)
        unit, zero = self.need("unit"), self.need("zero")
        return arrays.where(
            diagonal, arrays.tensor(unit, dtype=dtype, device=device), arrays.tensor(zero, dtype=dtype, device=device)
        )


def _probabilistic_sum(weights: Tensor) -> Tensor:
    return 1.0 - arrays.prod(1.0 - weights, dim=-1)


def _any(weights: Tensor) -> Tensor:
    return weights.amax(-1)


def _smallest(weights: Tensor) -> Tensor:
    return weights.amin(-1)


def _sum(weights: Tensor) -> Tensor:
    return weights.sum(-1)


def _rounded(raw: Tensor) -> Tensor:
    """Truth values 0 and 1 with the gradient of the sigmoid (straight through)."""
    soft = raw.sigmoid()
    return soft + ((soft > 0.5).to(soft.dtype) - soft).detach()


def _rows(raw: Tensor) -> Tensor:
    return raw.softmax(-1)


def _free(raw: Tensor) -> Tensor:
    return raw


def _identity(log_probs: Tensor) -> Tensor:
    return log_probs


def _known(
    name: str,
    times: Binary,
    join: Reduce,
    value: Callable[[Tensor], Tensor],
    *,
    product: Binary | None = None,
    from_log_probs: Callable[[Tensor], Tensor] = arrays.exp,
) -> Algebra:
    """One of the language's, with the facts that the checker has of it."""
    facts = COMPOSITIONS[name]
    return Algebra(name, times, join, facts.unit, facts.zero, value, facts.low, facts.high, product, from_log_probs)


def _fuzzy(name: str, times: Binary, join: Reduce) -> Algebra:
    return _known(name, times, join, arrays.sigmoid)


def _lukasiewicz(a: Tensor, b: Tensor) -> Tensor:
    return (a + b - 1.0).clamp(min=0.0)


_TABLE = (
    _fuzzy("product_fuzzy", arrays.mul, _probabilistic_sum),
    _known("boolean", arrays.mul, _any, _rounded),
    _fuzzy("lukasiewicz", _lukasiewicz, lambda w: w.sum(-1).clamp(max=1.0)),
    _fuzzy("godel", arrays.minimum, _any),
    _known("tropical", arrays.add, _smallest, _free, from_log_probs=arrays.neg),
    _known("max_plus", arrays.add, _any, _free, from_log_probs=_identity),
    _known("log_prob", arrays.add, lambda w: arrays.logsumexp(w, -1), _free, from_log_probs=_identity),
    _known("real", arrays.mul, _sum, _free, product=arrays.matmul),
    _known("probability", arrays.mul, _sum, _rows, product=arrays.matmul),
    _known("counting", arrays.mul, _sum, F.softplus, product=arrays.matmul),
    _known("markov", arrays.mul, _sum, _rows, product=arrays.matmul),
)  # fmt: skip

ALGEBRAS: Mapping[str, Algebra] = {algebra.name: algebra for algebra in _TABLE}
"""The builtin algebras by name."""
