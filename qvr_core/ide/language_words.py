"""What the words of the language are: families, builtins, combinators, keywords, options."""

from __future__ import annotations

from math import isnan

from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.prose import Code, Heading, Listing, Prose, prose
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family import support_words
from qvr_core.semantics.language.mixtures import CALL, MIXTURE, SUMMARY
from qvr_core.semantics.language.options import MEANINGS
from qvr_core.semantics.language.roles import ROLES, OptionSpec


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""


def family_text(name: str) -> Prose:
    """A family: parameters, constraints, support; or what a mixture of families is."""
    if name == MIXTURE:
        return prose(Code(CALL), sentence(SUMMARY), "Density by logsumexp; a cdf where each component has one.")
    family = FAMILIES[name]
    signature = ", ".join(
        item.name if item.default is None or isnan(item.default) else f"{item.name}={item.default:g}"
        for item in family.parameters
    )
    rows = [
        f"`{item.name}`: {item.constraint}"
        + (f" ({item.shape})" if item.shape != "element" else "")
        + (f", also called {', '.join(f'`{alias}`' for alias in item.aliases)}" if item.aliases else "")
        + (f", or given as {', '.join(f'`{other}`' for other, _ in item.alternatives)}" if item.alternatives else "")
        for item in family.parameters
    ]
    return prose(
        Code(f"{name}({signature})"), sentence(family.summary), Listing(tuple(rows)), f"Support: {support_text(name)}"
    )


def builtin_text(name: str) -> Prose:
    function = BUILTINS[name]
    return prose(Code(f"{name}({', '.join(function.parameters)})"), sentence(function.summary))


def combinator_text(name: str) -> Prose:
    entry = COMBINATORS[name]
    return prose(Code(entry.call), entry.summary, f"`{entry.rule}`", f"Weights: {entry.weights}.")


def keyword_text(word: str) -> Prose:
    entry = KEYWORDS[word]
    return prose(Heading(word, f": {entry.summary}"), Code(entry.example))


def option_text(key: str, owner: str) -> Prose:
    """An option: meaning, default, legal values."""
    spec = ROLES[owner].options.get(key) if owner in ROLES else None
    if spec is not None:
        return prose(Heading(key, f" (option of `{owner}`)"), sentence(spec.meaning), _legal(spec))
    text = MEANINGS.get(key)
    return prose(Heading(key), text) if text else ()


def _legal(spec: OptionSpec) -> str:
    kinds = {
        "positive": "a number above 0",
        "fraction": "a number from 0 up to but not including 1",
        "count": "a whole number from 1",
        "flag": "`true` or `false`",
        "prior": "a family with its arguments",
        "word": "one of " + ", ".join(f"`{word}`" for word in spec.words),
    }
    default = spec.default
    shown = "none" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
    return f"Takes {kinds[spec.kind]}. Default: {shown}."


SUPPORTS = {
    "a finite set": "the categories 0, 1, …, or the labels of an enumeration",
    "`CholeskyFactor`": "Cholesky factors of correlation or covariance matrices",
    "numbers from 0 to ∞": "positive numbers",
}


def support_text(name: str) -> str:
    words = support_words(FAMILIES[name]).removeprefix("from ")
    return SUPPORTS.get(words, words)
