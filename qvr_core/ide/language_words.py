"""What the words of the language are: families, builtins, combinators, keywords, options."""

from __future__ import annotations

from math import isnan

from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.prose import Code, Heading, Listing, Prose, prose
from qvr_core.semantics.language import equations
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.semantics.language.family import Parameter, support_words
from qvr_core.semantics.language.gates import GATE, GATED, gated_call
from qvr_core.semantics.language.mixtures import CALL, MIXTURE, SUMMARY
from qvr_core.semantics.language.options import MEANINGS, meaning
from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.semantics.language.roles import ROLES, OptionSpec


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""


def family_text(name: str, here: str = "", *, of_network: bool = False) -> Prose:
    """A family: what it is, and `here`; parameters, constraints, support; or what a mixture of families is.  Of those
    that a network gives, `here` says it all."""
    if name == MIXTURE:
        return prose(Code(CALL), sentence(SUMMARY), "Density by logsumexp; a cdf where each component has one.")
    if name in GATED:
        rows = (f"`gate`: {constraint_words(GATE)}", "a family of counts with its arguments")
        return prose(
            Code(gated_call(name)), sentence(GATED[name]), Listing(rows), f"Support: {support_text('Poisson')}"
        )
    family = EVERY_FAMILY[name]
    signature = ", ".join(
        item.name if item.default is None or isnan(item.default) else f"{item.name}={item.default:g}"
        for item in family.parameters
    )
    rows = [
        f"`{item.name}`: {constraint_words(item)}"
        + (f", also called {', '.join(f'`{alias}`' for alias in item.aliases)}" if item.aliases else "")
        + (f", or given as {', '.join(f'`{other}`' for other, _ in item.alternatives)}" if item.alternatives else "")
        for item in family.parameters
        if not (of_network and item.raw != "none")
    ]
    return prose(
        Code(f"{name}({signature})"),
        sentence(family.summary),
        here,
        Listing(tuple(rows)),
        f"Support: {support_text(name)}",
    )


def builtin_text(name: str) -> Prose:
    function = BUILTINS[name]
    first, _, rest = function.summary.partition(" ")
    named = first.strip(",") in function.parameters  # `x`, which is no word that begins a sentence
    summary = f"`{first}` {rest}." if named else sentence(function.summary)
    return prose(Code(f"{name}({', '.join(function.parameters)})"), summary)


def form_text() -> Prose:
    """`solve`: how it is called, what it gives, and its methods."""
    methods = "; ".join(f"`{name}`: {what}" for name, what in equations.METHODS.items())
    return prose(Code(equations.CALL), sentence(equations.SUMMARY), f"`method=` is one of {methods}.")


def combinator_text(name: str) -> Prose:
    entry = COMBINATORS[name]
    either = " (`~`: `=>` where it computes, `->` where it draws)" if "~" in entry.rule else ""
    weights = "" if entry.weights == "none" else sentence(WEIGHTS.get(entry.weights, entry.weights))
    return prose(Code(entry.call), entry.summary, f"Types: `{entry.rule}`{either}", weights)


WEIGHTS = {
    "shared": "an arrow that is named in several places has the same weights in all of them",
    "shared over time": "every position has the same weights",
    "n separate copies, separately initialised": "each copy has weights of its own",
}
"""In a sentence, what becomes of the weights of a combinator's arrows."""


def keyword_text(word: str) -> Prose:
    entry = KEYWORDS[word]
    return prose(Heading(word, f": {entry.summary}"), Code(entry.example))


def option_text(key: str, owner: str, step: str = "") -> Prose:
    """An option: meaning, default, legal values; of a `step` by its word."""
    spec = ROLES[owner].options.get(key) if owner in ROLES else None
    if spec is not None:
        whose = "every morphism" if all(key in role.options for role in ROLES.values()) else f"`{owner}`"
        return prose(Heading(key, f" (option of {whose})"), sentence(spec.meaning), _legal(spec))
    return prose(Heading(key), meaning(key, step)) if key in MEANINGS else ()


def _legal(spec: OptionSpec) -> str:
    kinds = {
        "positive": "a number above 0",
        "fraction": "a number from 0 up to but not including 1",
        "count": "a whole number from 1",
        "natural": "a whole number from 0",
        "flag": "`true` or `false`",
        "prior": "a family with its arguments",
        "arrow": "a table or a linear map by its name, or `transpose(f)` of one",
        "start": "a weight, or one of " + ", ".join(f"`{word}`" for word in spec.words),
        "word": "one of " + ", ".join(f"`{word}`" for word in spec.words),
    }
    default = spec.default
    shown = "none" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
    return f"Takes {kinds[spec.kind]}. Default: {shown}."


SUPPORTS = {
    "a finite set": "the categories 0, 1, …, or the labels of an enumeration",
    "`CholeskyFactor`": "Cholesky factors of correlation matrices",
    "numbers from 0 to ∞": "positive numbers",
    "`Simplex`": "probabilities that sum to 1",
    "`Covariance`": "covariance matrices",
    "`Correlation`": "correlation matrices",
}
CONSTRAINTS = {
    "real": "any number",
    "positive": "above 0",
    "unit": "from 0 to 1",
    "natural": "a whole number from 0",
    "whole": "a whole number",
    "simplex": "probabilities that sum to 1",
    "ordered": "numbers in ascending order",
    "lower triangular": "a lower triangular matrix with a positive diagonal",
    "positive vector": "numbers above 0",
}
_OF_MANY = {"real": "numbers", "natural": "whole numbers from 0", "positive": "numbers above 0"}


def support_text(name: str) -> str:
    family = EVERY_FAMILY[name]
    if family.support.size == 2:
        return "0 and 1"
    if {"low", "high"} <= {parameter.name for parameter in family.parameters}:
        return f"{'numbers' if family.support.kind == 'real' else 'whole numbers'} from `low` to `high`"
    words = support_words(family).removeprefix("from ")
    return SUPPORTS.get(words, words)


def constraint_words(parameter: Parameter) -> str:
    """What a parameter may be: `above 0`, `numbers in ascending order`."""
    words = CONSTRAINTS.get(parameter.constraint, parameter.constraint)
    if parameter.shape == "element":
        return words
    if parameter.shape == "matrix":
        return words if "matrix" in words else f"a matrix of {_OF_MANY.get(parameter.constraint, words)}"
    return _OF_MANY.get(parameter.constraint, words)
