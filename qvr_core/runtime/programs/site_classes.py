"""Which class a site drawn from a family has: one for each thing that may be said of its elements, put together.

Lengths, missing cells and elements in order each stand in a class that calls the next one, so that those of a site with
several need nothing of their own.
"""

from __future__ import annotations

from qvr_core.runtime.programs.chain_site import ChainSite
from qvr_core.runtime.programs.chains.noncentred import NoncentredChain
from qvr_core.runtime.programs.chains.unequal import UnequalChain, UnequalSite
from qvr_core.runtime.programs.family_site import FamilySite
from qvr_core.runtime.programs.missing.missing_site import MissingChain, MissingSite
from qvr_core.runtime.programs.missing.summed_site import SummedSite
from qvr_core.semantics.types.model.steps import Site
from qvr_core.semantics.types.summed import is_summed


class UnequalMissing(UnequalSite, MissingSite):
    """`[lengths=n, missing=impute]`, or `drop`: what does not exist is not missing."""


class UnequalSummed(UnequalSite, SummedSite):
    """The same of a discrete family, whose missing cells are summed out."""


class UnequalMissingChain(UnequalChain, MissingChain):
    """The same where elements depend on earlier ones."""


class UnequalNoncentred(UnequalChain, NoncentredChain):
    """`[lengths=n, noncentred]` of a chain: innovations of elements that do not exist rest."""


def site_class(site: Site) -> type[FamilySite]:
    """The class of a sample or observe step that is drawn from a family."""
    return element_class(site) if is_summed(site) or site.chain is None else chain_class(site)


def element_class(site: Site) -> type[FamilySite]:
    """That of elements whose densities are found one beside the other, whatever they read."""
    ended = site.lengths is not None
    if is_summed(site):
        return UnequalSummed if ended else SummedSite
    if site.missing is not None:
        return UnequalMissing if ended else MissingSite
    return UnequalSite if ended else FamilySite


def chain_class(site: Site) -> type[ChainSite]:
    """That of elements that may depend on earlier ones."""
    ended = site.lengths is not None
    if site.noncentred:
        return UnequalNoncentred if ended else NoncentredChain
    if site.missing is not None:
        return UnequalMissingChain if ended else MissingChain
    return UnequalChain if ended else ChainSite
