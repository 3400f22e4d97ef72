"""What is said of the draws of a program, and of values in its arithmetic."""

from __future__ import annotations

from qvr_core.ide import arrows_in_words
from qvr_core.ide.axes import plate_of, site_type, type_text
from qvr_core.ide.indices import chain_note
from qvr_core.ide.language_words import sentence
from qvr_core.ide.prose import Code, Prose, prose
from qvr_core.ide.types_in_words import each_of, element_words, site_words
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.language.family import support_words
from qvr_core.semantics.language.outcomes import computed_name, outcome_text
from qvr_core.semantics.language.sum_to_zero import SUM_TO_ZERO
from qvr_core.semantics.language.truncated import HIGHEST, LOWEST, family_words, truncated_name
from qvr_core.semantics.programs.families.narrowed import has_places
from qvr_core.semantics.types.model.arrows import Lift, Ref
from qvr_core.semantics.types.model.expressions import Constant, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import ArrowDraw, Site
from qvr_core.semantics.types.spaces import Finite, Named, Real, Unknown, has_seq, item_of
from qvr_core.semantics.types.type_text import space_text, structure

PREDICTED = "drawn after the fit"


def site_text(site: Site, name: str, role: str, *, rows: bool) -> Prose:
    """A site: shape, support, what it is to the fit, density.  `rows`: its program reads a batch of rows."""
    space = next((space for bound, space in site.bound if bound == name), None)
    if space is not None and isinstance(space.space, Unknown):
        space = None
    match site.draw:
        case FamilyDraw(family=family):
            drawn = f"{_outcome(family, name)}from `{family_words(family)}`{_between(site.draw)}"
            support = f"Support: {support_words(facts_of_draw(site.draw)).removeprefix('from ')}"
        case ArrowDraw(arrow=arrow):
            whole = arrow.arrow if isinstance(arrow, Lift) else arrow
            drawn = f"from `{whole.name}`" if isinstance(whole, Ref) else "from an arrow"
            support = ""
    plate = plate_of(site)
    typed = site_type(site, name)
    head = Code(f"{name} : {typed}" if typed else name)
    density = (
        ""
        if role == PREDICTED or site.density.kind == "exact"
        else sentence(arrows_in_words.density_text(site.density))
    )
    words = _counts(site) or site_words(site, name) or ("" if rows else _words_of_family(site))
    drawn_as = arrows_in_words.plate_shape(plate, space, rows=rows, over=site.over)
    if words and not rows:
        words += f" · shape `{drawn_as}`" if drawn_as != "()" else ""
        moved = (
            "NUTS moves a standardised value in its place; what is reported is the value itself."
            if site.noncentred
            else ""
        )
        return prose(head, f"{role} · {drawn} · {words}", moved, _places_note(site, space), chain_note(site), density)
    shape = f"Shape: `{drawn_as}`" if (space is not None or plate is not None) and drawn_as != "()" else ""
    return prose(
        head,
        f"{role} · {drawn}" + (f" · {words if words and plate is None else space_text(space)}" if space else ""),
        shape,
        f"One draw per element of {space_text(plate)}." if plate is not None else "",
        chain_note(site),
        _places_note(site, space),
        support,
        density or ("" if role == PREDICTED else "Its log density is exact, not estimated from samples."),
        "Drawn anew in each row of the batch." if rows and site.row_local and plate is not None else "",
    )


def words_of_site(site: Site, name: str) -> str:
    """`one count for each road`, of a name that a site binds in a program without a batch."""
    return _counts(site) or site_words(site, name) or _words_of_family(site)


def _counts(site: Site) -> str:
    """Of a family of counts: their type is that of numbers from 0 on."""
    facts = facts_of_draw(site.draw) if isinstance(site.draw, FamilyDraw) else None
    if facts is None or facts.event or facts.support.kind != "count":
        return ""
    return element_words(None, "count") + each_of(plate_of(site))


def _words_of_family(site: Site) -> str:
    """What a site draws whose size comes with the data, by the support of its family."""
    facts = facts_of_draw(site.draw) if isinstance(site.draw, FamilyDraw) else None
    if facts is None or facts.event:
        return ""
    support = facts.support
    space = Real((1,), support.low, support.high) if support.kind == "real" else None
    if support.size is not None:
        space = Finite(support.size)
    return element_words(space) + each_of(plate_of(site)) if space is not None else ""


def _places_note(site: Site, space: Named | None) -> str:
    """Of an ordered vector whose places have numbers of their own."""
    draw = site.draw
    placed = isinstance(draw, FamilyDraw) and has_places(draw, None if space is None else space.space)
    return "Each place has numbers of its own: the density is their product, and not normalised." if placed else ""


def _outcome(family: str, name: str) -> str:
    """'`log(y)` ' where the family is that of a function of the value."""
    found = computed_name(truncated_name(family) or family)
    return "" if found is None else f"`{outcome_text(found[0], name)}` "


def _between(draw: FamilyDraw) -> str:
    """' above 0', ' between 0 and 5': what the ascription of a step, or `sum_to_zero`, makes of its family."""
    if draw.family == SUM_TO_ZERO:
        return ", summing to 0 over the last set"
    if truncated_name(draw.family) is None:
        return ""
    given = dict(draw.args)
    low, high = (
        f"{bound.value:g}" if isinstance(bound, Constant) and not isinstance(bound.value, str) else None
        for bound in (given.get(LOWEST.name), given.get(HIGHEST.name))
    )
    if low is not None and high is not None:
        return f" between {low} and {high}"
    return f" from {low} on" if low is not None else f" up to {high}" if high is not None else " between bounds"


def value_text(kind: ValueType, *, rows: bool) -> str:
    """The type of a value in arithmetic.  `rows`: its program reads a batch of rows, so a value may differ in them."""
    axes = type_text(kind) if kind.indexed else ""
    parts = [
        f"`{axes}`" if axes else structure(kind.space) if kind.space is not None else "its shape comes with the data"
    ]
    if rows:
        parts.append("differs from row to row" if kind.rows else "the same for all rows")
        if kind.space is not None and not axes and (words := element_words(item_of(kind.space))):
            parts.append(f"at each position {words}" if has_seq(kind.space) else words)
    return " · ".join(parts)
