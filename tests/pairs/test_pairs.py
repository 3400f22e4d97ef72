"""Every pair of features that a program can have: its density is that of the interpreter, or the checker says no."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Collection, Sequence

import pytest

from qvr_core.dsl import CheckFailed, loads
from tests.generator.comparison import UNDEFINED, compared
from tests.generator.engines import Nuts, Prior, Torch
from tests.generator.machine import NODE, Machine
from tests.pairs.programs import FEATURES, LIMITS, Panel, features_of, written

REFUSED = {
    "impute, mask": "both say which cells count",
    "impute, weight": "both say which cells count",
    "impute, via": "both say which cells count",
    "impute, sum": "`y` may have missing cells of its own",
    "sum, marginalize": "reads them, which is a sum of its own",
    "sum, hidden chain": "reads them, which is a sum of its own",
    "right_censored, interval": "`interval` already says where each element lies",
    "left_censored, interval": "`interval` already says where each element lies",
    "marginalize, started": "the first elements of `y` are given",
    "hidden chain, started": "the first elements of `y` are given",
    **{
        f"impute, {limit}": "would have to be drawn within" if limit.startswith("truncate") else "is not missing"
        for limit in LIMITS
    },
}
"""What does not go together, and why."""
SEVERAL = (
    # ragged panels with autoregressive effects, missing cells and censored outcomes below a hidden chain
    "lengths, noncentred, chain, drop, right_censored, hidden chain, score",
    "lengths, noncentred, chain, drop, interval, hidden chain, marginalize, series",
    "lengths, noncentred, chain, impute, recursion, series, nested, score",
    "lengths, noncentred, chain, impute, hidden chain, series, score",
    "lengths, impute, marginalize, hidden chain, series, crossed, masked latent, chain",
    "lengths, noncentred, chain, sum, drop, mask, weight, crossed",
    "lengths, weighted latent, chain, sum, left_censored, truncate_upper, series",
    "lengths, started, interval, truncate_lower, drop, recursion, masked latent, chain, noncentred",
    "lengths, index, noncentred, chain, hidden chain, drop, truncate_lower, left_censored, right_censored",
    "via, noncentred, nested, marginalize, drop, weight, right_censored, truncate_lower",
)
NOT_THERE = {frozenset(map(str.strip, pair.split(","))) for pair in REFUSED}


def _pairs(first: str) -> list[frozenset[str]]:
    """A feature alone, and beside each that stands behind it in the list."""
    at = FEATURES.index(first)
    return [one for one in (frozenset((first, other)) for other in FEATURES[at:]) if written(one)]


def _differences(programs: Sequence[Collection[str]], *engines: Torch | Nuts | Prior | Machine) -> list[str]:
    found: list[str] = []
    for features in programs:
        case = Panel(features).case()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong = [one for engine in engines if (one := compared(case, engine)) is not None]
        # a draw of what data pad with 0 is infinite, and no number to compare
        wrong = [one for one in wrong if (one.engine, one.kind) != ("prior", UNDEFINED)]
        found += [f"{', '.join(features)}, {one.engine}: {one.words}\n{case.text}{case.data}" for one in wrong]
    return found


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.sampled(3)
def test_pairs_say_what_is_computed_element_by_element(feature: str) -> None:
    programs = [pair for pair in _pairs(feature) if pair not in NOT_THERE]
    found = _differences(programs, Torch(), Nuts(), Prior())
    assert not found, "\n".join(found)


@pytest.mark.parametrize("pair", REFUSED)
def test_what_does_not_go_together_is_told(pair: str) -> None:
    with pytest.raises(CheckFailed) as caught:
        loads(Panel(features_of(pair)).case().text)
    assert REFUSED[pair] in str(caught.value)


@pytest.mark.parametrize("features", SEVERAL)
def test_many_features_together_say_what_is_computed_element_by_element(features: str) -> None:
    found = _differences([features_of(features)], Torch(), Nuts(), Prior())
    assert not found, "\n".join(found)


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
@pytest.mark.long
def test_machine_code_of_many_features_is_that_of_torch() -> None:
    machine = Machine()
    found = _differences([features_of(one) for one in SEVERAL], machine)
    assert not found, "\n".join(found)
    assert not machine.lacking


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="Node is not installed")
def test_machine_code_of_all_pairs_is_that_of_torch() -> None:
    machine = Machine()
    pairs = [pair for feature in FEATURES for pair in _pairs(feature) if pair not in NOT_THERE]
    found = _differences(pairs, machine)
    assert not found, "\n".join(found)
    assert not machine.lacking


@pytest.mark.slow
def test_three_features_say_what_is_computed_element_by_element() -> None:
    """A value far out in a tail, of which the interpreter has no digits, is no difference; few are."""
    three = [one for one in itertools.combinations(FEATURES, 3) if written(one)]
    three = [one for one in three if not any(frozenset(pair) in NOT_THERE for pair in itertools.combinations(one, 2))]
    wrong, undefined = [], 0
    for one in three:
        case = Panel(one).case()
        for engine in (Torch(), Nuts()):
            found = compared(case, engine)
            if found is not None and found.kind == UNDEFINED:
                undefined += 1
            elif found is not None and not found.kind.startswith("refused"):
                wrong.append(f"{', '.join(one)}, {found.engine}: {found.words}\n{case.text}")
    assert not wrong, "\n".join(wrong)
    assert undefined < 0.01 * len(three)
