"""Exports of programs with every pair of features have our log density, or are refused for one of a few reasons."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from scripts.targets import PYTHON, STAN_PYTHON
from tests.export.pairs import furthest, write_pair
from tests.pairs.programs import FEATURES, features_of, written
from tests.pairs.test_pairs import NOT_THERE, SEVERAL
from tests.patience import HANG

EVALUATORS = Path(__file__).with_name("evaluators")
PAIRS = [
    pair
    for pair in (frozenset(one) for one in itertools.combinations_with_replacement(FEATURES, 2))
    if written(pair) and pair not in NOT_THERE
]
REFUSED = (
    "a recursion over several indices",
    "`[missing=impute]` of a discrete family",
    "only `observe` and `let` are exported below",
    "the option `via`",
)
"""What exports do not say yet."""
IN_STAN = (
    "drop",
    "drop, series",
    "lengths, drop, hidden chain, right_censored",
    "lengths, noncentred, chain",
    "lengths, interval, drop, started",
    "started, truncate_lower, interval",
    "drop, marginalize, lengths",
    "lengths, impute, started",
    "lengths, noncentred, chain, impute, series, nested, score",
    "lengths, noncentred, chain, impute, hidden chain, series",
    "impute, marginalize, crossed",
    "series, left_censored, hidden chain",
)
COMPARED = 240
"""So many of the pairs at least."""


def _far(folder: Path, target: str, programs: Sequence[frozenset[str]], python: Path) -> dict[str, float]:
    """How far densities of the programs are from ours, by their features."""
    torch.set_default_dtype(torch.float64)
    names = {f"pair{at}": features for at, features in enumerate(programs)}
    refused = {name: write_pair(folder, name, target, features) for name, features in names.items()}
    told = [words for words in refused.values() if words is not None]
    assert all(any(reason in words for reason in REFUSED) for words in told), told
    done = subprocess.run(
        [str(python), str(EVALUATORS / f"evaluate_{target}.py"), str(folder)],
        capture_output=True, text=True, timeout=12 * HANG, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found = furthest(json.loads(done.stdout), folder)
    assert set(found) == {name for name, words in refused.items() if words is None}
    return {", ".join(sorted(names[name])): far for name, far in found.items()}


@pytest.mark.statistical
def test_torch_exports_of_pairs_have_our_density(tmp_path: Path) -> None:
    far = _far(tmp_path, "torch", PAIRS, Path(sys.executable))
    assert len(far) >= COMPARED
    assert {name: one for name, one in far.items() if not one <= 1e-9} == {}


@pytest.mark.targets
@pytest.mark.parametrize("target", ["numpyro", "pymc"])
def test_exports_of_pairs_have_our_density(target: str, tmp_path: Path) -> None:
    far = _far(tmp_path, target, PAIRS, PYTHON)
    assert len(far) >= COMPARED
    assert {name: one for name, one in far.items() if not one <= 1e-6} == {}


@pytest.mark.targets
def test_stan_exports_of_several_features_have_our_density(tmp_path: Path) -> None:
    programs = [features_of(one) for one in (*IN_STAN, SEVERAL[0])]
    far = _far(tmp_path, "stan", programs, STAN_PYTHON)
    assert len(far) >= len(IN_STAN)
    assert {name: one for name, one in far.items() if not one <= 1e-6} == {}
