"""What completion offers of `solve`, the form for differential equations."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.context import Bracket, Context
from qvr_core.ide.completion.offers import BEST, GOOD, LAST, PLAIN, Items, own_functions_offered
from qvr_core.ide.language_words import form_text
from qvr_core.ide.symbols import lookup
from qvr_core.ide.target import called
from qvr_core.semantics.language import equations

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def solve_offered(snapshot: Snapshot, place: Context) -> Items:
    """The form for differential equations, which is the whole right side of a `let` with indices."""
    begins = place.keyword == "let" and not place.brackets and place.last is not None and place.last.kind == "EQUAL"
    if begins and any(token.kind == "LSQB" for token in place.tokens) and lookup(snapshot, equations.SOLVE) is None:
        text = equations.SNIPPET
        yield Completion(
            equations.SOLVE, "function", equations.SUMMARY, form_text(), text, snippet=True, rank=LAST, order=-1
        )


def in_equation(snapshot: Snapshot, place: Context) -> Bracket | None:
    """The parentheses of a call of `solve` that the cursor is in, innermost."""
    bracket = place.brackets[-1] if place.brackets else None
    symbol = called(snapshot, place, bracket) if bracket is not None and bracket.kind == "LPAR" else None
    return bracket if symbol is not None and symbol.kind == "form" else None


def without_values(snapshot: Snapshot, bracket: Bracket) -> Items | None:
    """What an argument of `solve` is where it is no value: a function of the file, or a method."""
    since = [token.text for token in bracket.since]
    if since == ["method", "="]:
        methods = enumerate(equations.METHODS.items())
        return (Completion(name, "enumMember", what, rank=BEST, order=at) for at, (name, what) in methods)
    return own_functions_offered(snapshot, called=False) if not since and not bracket.position else None


def options_of_solve(place: Context, bracket: Bracket) -> Items:
    """The options that a call of `solve` has not yet; first those that it needs."""
    written = {one.text for one, two in pairwise(place.tokens[bracket.start :]) if two.kind == "EQUAL"}
    for order, (name, meaning) in enumerate(equations.OPTIONS.items()):
        if name not in written and not bracket.since:
            rank = GOOD if name in equations.NEEDED else PLAIN
            yield Completion(name, "property", meaning, insert=f"{name}=", rank=rank, order=order)
