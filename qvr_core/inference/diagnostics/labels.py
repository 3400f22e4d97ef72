"""Elements whose places chains exchange: the components of a mixture, which nothing tells apart (Stephens 2000)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST = 50
"""Elements of a site that are looked at."""


def exchanged(
    names: Sequence[str], draws: Sequence[Array], bad: Sequence[str], mixes: Callable[[Array], bool]
) -> str | None:
    """The site whose elements mix once each draw has them in ascending order, though `bad` ones of them do not; None
    where there is none.

    `draws`, each (chains, draws, numbers), belong in a row to the `names`, `mu[a]`; `mixes` says whether some do.
    """
    places: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        site, bracket, index = name.partition("[")
        if bracket and "," not in index:
            places.setdefault(site, []).append(at)
    ends = np.cumsum([part.shape[2] for part in draws])
    sites = {name.partition("[")[0] for name in bad if "[" in name}
    for site, own in places.items():
        if site not in sites or not 2 <= len(own) <= MOST or sum(names[at] in bad for at in own) < 2:
            continue
        of = int(np.searchsorted(ends, own[0], "right"))
        values = draws[of][:, :, np.asarray(own) - (ends[of] - draws[of].shape[2])].astype(np.float64)
        # probabilities go along with what they are of, and have no order of their own
        if np.ptp(values.sum(2)) < 1e-6 or not (np.diff(values, axis=2) < 0).any():
            continue
        if mixes(np.sort(values, axis=2)):
            return site
    return None


def order_advice(site: str, names: Sequence[str] = ()) -> str:
    """What to do about it; `names` are those of all numbers."""
    count = sum(name.partition("[")[0] == site for name in names)
    space = f"Ordered {count}" if count else "Ordered"
    return (
        f"the elements of `{site}` change places from chain to chain, as nothing tells them apart, and more draws do "
        f"not mend it: give an order to a vector of them whose places mean nothing else, `sample {site} : {space} <- …`"
    )
