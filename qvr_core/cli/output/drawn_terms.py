"""Terms that were drawn, as text: a row's commonest one and how often it came, or all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from qvr_core.semantics.terms.written import term_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qvr_core.runs.worker.prediction import Drawn
    from qvr_core.semantics.types.spaces import Terms


def term_texts(tables: NDArray[Any], space: Terms) -> NDArray[Any]:
    """S-expressions (…) of tables (…, nodes, columns)."""
    known: dict[bytes, str] = {}
    found: list[str] = []
    for table in tables.reshape(-1, *tables.shape[-2:]):
        key = table.tobytes()
        if key not in known:
            known[key] = term_text(table.tolist(), space)
        found.append(known[key])
    return np.array(found, dtype=str).reshape(tables.shape[:-2])


def all_texts(drawn: Drawn) -> dict[str, NDArray[Any]]:
    """{name: (draws, …)} of the steps that draw terms."""
    return {
        name: term_texts(drawn.values[name].detach().cpu().numpy(), space)
        for name, space in drawn.terms.items()
        if name in drawn.values
    }


def commonest(drawn: Drawn) -> Iterator[dict[str, Any]]:
    """The term that came most often at each place, by its label, and its share of the draws."""
    for name, texts in all_texts(drawn).items():
        for at in np.ndindex(texts.shape[1:]):
            texts_here: list[str] = texts[:, *at].tolist()
            ((term, count),) = Counter(texts_here).most_common(1)
            label = f"{name}[{', '.join(map(str, at))}]" if at else name
            yield {"name": label, "term": term, "share": count / len(texts)}
