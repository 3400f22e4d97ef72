"""Whether the arguments of families are what they must be: asked only where something has stopped being finite."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.values.first_cause import Computed
from qvr_core.semantics.language.family import bounds_of, must_lie

_asked: ContextVar[Computed | None] = ContextVar("asked", default=None)

TOLERANCE = 1e-5


@contextmanager
def sound_arguments() -> Generator[Computed]:
    """Inside, a site with an argument that cannot be raises `NonFinite`, which names it; what is computed is kept."""
    computed = Computed()
    token = _asked.set(computed)
    try:
        yield computed
    finally:
        _asked.reset(token)


def asked() -> Computed | None:
    """What has been computed inside `sound_arguments`; None outside."""
    return _asked.get()


def doubtful(density: Tensor | None) -> bool:
    """Whether it is asked what stopped being finite, and this density did."""
    return asked() is not None and density is not None and not bool(arrays.isfinite(density).all())


_Rule = tuple[Callable[[Tensor], Tensor], str, str]
_POSITIVE: _Rule = (
    lambda v: v <= 0,
    "above 0",
    "draw it from a family of positive numbers, or take exp(…) of it",
)

# By constraint: which entries are wrong, what they must be, and what to do.
_RULES: Mapping[str, _Rule] = {
    "positive": _POSITIVE,
    "positive vector": _POSITIVE,
    "unit": (
        lambda v: (v < -TOLERANCE) | (v > 1 + TOLERANCE),
        "between 0 and 1",
        "draw it from a Beta, or take sigmoid(…) of it",
    ),
    "whole": (lambda v: v != v.round(), "a whole number", "take round(…) of it"),
    "natural": (lambda v: v < 0, "a whole number from 0", "look at the data that it comes from"),
    "simplex": (
        lambda v: (v < -TOLERANCE) | ((v.sum(-1, keepdim=True) - 1).abs() > 1e-3),
        "probabilities that add up to 1",
        "draw it from a Dirichlet, or take softmax(…) of it",
    ),
}


def unsound(value: Tensor, constraint: str) -> str | None:
    """What is wrong with an argument, for `its scale …`; None where nothing is."""
    if value.is_floating_point() and not bool(arrays.isfinite(value).all()):
        return counted(value)
    if (ends := bounds_of(constraint)) is not None:
        entries, must, remedy = beyond(value, *ends), must_lie(*ends), "look at how it is computed"
    elif constraint in _RULES:
        wrong, wanted, remedy = _RULES[constraint]
        entries, must = wrong(value), f"must be {wanted}"
    else:
        return None
    if not bool(entries.any()):
        return None
    worst = value[entries].flatten()[0].item()
    return f"is {worst:.4g}, and {must}: {remedy}"


def beyond(value: Tensor, low: float | None, high: float | None) -> Tensor:
    """Which entries lie outside of two ends; None leaves a side open."""
    below = arrays.zeros_like(value, dtype=arrays.bool) if low is None else value < low
    return below if high is None else below | (value > high)


def counted(value: Tensor) -> str:
    """How many numbers are not finite."""
    if bool(arrays.isnan(value).any()):
        return f"has {int(arrays.isnan(value).sum())} NaN of {value.numel()}"
    return f"has {int(arrays.isinf(value).sum())} infinite of {value.numel()}"
