"""What most people write next, so that it stands first among what may stand there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from qvr_core.ide.completion.context import Context
from qvr_core.ide.view import model_of
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.types.model.programs import DataName, Program
from qvr_core.semantics.types.spaces import Finite, Real
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tree.arithmetic import Gather, Variable
from qvr_core.syntax.tree.steps import Draw

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

PRIORS = (
    "Normal", "HalfNormal", "Exponential", "StudentT", "Gamma", "Beta", "LogNormal", "Uniform", "HalfCauchy",
    "Dirichlet", "LKJCholesky", "MultivariateNormal", "InverseGamma", "Cauchy",
)  # fmt: skip
PRIORS_OF: Mapping[str, Sequence[str]] = {
    "positive": ("HalfNormal", "Exponential", "HalfCauchy", "HalfStudentT", "Gamma", "LogNormal", "InverseGamma"),
    "unit": ("Beta", "Uniform"),
    "simplex": ("Dirichlet", "LogisticNormal"),
    "lower triangular": ("LKJCholesky",),
}
"""By the constraint of the parameter that a latent is used as."""
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
FUNCTIONS = (
    "exp", "log", "sqrt", "sum", "mean", "sigmoid", "where", "log1p", "abs", "square", "softmax", "logit", "tanh",
    "zeros", "ones", "cumsum", "max", "min",
)  # fmt: skip
SPACES = ("Real", "Ordered", "Simplex", "FinSet")
SPACES_OF: Mapping[str, str] = {"ordered": "Ordered", "simplex": "Simplex", "lower triangular": "CholeskyFactor"}
"""The space of a latent by the constraint of the parameter that it is used as."""


def order(name: str, likely: Sequence[str]) -> int:
    """The place of a name among the likely ones; behind all of them for others."""
    return likely.index(name) if name in likely else len(likely)


def families(snapshot: Snapshot, place: Context) -> Sequence[str]:
    """The families that the step at a cursor most likely draws from, by what it is and by its data."""
    match place.keyword:
        case "observe" | "predict":
            known = data_at(snapshot, place)
            return (*of_data(known), *OUTCOMES) if known is not None else OUTCOMES
        case "marginalize":
            words = [token.text for token in place.tokens]
            two = ("FinSet", "2") in pairwise(words)
            return ("Bernoulli", "Categorical") if two else ("Categorical", "Bernoulli")
        case _:
            return (*_of_use(place), *_of_lines_above(place), *PRIORS)


def _of_use(place: Context) -> Sequence[str]:
    """Priors for a latent by the parameters that other lines of the program use it as."""
    name = place.tokens[1].text if len(place.tokens) > 1 else ""
    constraint = used_as(place, name)
    return PRIORS_OF.get(constraint, ())


def _of_lines_above(place: Context) -> Sequence[str]:
    """The family of the two latents above a cursor, where both have the same."""
    drawn: list[str] = []
    for placed in () if place.statement is None else units_of(place.statement):
        if place.placed is not None and placed.uid == place.placed.uid:
            break
        draw = getattr(placed.unit.node, "draw", None)
        if placed.unit.keyword == "sample" and isinstance(draw, Draw):
            drawn.append(draw.name.text)
    same = len(drawn) > 1 and drawn[-1] == drawn[-2] and drawn[-1] in FAMILIES
    return drawn[-1:] if same else ()


def used_as(place: Context, name: str) -> str:
    """The constraint of a parameter that a name alone is the argument of, somewhere in its program; '' for none."""
    for placed in () if place.statement is None else units_of(place.statement):
        draw = getattr(placed.unit.node, "draw", None)
        family = FAMILIES.get(draw.name.text) if isinstance(draw, Draw) else None
        if family is None or not isinstance(draw, Draw):
            continue
        for at, argument in enumerate(draw.args or ()):
            key = argument.key.text if argument.key is not None else ""
            value = argument.value.base if isinstance(argument.value, Gather) else argument.value
            if not (isinstance(value, Variable) and value.name.text == name):
                continue
            parameter = next(
                (one for position, one in enumerate(family.parameters)
                 if key in (one.name, *one.aliases) or (not key and position == at)), None,
            )  # fmt: skip
            if parameter is not None and parameter.constraint != "real":
                return parameter.constraint
    return ""


def data_at(snapshot: Snapshot, place: Context) -> DataName | None:
    """The data that the step at a cursor observes; None where its name is none."""
    program = program_at(snapshot, place)
    name = place.tokens[1].text if len(place.tokens) > 1 else ""
    return next((item for item in program.data if item.name == name), None) if program is not None else None


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
