"""What most people write next, so that it stands first among what may stand there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from qvr_core.ide.completion.context import Context
from qvr_core.ide.view import model_of
from qvr_core.semantics.types.model.programs import DataName, Program
from qvr_core.semantics.types.spaces import Finite, Real

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

PRIORS = (
    "Normal", "HalfNormal", "Exponential", "StudentT", "Gamma", "Beta", "LogNormal", "Uniform", "HalfCauchy",
    "Dirichlet", "LKJCholesky", "MultivariateNormal", "InverseGamma", "Cauchy",
)  # fmt: skip
OUTCOMES = (
    "Normal", "StudentT", "Bernoulli", "Poisson", "Binomial", "Categorical", "NegativeBinomial", "LogNormal", "Gamma",
    "Beta", "OrderedLogistic",
)  # fmt: skip
BOOLS = ("Bernoulli", "Binomial")
COUNTS = ("Poisson", "NegativeBinomial", "Binomial", "BetaBinomial")
CATEGORIES = ("Categorical", "OrderedLogistic")
POSITIVE = ("LogNormal", "Gamma", "Exponential", "Weibull", "HalfNormal")
SHARES = ("Beta",)

OPTIONS: Mapping[str, Sequence[str]] = {
    "sample": ("noncentred", "over", "lengths"),
    "observe": ("missing", "right_censored", "left_censored", "truncate_lower", "truncate_upper", "lengths"),
    "marginalize": ("over", "lengths"),
}
"""By the word of a step."""
STEPS = ("sample", "observe", "let", "data", "marginalize", "predict", "return", "score")
SPACES = ("Real", "Ordered", "Simplex", "FinSet")


def order(name: str, likely: Sequence[str]) -> int:
    """The place of a name among the likely ones; behind all of them for others."""
    return likely.index(name) if name in likely else len(likely)


def families(snapshot: Snapshot, place: Context) -> Sequence[str]:
    """The families that the step at a cursor most likely draws from, by what it is and by its data."""
    match place.keyword:
        case "observe" | "predict":
            program = program_at(snapshot, place)
            name = place.tokens[1].text if len(place.tokens) > 1 else ""
            known = next((item for item in program.data if item.name == name), None) if program is not None else None
            return (*of_data(known), *OUTCOMES) if known is not None else OUTCOMES
        case "marginalize":
            words = [token.text for token in place.tokens]
            two = ("FinSet", "2") in pairwise(words)
            return ("Bernoulli", "Categorical") if two else ("Categorical", "Bernoulli")
        case _:
            return PRIORS


def of_data(data: DataName) -> Sequence[str]:
    if data.numbers == "bool":
        return BOOLS
    if data.numbers == "count":
        return COUNTS
    match data.type.space:
        case Finite():
            return CATEGORIES
        case Real(low=low, high=high) if low == 0 and high == 1:
            return SHARES
        case Real(low=low) if low is not None and low >= 0:
            return POSITIVE
        case _:
            return ()


def program_at(snapshot: Snapshot, place: Context) -> Program | None:
    """The program that a cursor stands in."""
    names = place.statement.header.unit.declares if place.statement is not None else ()
    return model_of(snapshot).programs.get(names[0].text) if names else None
