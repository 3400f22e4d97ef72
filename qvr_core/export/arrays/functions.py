"""Functions of arrays that no library has as the language means them: one text for all, which differ in few names."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TEXTS = {
    "concat": '''def concat(*parts):
    """Arrays joined along their last axis; numbers have an axis of one."""
    parts = [part[None] if part.ndim == 0 else part for part in parts]
    zeros = sum(LIBRARY.zeros_like(part[..., :1]) for part in parts)
    return LIBRARY.concatenate([part + zeros for part in parts], -1)
''',
    "clamp": '''def clamp(x, min=None, max=None):
    """x, cut off outside of two ends."""
    x = x if min is None else LIBRARY.maximum(x, LIBRARY.ASARRAY(min))
    return x if max is None else LIBRARY.minimum(x, LIBRARY.ASARRAY(max))
''',
    "diag": '''def diag(x):
    """The diagonal matrix of a vector, or the diagonal of a matrix."""
    return diag_embed(x) if x.ndim < 2 else DIAGONAL
''',
    "diag_embed": '''def diag_embed(x):
    """The diagonal matrix of a vector."""
    return LIBRARY.where(LIBRARY.eye(x.shape[-1]) > 0, x[..., None], 0.0)
''',
    "solve_lower": '''def solve_lower(lower, b, vector=None):
    """What a lower triangular matrix multiplies to b, a vector or a matrix."""
    vector = b.ndim < lower.ndim if vector is None else vector
    b = b[..., None] if vector else b
    found = SOLVED
    return found[..., 0] if vector else found
''',
    "cumulative_trapezoid": '''def cumulative_trapezoid(y, x):
    """The running integral of y over x by trapezoids, from 0."""
    areas = 0.5 * (y[..., 1:] + y[..., :-1]) * (x[..., 1:] - x[..., :-1])
    return LIBRARY.concatenate([LIBRARY.zeros_like(areas[..., :1]), LIBRARY.cumsum(areas, -1)], -1)
''',
}


def functions(library: str, *, array: str, diagonal: str, solved: str) -> Mapping[str, str]:
    """The helpers by name, as a library has them: under the name `library`, with its `asarray`, the diagonal of x, and
    what `lower` and a matrix b solve."""
    names = {"LIBRARY": library, "ASARRAY": array, "DIAGONAL": diagonal, "SOLVED": solved}
    return {name: re.sub("|".join(names), lambda found: names[found[0]], text) for name, text in _TEXTS.items()}
