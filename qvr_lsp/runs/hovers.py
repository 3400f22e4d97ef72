"""What hovers say of a name that the last run has fitted: its figures, density, prior, and ranks by chain."""

from __future__ import annotations

from collections.abc import Iterator

from qvr_core.ide.prose import Code, Listing, Prose, prose
from qvr_core.runs.record.last_fit import Fitted, blocks, coarse, give_or_take, shown
from qvr_core.runs.record.live import Drawn
from qvr_core.runs.record.summary import Element, SiteSummary

MOST_LISTED = 8
"""Numbers of a site that a hover lists."""


def about(fit: Fitted) -> dict[str, Prose]:
    """What a hover says of each site and kept let."""
    head = f"Posterior of run `{fit.run_id}`:"
    return {name: _about(head, site, "posterior") for name, site in fit.sites.items() if site.elements}


def about_drawn(found: Drawn) -> dict[str, Prose]:
    """The same of draws that were made as somebody types, with what is to be said of an observed step."""
    if found.summary is None:
        return {}
    made, drawn = f"{found.summary.draws:,} draws", "prior" if found.method == "prior" else "posterior"
    if found.method == "prior":
        head = f"Prior, {made}:"
    elif found.method == "pathfinder":
        head = f"Live posterior, Pathfinder's approximation, {made}:"
    else:
        head = f"Live posterior, {found.summary.chains} chains of {made}:"
    sites = (site for site in found.summary.sites if site.elements)
    return {site.name: prose(_about(head, site, drawn), found.outside.get(site.name, "")) for site in sites}


def _about(head: str, site: SiteSummary, drawn: str) -> Prose:
    if site.size == 1:
        one = site.elements[0]
        return prose(f"{head} {_words(one)}.", Code("\n".join(_pictures(one, drawn))) if one.density else "")
    listed = tuple(
        f"`{one.name}` {blocks(coarse(one.density.posterior, 16)) if one.density else ''} {_words(one)}"
        for one in site.elements[:MOST_LISTED]
    )
    more = site.size - len(listed)
    worst = next((one for one in site.elements if one.name == site.worst), site.elements[0])
    pictures = Code("\n".join((worst.name, *_pictures(worst, drawn)))) if worst.density else ""
    return prose(head, Listing((*listed, f"and {more:,} more") if more else listed), pictures)


def _words(one: Element) -> str:
    said = [f"{give_or_take(one.mean, one.sd)}, 90 % between {shown(one.q05)} and {shown(one.q95)}"]
    said += [] if one.r_hat is None else [f"R̂ {one.r_hat:.3f}"]
    said += [] if one.ess is None else [f"{one.ess:,.0f} effective draws"]
    return " · ".join(said)


def _pictures(one: Element, drawn: str) -> Iterator[str]:
    """Density, prior, ranks of each chain, a line each."""
    density = one.density
    assert density is not None
    yield f"{drawn:<9} {blocks(list(density.posterior))}  {shown(density.low)} … {shown(density.high)}"
    if density.prior:
        share = "" if density.prior_share is None else f"  {density.prior_share:.0%} of it lies here"
        yield f"prior     {blocks(list(density.prior))}{share}"
    for chain, counts in enumerate(one.ranks):
        yield f"chain {chain:<3} {blocks(list(counts))}  ranks"
