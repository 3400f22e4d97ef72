"""The compositions that come with the language, and what one that a file declares must define."""

from __future__ import annotations

from collections.abc import Mapping

BUILTIN_COMPOSITIONS: Mapping[str, str] = {
    "product_fuzzy": "a · b and 1 − ∏(1 − x): truth values",
    "boolean": "and, any",
    "lukasiewicz": "max(a + b − 1, 0) and min(Σ, 1)",
    "godel": "min and max",
    "tropical": "+ and min: shortest paths",
    "max_plus": "+ and max: best scores",
    "log_prob": "+ and logsumexp: log probabilities",
    "real": "· and Σ: matrices",
    "probability": "· and Σ on probabilities",
    "counting": "· and Σ on counts",
    "markov": "· and Σ on rows that sum to 1",
}
"""The builtin compositions: how two weights combine and how alternatives are joined."""

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
