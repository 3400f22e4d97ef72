"""Bases of functions in exports: one text for all libraries of arrays, which differ in three names."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TEXTS = {
    "bspline": '''def bspline(x, knots, degree):
    """The B-splines on knots whose ends stand there once, a column for each."""
    whole = [*knots[:1] * degree, *knots, *knots[-1:] * degree]
    columns = []
    for low, high in zip(whole[:-1], whole[1:]):
        upto = x <= high if high == whole[-1] else x < high
        columns.append(WHERE((low <= x) & upto, 1.0, 0.0) if low < high else 0.0 * x)
    for order in range(1, degree + 1):
        for j in range(len(columns) - 1):
            rise, fall = whole[j + order] - whole[j], whole[j + order + 1] - whole[j + 1]
            up = (x - whole[j]) / rise * columns[j] if rise else 0.0
            down = (whole[j + order + 1] - x) / fall * columns[j + 1] if fall else 0.0
            columns[j] = up + down
        columns.pop()
    return LIBRARY.stack(columns, -1)
''',
    "hsgp": '''def hsgp(x, m, c):
    """The basis of a Gaussian process on c times the range of x, a column for each of m functions."""
    middle, half = 0.5 * (x.min() + x.max()), 0.5 * c * (x.max() - x.min())
    return LIBRARY.sin(hsgp_frequencies(x, m, c) * (x[..., None] - middle + half)) / half**0.5
''',
    "hsgp_frequencies": '''def hsgp_frequencies(x, m, c):
    """The frequency of each function of the basis."""
    return LIBRARY.arange(1, m + 1) * PI / (c * (x.max() - x.min()))
''',
}


def bases(library: str, *, where: str, pi: str) -> Mapping[str, str]:
    """The helpers by name, as a library of arrays has them: under the name `library`, with its choice and its pi."""
    names = {"LIBRARY": library, "WHERE": where, "PI": pi}
    return {name: re.sub("|".join(names), lambda found: names[found[0]], text) for name, text in _TEXTS.items()}
