"""Places where little may stand: behind the colon of an object, in the brackets of an index, in those of bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.context import Bracket, Context
from qvr_core.ide.completion.offers import BEST, Items, objects_offered, spaces_offered
from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.language_words import keyword_text

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def space_of_object(snapshot: Snapshot, place: Context, bracket: Bracket | None) -> Items:
    """What an object is: mostly a set, or a space of vectors; labels in braces are new words."""
    last = place.last
    if bracket is not None and bracket.kind == "LBRACE":
        return
    if last is not None and last.text == "FinSet":
        yield Completion("_", "keyword", "the size comes with the data", rank=BEST)
        return
    if last is not None and last.kind == "COLON":
        for word, insert in (("FinSet", "FinSet ${1:_}"), ("Real", "Real ${1:64}")):
            summary, text = KEYWORDS[word].summary, keyword_text(word)
            order = -2 if word == "FinSet" else -1
            yield Completion(word, "struct", summary, text, insert, snippet=True, rank=BEST, order=order)
    yield from objects_offered(snapshot, place)
    yield from spaces_offered()


def names_indices(place: Context, bracket: Bracket, *, drawn: bool) -> bool:
    """Whether a cursor stands where a step names an index: behind `observe y[`."""
    return bracket.start == 2 and bracket.kind == "LSQB" and not (bracket.since or drawn or _assigned(place))


def bounds_a_space(place: Context, bracket: Bracket, *, drawn: bool) -> bool:
    """Whether a cursor stands behind `data x : Row -> Real 1 [`."""
    opened = bracket.start > 2 and bracket.kind in ("LSQB", "BOUNDS")
    return opened and place.keyword in ("data", "sample") and not (drawn or _assigned(place))


def _assigned(place: Context) -> bool:
    return any(token.kind == "EQUAL" for token in place.tokens)
