"""What the missing cells of a predictor are drawn from: a family on the numbers that the formula can take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qvr_core.data.formula.columns import Column
from qvr_core.data.formula.domains import Domain
from qvr_core.data.formula.families import moments


@dataclass(frozen=True)
class Imputed:
    """A family of location and scale; `mean` and `sd` are those of the known values on its scale."""

    column: Column
    family: str
    low: str
    """Its further arguments: where it is cut off."""
    word: str
    """What the names of its parameters begin with."""
    what: str
    """In words, what is Normal."""
    mean: float
    sd: float

    def observed(self, running: str, location: str, spread: str) -> str:
        """The step that says how the column is distributed."""
        draw = f"{self.family}({location}, {spread}{self.low})"
        return f"    observe {self.column.word}[{running}] <- {draw} [missing=impute]"


def imputed(column: Column, where: Domain) -> Imputed:
    """Positive numbers by their logarithm, numbers from 0 by a Normal cut off there, others by a Normal."""
    word = column.word
    if where is Domain.POSITIVE:
        return Imputed(column, "LogNormal", "", f"log_{word}", f"log({word})", *moments(np.log(column.numbers)))
    normal = moments(column.numbers)
    if where is Domain.NOT_NEGATIVE:
        return Imputed(column, "TruncatedNormal", ", low=0.0", word, word, *normal)
    return Imputed(column, "Normal", "", word, word, *normal)
