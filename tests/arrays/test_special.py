"""Special functions on numpy are scipy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as scipy_special

from qvr_core.arrays import special

X = np.concatenate([np.linspace(-9.7, 9.9, 57), [0.05, 25.0, 31.0, 120.0, 4e5]])
POSITIVE = np.abs(X) + 1e-3
SHARES = np.array([1e-300, 1e-20, 1e-5, 0.01, 0.3, 0.5, 0.7, 0.99, 1.0 - 1e-12])


@pytest.mark.parametrize(
    ("name", "wanted", "at"),
    [
        ("lgamma", scipy_special.gammaln, X),
        ("digamma", scipy_special.digamma, X + 0.0131),
        ("trigamma", lambda x: scipy_special.polygamma(1, x), POSITIVE),
        ("log_ndtr", scipy_special.log_ndtr, np.concatenate([X[:57] * 4.0, X[:57]])),
        ("erfc", scipy_special.erfc, X[:57]),
        ("i0e", scipy_special.i0e, X),
        ("i1e", scipy_special.i1e, X),
        ("ndtri", scipy_special.ndtri, SHARES),
    ],
)
def test_special_functions(name: str, wanted: object, at: np.ndarray) -> None:
    found = getattr(special, name)(at)
    np.testing.assert_allclose(found, wanted(at), rtol=2e-13, atol=1e-15)  # type: ignore[operator]


def test_ends() -> None:
    assert special.lgamma(np.array([0.0, -2.0, np.inf])).tolist() == [np.inf] * 3
    assert special.log_ndtr(np.array([-np.inf, np.inf])).tolist() == [-np.inf, 0.0]
    assert special.ndtri(np.array([0.0, 0.5, 1.0])).tolist() == [-np.inf, 0.0, np.inf]
    assert np.isnan(special.ndtri(np.array([-0.1, np.nan, 1.1]))).all()
