"""What most people write next, so that it stands first among what may stand there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from qvr_core.ide.completion.context import Context
from qvr_core.ide.completion.uses_of_names import lines_of
from qvr_core.ide.view import model_of
from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.semantics.types.model.programs import DataName, Program
from qvr_core.semantics.types.spaces import Finite, Real
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tree.arithmetic import ArithCall, Binary, Gather, Literal, Variable
from qvr_core.syntax.tree.steps import Draw
from qvr_core.syntax.walk import walk

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
    "Normal", "Bernoulli", "Poisson", "StudentT", "Binomial", "Categorical", "NegativeBinomial", "LogNormal", "Gamma",
    "Beta", "OrderedLogistic",
)  # fmt: skip
NUMBERS = ("Normal", "StudentT", "LogNormal", "Gamma", "Laplace")
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
STEPS: Mapping[str, Sequence[str]] = {
    "program": ("data", "sample", "let", "observe"),
    "data": ("data", "sample", "let", "observe"),
    "param": ("param", "sample", "let"),
    "sample": ("sample", "let", "observe", "marginalize"),
    "let": ("observe", "let", "sample", "return", "marginalize"),
    "marginalize": ("observe", "let", "marginalize"),
    "observe": ("return", "let", "observe", "predict"),
    "predict": ("return", "predict", "let"),
    "score": ("return", "score", "let"),
}
"""What most people write next, by the first word of the line above."""
ALL_STEPS = ("sample", "observe", "let", "data", "marginalize", "predict", "return", "score")
STATEMENTS: Mapping[str, Sequence[str]] = {
    "": ("object", "import", "program", "morphism"),
    "import": ("object", "import", "morphism"),
    "from": ("object", "import", "morphism"),
    "object": ("object", "program", "morphism"),
    "morphism": ("morphism", "let", "program"),
    "let": ("let", "program", "export"),
    "define": ("let", "program", "export"),
    "program": ("export", "program", "let"),
    "def": ("def", "program", "object"),
    "family": ("family", "program", "object"),
    "transformation": ("let", "transformation", "morphism"),
    "data type": ("encoder", "morphism", "data type"),
    "encoder": ("program", "morphism", "decoder", "encoder"),
    "decoder": ("program", "morphism", "encoder"),
    "deduction": ("program", "deduction", "object"),
    "export": ("program", "let", "morphism"),
}
"""The same at the left margin."""
ALL_STATEMENTS = (
    "object", "morphism", "let", "program", "export", "def", "family", "import", "data type", "encoder",
    "decoder",     "composition", "transformation", "deduction",
)  # fmt: skip
ROLES = (
    "embed", "kernel", "linear", "norm", "attention", "position", "dropout", "conv", "pool", "batch_norm",
)  # fmt: skip
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


def statements(snapshot: Snapshot, place: Context) -> Sequence[str]:
    """The first words of declarations, by what stands above a cursor and by what the file already has."""
    above = place.statement.header.unit.keyword if place.statement is not None else ""
    first = STATEMENTS.get(above, ())
    words = {each.header.unit.keyword for each in snapshot.statements}
    if above == "object" and "morphism" in words:
        first = ("object", "morphism", "program")
    later = ("export",) if "export" in words and above != "program" else ()
    return [*first, *(word for word in ALL_STATEMENTS if word not in (*first, *later)), *later]


def steps(snapshot: Snapshot, place: Context) -> Sequence[str]:
    """The first words of lines that may stand in the body at a cursor, the likely ones first."""
    statement = place.statement
    if statement is None or statement.header.unit.keyword != "program":
        return ("let", "return")
    above = "program"
    for placed in units_of(statement):
        if snapshot.layout.locate(placed.uid)[0] < place.line:
            above = placed.unit.keyword
    program = program_at(snapshot, place)
    if above == "observe" and program is not None and _unfinished(place, program):
        above = "unfinished"
    guides = ("param",) if program is None or program.guidance is not None else ()
    first = STEPS.get(above, ()) if above != "unfinished" else ("sample", "observe", "let")
    return list(dict.fromkeys((*(guides if program is not None else ()), *first, *ALL_STEPS, *guides)))


def _unfinished(place: Context, program: Program) -> bool:
    """Whether there are data that no line above a cursor reads or observes."""
    above = [line for line in lines_of(place) if line.before and line.word != "data"]
    told = {name for line in above for name in (*line.binds, *line.reads)}
    return any(item.declared and item.name not in told for item in program.data)


def families(snapshot: Snapshot, place: Context) -> Sequence[str]:
    """The families that the step at a cursor most likely draws from, by what it is and by its data."""
    match place.keyword:
        case "observe" | "predict":
            known = data_at(snapshot, place)
            if known is None:
                return OUTCOMES
            plain = known.declared and known.numbers == "" and isinstance(known.type.space, Real)
            return (*of_data(known), *(NUMBERS if plain else ()), *OUTCOMES)
        case "marginalize":
            words = [token.text for token in place.tokens]
            two = ("FinSet", "2") in pairwise(words)
            return ("Bernoulli", "Categorical") if two else ("Categorical", "Bernoulli")
        case _:
            return (*_of_use(place), *_of_lines_above(place), *PRIORS)


def _of_use(place: Context) -> Sequence[str]:
    """Priors for a latent by the parameters that other lines of the program use it as."""
    name = place.tokens[1].text if len(place.tokens) > 1 else ""
    return PRIORS_OF.get(used_as(place, name) or _in_formulas(place, name) or _by_name(name), ())


def _in_formulas(place: Context, name: str) -> str:
    """The constraint of a latent by what other lines compute with it: `1 - x` of a share, `log(x)` of a size."""
    for placed in () if place.statement is None or not name else units_of(place.statement):
        for node in walk(placed.unit.node):
            match node:
                case Binary(operator="-", left=Literal(value=value), right=right) if _is(right, name) and value == 1:
                    return "unit"
                case Binary(operator="/", right=right) if _is(right, name):
                    return "positive"
                case ArithCall(func=func, args=(only, *_)) if func.text in ABOVE_0 and _is(only.value, name):
                    return "positive"
                case _:
                    pass
    return ""


ABOVE_0 = ("log", "sqrt", "lgamma")


def _is(node: object, name: str) -> bool:
    """Whether a node is a name, at indices or not."""
    base = node.base if isinstance(node, Gather) else node
    return isinstance(base, Variable) and base.name.text == name


def _by_name(name: str) -> str:
    """Spreads by the names that most people give them."""
    last = name.rpartition("_")[2]
    return "positive" if (name.startswith(SPREADS) and name.rstrip("0123456789") in SPREADS) or last in SPREADS else ""


SPREADS = ("sigma", "tau", "sd", "scale", "spread", "dispersion", "within", "between")


def _of_lines_above(place: Context) -> Sequence[str]:
    """The family of the two latents above a cursor, where both have the same."""
    drawn: list[str] = []
    for placed in () if place.statement is None else units_of(place.statement):
        if place.placed is not None and placed.uid == place.placed.uid:
            break
        draw = getattr(placed.unit.node, "draw", None)
        if placed.unit.keyword == "sample" and isinstance(draw, Draw):
            drawn.append(draw.name.text)
    same = len(drawn) > 1 and drawn[-1] == drawn[-2] and drawn[-1] in EVERY_FAMILY
    return drawn[-1:] if same else ()


def used_as(place: Context, name: str) -> str:
    """The constraint of a parameter that a name is the argument of, somewhere in its program, alone or in a product; ''
    for none."""
    for placed in () if place.statement is None else units_of(place.statement):
        draw = getattr(placed.unit.node, "draw", None)
        family = EVERY_FAMILY.get(draw.name.text) if isinstance(draw, Draw) else None
        if family is None or not isinstance(draw, Draw):
            continue
        for at, argument in enumerate(draw.args or ()):
            key = argument.key.text if argument.key is not None else ""
            factors = list(_factors(argument.value))
            if not any(_is(factor, name) for factor in factors):
                continue
            parameter = next(
                (one for position, one in enumerate(family.parameters)
                 if key in (one.name, *one.aliases) or (not key and position == at)), None,
            )  # fmt: skip
            wanted = "real" if parameter is None else parameter.constraint
            # a product of what is above 0, or of shares, is such again
            if wanted != "real" and (len(factors) == 1 or wanted in ("positive", "unit")):
                return wanted
    return ""


def _factors(node: object) -> Iterator[object]:
    match node:
        case Binary(operator="*", left=left, right=right):
            yield from _factors(left)
            yield from _factors(right)
        case _:
            yield node


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
