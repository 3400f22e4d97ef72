"""Families by name: those of the language, and those that the file declares."""

from __future__ import annotations

from collections.abc import Iterator

from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.language.gates import gated, gated_name
from qvr_core.semantics.language.mixtures import component_names, mixture_of
from qvr_core.semantics.language.outcomes import computed, computed_name
from qvr_core.semantics.language.sum_to_zero import SUM_TO_ZERO
from qvr_core.semantics.language.truncated import flat_on, truncated, truncated_name
from qvr_core.semantics.scope.scope import DamagedEntry, DistributionEntry, Scope
from qvr_core.semantics.types.model.families import DeclaredFamily


def family_named(name: str, scope: Scope) -> Family | None:
    """The family, or mixture, of a name; None where it is none, or one that is damaged."""
    if (inner := truncated_name(name)) is not None:
        whole = family_named(inner, scope)
        return None if whole is None else truncated(whole)
    if (outcome := computed_name(name)) is not None:
        whole = family_named(outcome[1], scope)
        return None if whole is None else computed(outcome[0], whole)
    if (gate := gated_name(name)) is not None:
        whole = family_named(gate[1], scope)
        return None if whole is None else gated(gate[0], whole)
    if (components := component_names(name)) is not None:
        made = [family_named(one, scope) for one in components]
        known = [one for one in made if one is not None]
        return mixture_of(known) if len(known) == len(made) else None
    if flat_on(name) is not None or name == SUM_TO_ZERO:
        return FAMILIES[name]
    entry = scope.lookup(name)
    if entry is not None:
        # what a file declares hides what the language has under the name
        return entry.facts if isinstance(entry, DistributionEntry) else None
    return FAMILIES.get(name)


def is_damaged(name: str, scope: Scope) -> bool:
    """Whether a name may be a family whose declaration has a mistake."""
    return isinstance(scope.lookup(name), DamagedEntry)


def declared_in(family: str, scope: Scope) -> Iterator[DeclaredFamily]:
    """The families of the file that a family, or mixture, of this name is made of, each once."""
    family = truncated_name(family) or family
    outcome = computed_name(family)
    family = family if outcome is None else outcome[1]
    components = component_names(family) or (family,)
    gates = {one: gated_name(one) for one in components}
    for name in dict.fromkeys(one if gate is None else gate[1] for one, gate in gates.items()):
        entry = scope.lookup(name)
        if isinstance(entry, DistributionEntry):
            yield entry.family
