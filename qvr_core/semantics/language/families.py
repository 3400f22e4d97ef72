"""The closed table of families that the checker and the editor read.

A family is declared once, beside its density, in a file of `qvr_core/runtime/families`; those files need torch, so this
table is a copy of what they declare: `families.json`, which `python -m qvr_core.runtime.families.table` writes and a
test keeps fresh.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from qvr_core.semantics.language.family import Family, Parameter, Support
from qvr_core.semantics.language.family_heads import head_problem
from qvr_core.semantics.language.gates import gated, gated_name
from qvr_core.semantics.language.mixtures import component_names, mixture_of
from qvr_core.semantics.language.outcomes import computed, computed_name
from qvr_core.semantics.language.sum_to_zero import FACTS, SUM_TO_ZERO
from qvr_core.semantics.language.truncated import FLAT, flat, flat_on, truncated, truncated_name
from qvr_core.semantics.types.spaces import Space

TABLE = Path(__file__).with_name("families.json")


def family_of_row(row: dict[str, Any]) -> Family:
    """The family that a row of a table holds."""
    made: dict[str, Any] = {**row, "parameters": tuple(map(_parameter, row["parameters"]))}
    made["support"] = Support(**row["support"])
    if "bounded_by" in row:
        made["bounded_by"] = tuple(row["bounded_by"])
    return Family(**made)


def _parameter(row: dict[str, Any]) -> Parameter:
    made: dict[str, Any] = {**row, "aliases": tuple(row.get("aliases", ()))}
    made["alternatives"] = tuple((name, constraint) for name, constraint in row.get("alternatives", ()))
    return Parameter(**made)


class _Families(dict[str, Family]):
    """The families by name; a mixture, or a family on another space, is made when its name is asked for."""

    def __missing__(self, name: str) -> Family:
        if (inner := truncated_name(name)) is not None:
            return truncated(self[inner])
        if (outcome := computed_name(name)) is not None:
            return computed(outcome[0], self[outcome[1]])
        if (gate := gated_name(name)) is not None:
            return gated(gate[0], self[gate[1]])
        if (kind := flat_on(name)) is not None:
            return flat(kind, self[FLAT])
        if name == SUM_TO_ZERO:
            return FACTS
        components = component_names(name)
        if components is None:
            raise KeyError(name)
        return _mixture(components)


@lru_cache(maxsize=256)
def _mixture(components: tuple[str, ...]) -> Family:
    return mixture_of([FAMILIES[name] for name in components])


FAMILIES: Mapping[str, Family] = _Families(
    {row["name"]: family_of_row(row) for row in json.loads(TABLE.read_text(encoding="utf-8"))}
)
"""Every family by name, and every mixture of some under its own (`Mixture(Normal, StudentT)`)."""

TABULAR = "Categorical"
"""The family of a kernel without `~`: a table of probabilities."""


def heads_for(codomain: Space, families: Mapping[str, Family] = FAMILIES) -> tuple[str, ...]:
    """The families whose support allows `codomain`, in the table's order."""
    return tuple(family.name for family in families.values() if head_problem(family, codomain) is None)


def suggested_head(codomain: Space, instead_of: str | None = None) -> str | None:
    """The family to propose for a kernel into `codomain`: a common one where it fits, else the first that does."""
    fitting = [name for name in heads_for(codomain) if name != instead_of]
    return next((name for name in fitting if FAMILIES[name].common), next(iter(fitting), None))
