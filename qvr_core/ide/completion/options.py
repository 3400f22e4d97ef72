"""What completion offers in brackets of options: the keys that may stand there, and their values."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion import likely
from qvr_core.ide.completion.context import Bracket, Context
from qvr_core.ide.completion.guides import models_offered
from qvr_core.ide.completion.offers import BEST, GOOD, OTHER, Items, objects_offered
from qvr_core.ide.completion.typing import role_joins, space_of_text
from qvr_core.ide.completion.uses_of_names import own_names
from qvr_core.ide.language_words import option_text
from qvr_core.ide.names import VALUE_OPTIONS
from qvr_core.ide.prose import prose
from qvr_core.ide.view import model_of
from qvr_core.semantics.language.options import (
    DECODER_KEYS,
    DEDUCTION_KEYS,
    FLAGS,
    MEANINGS,
    MEANINGS_OF_RULES,
    OBJECT_KEYS,
    PROGRAM_KEYS,
    RULE_ATTRIBUTES,
    STEP_KEYS,
    WORDS,
)
from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.semantics.language.roles import ROLES, OptionSpec
from qvr_core.semantics.types.data_text import data_text
from qvr_core.semantics.types.model.arrows import Embed, LinearMap
from qvr_core.semantics.types.model.steps import ObserveModel
from qvr_core.semantics.types.spaces import Finite, Space
from qvr_core.semantics.types.walk import sites

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def options_offered(snapshot: Snapshot, place: Context, bracket: Bracket) -> Items:
    since = bracket.since
    equal = next((token for token in since if token.kind == "EQUAL"), None)
    if equal is not None:
        yield from option_values(snapshot, place, since[0].text)
        return
    if bracket.kind == "BOUNDS" or place.keyword == "object":
        yield from bounds_offered()
        return
    given = {token.text for token in place.tokens[bracket.start :] if token.kind == "NAME"}
    if place.start == "step":
        keys = [key for key in STEP_KEYS.get(place.keyword, ()) if _may_stand(snapshot, place, key)]
        first = likely.OPTIONS.get(place.keyword, ())
        family = EVERY_FAMILY.get(_drawn_from(place))
        if family is not None and family.event:
            first = ("over", *first)
        for key in keys:
            if key not in given:
                offered = option_offered(key, key if key in FLAGS else f"{key}=", MEANINGS[key])
                yield replace(offered, order=likely.order(key, first))
    elif place.keyword == "morphism":
        role = ROLES.get(role_at(place))
        for at, spec in enumerate(role.options.values() if role is not None else ()):
            if spec.key not in given and _option_matters(snapshot, place, spec.key, given):
                yield replace(_role_option(spec, role_at(place)), order=at)
    elif place.keyword == "program":
        for key in PROGRAM_KEYS:
            listed = key in ("effects", "keep")
            yield option_offered(key, f"{key}=[$0]" if listed else f"{key}=", MEANINGS[key], snippet=listed)
    elif place.keyword == "deduction":
        yield from (option_offered(key, f"{key}=", MEANINGS[key]) for key in DEDUCTION_KEYS if key not in given)
    elif place.keyword == "decoder":
        yield from (option_offered(key, f"{key}=", MEANINGS[key]) for key in DECODER_KEYS if key not in given)


def in_attribute(place: Context) -> bool:
    """Whether a cursor stands behind the `#[` of a rule or a lexicon entry."""
    return place.text.rfind("#[") > place.text.rfind("]")


def attributes_of_rule() -> Items:
    """`learnable` and the other attributes of a rule or a lexicon entry."""
    for order, key in enumerate(RULE_ATTRIBUTES):
        insert = key if key in ("learnable", "bounded") else f"{key}="
        detail = MEANINGS_OF_RULES.get(key, MEANINGS.get(key, ""))
        yield replace(option_offered(key, insert, detail), order=order)


def bounds_offered() -> Items:
    """`low=` and `high=` of a space."""
    for order, key in enumerate(("low", "high")):
        yield replace(option_offered(key, f"{key}=", MEANINGS[key]), order=order)


def _may_stand(snapshot: Snapshot, place: Context, key: str) -> bool:
    """False for the option of a guide elsewhere, and for lengths where none of the declared data are counts."""
    program = likely.program_at(snapshot, place)
    family = EVERY_FAMILY.get(_drawn_from(place))
    if family is not None and key in ("noncentred", "sum_to_zero") and not family.noncentred:
        return False
    if program is None:
        return True
    if key == "auxiliary":
        return program.guidance is not None
    declared = [item for item in program.data if item.declared]
    undeclared = len(declared) < len(program.data) or any(each.name for each in program.inputs)
    counts = any(item.numbers == "count" for item in declared)
    return key != "lengths" or not declared or undeclared or counts


def _drawn_from(place: Context) -> str:
    """The family behind the `<-` of the line at a cursor."""
    return next((name.text for draw, name in pairwise(place.tokens) if draw.kind == "DRAW"), "")


def _option_matters(snapshot: Snapshot, place: Context, key: str, given: set[str]) -> bool:
    """False for a scale where the family has none, and for the bias of a head that is tied to nothing."""
    if key == "bias" and role_at(place) == "kernel":
        return "tie" in given
    return key != "scale" or _scale_matters(snapshot, place)


def _scale_matters(snapshot: Snapshot, place: Context) -> bool:
    """False where a family without a scale is already written behind the cursor."""
    if place.placed is None:
        return True
    _, _, after = place.placed.unit.text.partition("~")
    family = EVERY_FAMILY.get(after.strip().partition("(")[0].strip())
    return family is None or family.has_scale


def option_offered(key: str, insert: str, detail: str, *, snippet: bool = False) -> Completion:
    return Completion(key, "property", detail, insert=insert, snippet=snippet, rank=BEST)


def _role_option(spec: OptionSpec, role: str) -> Completion:
    default = spec.default
    shown = "" if default is None else f" (default {str(default).lower() if isinstance(default, bool) else default})"
    rank = BEST if spec.key == "role" else GOOD
    return Completion(
        spec.key, "property", spec.meaning + shown, option_text(spec.key, role), f"{spec.key}=", rank=rank
    )


def option_values(snapshot: Snapshot, place: Context, key: str) -> Items:
    if key == "role":
        sides = sides_of(snapshot, place)
        for role in ROLES.values():
            if role_joins(role.name, *sides):
                order = likely.order(role.name, likely.ROLES)
                yield Completion(role.name, "enum", role.summary, prose(role.between), rank=BEST, order=order)
        return
    if place.start == "step" and key in VALUE_OPTIONS:
        yield from _columns_for(snapshot, place, key)
        return
    if place.start == "step" and key in OBJECT_KEYS:
        yield from objects_offered(snapshot, place)
        return
    if place.keyword == "program" and key == "guide":
        yield from models_offered(snapshot, place)
        return
    words = WORDS.get(key, ())
    role = ROLES.get(role_at(place))
    spec = role.options.get(key) if role is not None and place.keyword == "morphism" else None
    if spec is not None:
        if spec.kind == "arrow":
            for name, arrow in model_of(snapshot).arrows.items():
                if isinstance(arrow, Embed | LinearMap) and arrow.prior is None:
                    detail = f"{arrow.domain.written} => {arrow.codomain.written}"
                    yield Completion(name, "function", detail, rank=BEST)
        words = ("true", "false") if spec.kind == "flag" else spec.words
    yield from (Completion(word, "enum", rank=BEST) for word in words)


def _columns_for(snapshot: Snapshot, place: Context, key: str) -> Items:
    """The data that an option may name: truths for censoring and masks, counts for lengths, numbers for limits."""
    program = likely.program_at(snapshot, place)
    if program is None:
        return
    observed = {site.name for site in sites(program.steps, ObserveModel)} | {*place.columns, *own_names(place)}
    truths = key.endswith("censored") or key == "mask"
    wanted = "bool" if truths else "count" if key == "lengths" else ""
    for item in program.data:
        if item.name in observed:
            continue
        fits = item.numbers == wanted and not isinstance(item.type.space, Finite if not truths else ())
        text = data_text(item.type, item.numbers, item.lengths) if item.declared else "data, supplied at run time"
        yield Completion(item.name, "data", text, rank=BEST if fits or not item.declared else OTHER)
    for column, file in place.columns.items():
        yield Completion(column, "data", f"a column of {file}", rank=GOOD)


def role_at(place: Context) -> str:
    tokens = place.tokens
    for key, equal, value in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if key.text == "role" and equal.kind == "EQUAL":
            return value.text
    return "kernel"


def sides_of(snapshot: Snapshot, place: Context) -> tuple[Space | None, Space | None]:
    """Domain and codomain of the morphism that is being written."""
    colon = next((token for token in place.tokens if token.kind == "COLON"), None)
    arrow = next((token for token in place.tokens if token.kind == "ARROW"), None)
    if colon is None or arrow is None:
        return None, None
    behind = (token.start for token in place.tokens if token.start > arrow.end and token.kind in ("LSQB", "TILDE"))
    model = model_of(snapshot)
    return (
        space_of_text(place.text[colon.end : arrow.start], model),
        space_of_text(place.text[arrow.end : next(behind, None)], model),
    )
