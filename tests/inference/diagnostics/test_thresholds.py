"""Every threshold of trust is written once (invariant 14), and its figures are what they are said to be (A3, A10)."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from qvr_core.inference.diagnostics import thresholds
from qvr_core.inference.diagnostics.convergence import mixing
from qvr_core.inference.diagnostics.verdicts import mixing_of, r_hat_is_large

ROOT = Path(__file__).resolve().parents[3]
FIGURE = r"r_?hat|ess_(bulk|tail)|bfmi|pareto|mcse|\.ess"
WRITTEN = (
    re.compile(rf"({FIGURE})[^\n=<>]*(<|>)=?\s*\(?\d*\.?\d", re.IGNORECASE),
    re.compile(
        rf"^\s*(export )?(const )?\w*({FIGURE}|low_energy|coarse)\w*\s*=\s*\d*\.?\d+", re.IGNORECASE | re.MULTILINE
    ),
)


def test_a3_every_threshold_of_trust_is_written_once() -> None:
    folders = [("qvr_core", "*.py"), ("qvr_lsp", "*.py"), ("qvr", "*.py"), ("vscode-extension/src", "*.ts")]
    folders += [("vscode-extension/webviews", "*.ts"), ("playground/src", "*.ts")]
    table = Path(thresholds.__file__)
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0].strip()}"
        for folder, pattern in folders
        for path in (ROOT / folder).rglob(pattern)
        if path != table
        for rule in WRITTEN
        for found in rule.finditer(path.read_text(encoding="utf-8"))
        if "node_modules" not in path.parts
    ]
    assert not wrong, "\n".join(wrong)
    assert WRITTEN[1].search(table.read_text(encoding="utf-8")), "the rule finds nothing where there is something"


@pytest.mark.parametrize("halves", [2, 4, 8, 16])
@pytest.mark.parametrize("level", [0.5, 0.1, 0.005, 1e-6])
def test_a10_a_limit_of_r_hat_rests_on_chi_squared(halves: int, level: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "R_HAT_LEVEL", 2 * level)
    share = float(stats.chi2.isf(level, halves - 1)) / (halves - 1)
    expected = np.clip(np.sqrt(1 + (1.5 * share - 1) / 100), thresholds.R_HAT, thresholds.R_HAT_EXCUSED)
    assert thresholds.r_hat_limit(halves, 100, 1.5, 1) == pytest.approx(float(expected), rel=1e-12)


def test_a10_the_limit_of_r_hat_knows_its_own_monte_carlo_error() -> None:
    """Chains that have mixed, whose draws hang together so much that R-hat is above 1.01 in most seeds: few fail.
    Chains that lie apart by as much as their own error does not explain fail all the same."""
    above = failed = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        draws = generator.normal(size=(4, 700, 12))
        for at in range(1, 700):
            draws[:, at] = 0.6 * draws[:, at - 1] + 0.8 * draws[:, at]
        draws = draws[:, 200:]
        verdict = next(one for one in mixing_of(list("abcdefghijkl"), [draws]).verdicts if one.name == "R-hat")
        above += (verdict.value or 0) > thresholds.R_HAT
        failed += not verdict.passed
    assert above > 20 and failed <= 2

    apart = np.random.default_rng(0).normal(size=(4, 500, 1)) + np.array([0.0, 0.0, 0.0, 0.6])[:, None, None]
    found = mixing(apart)
    assert r_hat_is_large(apart.shape, found.r_hat, found.inefficiency, 1).all()
    walk = np.random.default_rng(0).normal(size=(4, 500, 1)).cumsum(1)
    assert not next(one for one in mixing_of(["w"], [walk]).verdicts if one.name == "R-hat").passed
    assert thresholds.r_hat_limit(8, 250, 1e6, 1) == thresholds.R_HAT_EXCUSED
