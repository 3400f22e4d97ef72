"""The numbers that most people begin a prior with, which an editor offers where its arguments are still missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

USUAL: Mapping[str, Sequence[str]] = {
    "Normal": ("0.0", "1.0"),
    "HalfNormal": ("1.0",),
    "HalfCauchy": ("1.0",),
    "HalfStudentT": ("3.0", "1.0"),
    "StudentT": ("3.0", "0.0", "1.0"),
    "Cauchy": ("0.0", "1.0"),
    "Laplace": ("0.0", "1.0"),
    "Exponential": ("1.0",),
    "Gamma": ("2.0", "1.0"),
    "InverseGamma": ("3.0", "2.0"),
    "LogNormal": ("0.0", "1.0"),
    "Beta": ("2.0", "2.0"),
    "Uniform": ("0.0", "1.0"),
    "Dirichlet": ("1.0",),
    "LKJCholesky": ("2.0",),
    "LKJCorrelation": ("2.0",),
}
"""By family, for quantities of about one unit."""
