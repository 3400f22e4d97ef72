"""Completion in the lines of a declared family and of a composition."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.context import Context
from qvr_core.ide.completion.offers import (
    BEST,
    Items,
    arrow_names,
    arrows_offered,
    bound_offered,
    families_offered,
    functions_offered,
)

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

_RULE = re.compile(r"\s*(\w+)\s*(?:\(([^)]*)\))?\s*=")


def rule_offered(snapshot: Snapshot, place: Context) -> Items:
    """What may stand behind `=`: the names of the line and of the family, and what computes; in a draw, families."""
    rule = _RULE.match(place.text)
    name, names = (rule[1], rule[2] or "") if rule is not None else ("", "")
    for own in filter(None, (each.strip() for each in names.split(","))):
        yield Completion(own, "variable", f"of `{name}`", rank=BEST)
    if place.statement is not None and place.statement.header.unit.keyword in ("encoder", "decoder"):
        yield from arrows_offered(snapshot, arrow_names(snapshot, place), None)
    if place.statement is not None and place.statement.header.unit.keyword == "family":
        yield from bound_offered(snapshot, place)
        if name == "draw":
            owner = {own.text for own in place.statement.header.unit.declares}
            yield from (item for item in families_offered(snapshot, place) if item.label not in owner)
    yield from functions_offered(snapshot)
