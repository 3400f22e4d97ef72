"""Changes of base: the maps between value sets of compositions that come with the language."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from qvr_core.syntax.immutable import immutable

KEEPS: Mapping[str, str] = {
    "homomorphism": "keeps unit, zero, tensor_op and join, so it may be taken before `>>` or behind it",
    "map": "maps each weight, and may keep nothing of how weights compose",
}
"""What a transformation says that it is, behind `as`; without that it is a map."""

RULES: Mapping[str, int] = {"map": 1}
"""The lines of a transformation, and how many parameters each takes."""


@immutable
class BuiltinTransformation:
    """A map that comes with the language.  `pairs` are the compositions that it goes from and to, those first that are
    taken where nothing else decides."""

    name: str
    pairs: tuple[tuple[str, str], ...]
    keeps: str
    says: str
    map: Callable[[float], float]

    def targets(self, source: str) -> tuple[str, ...]:
        """The compositions that it leads to from one; empty where it does not start there."""
        return tuple(target for start, target in self.pairs if start == source)


def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)


_SUMS = ("probability", "markov", "counting", "real")

TRANSFORMATIONS: Mapping[str, BuiltinTransformation] = {
    each.name: each
    for each in (
        BuiltinTransformation(
            "log", tuple((name, "log_prob") for name in _SUMS), "homomorphism",
            "the logarithms of weights that are not negative", _log,
        ),
        BuiltinTransformation(
            "exp", tuple(("log_prob", name) for name in ("real", "probability", "counting", "markov")), "homomorphism",
            "the weights whose logarithms these are", math.exp,
        ),
        BuiltinTransformation(
            "support", tuple((name, "boolean") for name in ("probability", "markov", "counting")), "homomorphism",
            "whether a weight is more than nothing", lambda x: float(x > 0.0),
        ),
        BuiltinTransformation(
            "best", (("log_prob", "max_plus"),), "map",
            "the same log weights, of which the best one counts and no longer their sum", lambda x: x,
        ),
        BuiltinTransformation(
            "negate", (("max_plus", "tropical"), ("tropical", "max_plus")), "homomorphism",
            "scores as costs and costs as scores", lambda x: -x,
        ),
    )
}  # fmt: skip
"""The builtin transformations by name."""


def leads_to(each: BuiltinTransformation, source: str, in_force: str) -> str | None:
    """Where a builtin transformation leads from a composition: to the one in force where it may, else to the usual one.
    None where it does not start there."""
    targets = each.targets(source)
    return None if not targets else in_force if in_force in targets else targets[0]


def between(source: str, target: str, in_force: str) -> str | None:
    """The builtin transformation from one composition to another, if there is one."""
    return next((name for name, each in TRANSFORMATIONS.items() if leads_to(each, source, in_force) == target), None)
