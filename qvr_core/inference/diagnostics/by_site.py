"""R-hat and effective sizes of stored draws, each computed once: the table, the summary and the checks of a fit ask for
those of the same numbers, and computing them takes longer than all else that these do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.inference.diagnostics.convergence import Mixing, mixing

Known = tuple[NDArray[np.bool_], Mixing]


@dataclass(slots=True)
class MixingBySite:
    """Of draws (chains, draws, …) by site."""

    draws: Mapping[str, NDArray[Any]]
    _found: dict[str, Known] = field(default_factory=dict[str, Known])

    def of(self, site: str, elements: NDArray[np.int64]) -> Mixing:
        """That of elements of a site, by their places in a row."""
        every = self.draws[site]
        every = every.reshape(*every.shape[:2], -1)
        if site not in self._found:
            unknown = (np.full(every.shape[2], np.nan) for _ in fields(Mixing))
            self._found[site] = np.zeros(every.shape[2], dtype=bool), Mixing(*unknown)
        known, found = self._found[site]
        if len(wanted := np.unique(elements[~known[elements]])):
            made = mixing(every, wanted)
            for one in fields(Mixing):
                getattr(found, one.name)[wanted] = getattr(made, one.name)
            known[wanted] = True
        return Mixing(*(getattr(found, one.name)[elements] for one in fields(Mixing)))


def joined(parts: list[Mixing]) -> Mixing:
    """Those of several sites in a row."""
    return Mixing(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Mixing)))
