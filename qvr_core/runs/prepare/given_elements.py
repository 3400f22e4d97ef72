"""Elements of what is observed that a run is given and does not score: those that reads of earlier ones begin at."""

from __future__ import annotations

from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import ObserveModel
from qvr_core.semantics.types.walk import sites


def given_elements(program: Program) -> str:
    """`the first 4 elements of y are given and not scored`; empty where all are scored."""
    lags: dict[int, list[str]] = {}
    for site in sites(program.steps, ObserveModel):
        chain = site.chain
        lag = 0 if chain is None else chain.indices[chain.at].lag
        if chain is not None and lag and chain.start is None:
            of = " in each series" if len(chain.indices) > 1 else ""
            lags.setdefault(lag, []).append(f"`{site.name}`{of}")
    return "; ".join(
        f"the first {'element' if lag == 1 else f'{lag} elements'} of {' and '.join(names)} "
        f"{'is' if lag == 1 and len(names) == 1 else 'are'} given and not scored"
        for lag, names in sorted(lags.items())
    )
