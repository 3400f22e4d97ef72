"""What is said of draws: each thing once, and the same in Python as by `qvr check-fit`."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from qvr_core.analysis import analyse
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.diagnostics.thresholds import good_k
from qvr_core.inference.mcmc import MCMCResult, joined
from qvr_core.inference.mcmc.warnings import energy_warnings, mixing_warnings
from qvr_core.runs.evaluation.fit_checks import Source, fit_checks
from qvr_core.runs.record.config import RunConfig
from qvr_core.runtime.programs.labelled.axes import Axis
from tests.inference import posteriors


def drawn(samples: dict[str, Tensor], diverging: int = 0) -> MCMCResult:
    """A result of given draws, of which so many diverged."""
    chains, draws = next(iter(samples.values())).shape[:2]
    each = torch.zeros(chains, draws)
    bad = torch.arange(chains * draws).reshape(chains, draws) < diverging
    return MCMCResult(samples, each.mean(1), bad.sum(1), torch.ones(chains), each, each, bad, each, each)


def test_chains_that_disagree_and_draws_that_hang_together_are_reported_once() -> None:
    torch.manual_seed(0)
    good = torch.randn(4, 200)
    assert drawn({"mu": good, "still": torch.ones(4, 200)}).warnings == []
    apart = torch.randn(4, 200, 2, 3)
    apart[1, :, 1, 2] += 3
    apart[1, :, 0, 1] += 1
    (warning,) = drawn({"mu": good, "net.weight": apart}).warnings
    assert warning.startswith("the chains have not mixed: R-hat of `net.weight[1, 2]` is 1.") and "800 draws" in warning
    assert "and 1 more are like it" in warning and "more warm-up" in warning
    walk = torch.zeros(4, 200)
    for at in range(1, 200):
        walk[:, at] = 0.9 * walk[:, at - 1] + torch.randn(4)
    (warning,) = drawn({"mu": good, "slow": walk}).warnings
    assert "of `slow`" in warning and "more draws" in warning


UNTRUSTED = "the posterior is not to be trusted"


def walks(rho: float, draws: int) -> Tensor:
    """Four chains (4, draws) of an autoregression."""
    walk = torch.zeros(4, draws)
    for at in range(1, draws):
        walk[:, at] = rho * walk[:, at - 1] + torch.randn(4)
    return walk


def test_each_sentence_says_what_is_wrong_of_which_number_and_what_to_do() -> None:
    torch.manual_seed(0)
    apart, still, exchanged = torch.randn(4, 200, 2), torch.randn(4, 200), 0.1 * torch.randn(4, 200, 2)
    apart[1] += 3
    still[2] = 1.5
    exchanged[:2, :, 0] += 3
    exchanged[2:, :, 1] += 3
    several = torch.stack([walks(0.7, 300), walks(0.6, 300)], -1)
    for draws, told in (
        (torch.randn(1, 3), "3 draws a chain are too few to tell: take more draws"),
        (still, rf"chain 2 stands still: 199 of 199 transitions moved nothing; {UNTRUSTED}: take more warm-up, or "
                "another seed"),
        (exchanged, r"the chains have not mixed: the elements of `x` change places .* `sample x : Ordered <- …`"),
        (apart, r"the chains have not mixed: R-hat of `x\[[01]\]` is 1\.\d\d \(above 1\.0\d\), and 1 more are like it, "
                rf"of 800 draws; {UNTRUSTED} yet: take more warm-up and more draws"),
        (several, r"few effective draws: the bulk ESS of `x\[0\]` is \d\d\d of 1,200 draws, less than 400, and 1 more "
                  r"are like it; take more draws \(\d00 a chain\), or more warm-up"),
        (torch.randn(1, 400), "one chain cannot disagree with another: take num_chains = 4"),
    ):  # fmt: skip
        (warning,) = mixing_warnings({"x": draws})
        assert re.fullmatch(told, warning), warning
    # of two that are few the fewer is told, and a number that mixes is not
    (warning,) = mixing_warnings({"good": torch.randn(4, 300), "few": walks(0.55, 300), "fewer": walks(0.75, 300)})
    assert "ESS of `fewer`" in warning


def test_energies_that_hardly_move_are_told_with_what_to_do() -> None:
    torch.manual_seed(0)
    slow = torch.linspace(0.0, 1.0, 200).repeat(4, 1)
    (warning,) = energy_warnings(slow)
    assert warning.startswith("E-BFMI is low: ") and "(below 0.3); the tails are heavier" in warning
    assert "more warm-up, or write scales `[noncentred]`" in warning
    assert energy_warnings(torch.randn(4, 200)) == [] == energy_warnings(None)


def test_of_many_numbers_evenly_spread_ones_are_looked_at_under_their_own_names() -> None:
    torch.manual_seed(0)
    draws = torch.randn(4, 200, 6)
    for at, told in ((4, ["x[4]"]), (3, [])):
        apart = draws.clone()
        apart[1, :, at] += 3.0
        warnings = mixing_warnings({"x": apart}, diagnosed=draws.numel() // 2)
        assert [one.partition("R-hat of `")[2].partition("`")[0] for one in warnings] == told
    absent = draws.clone()
    absent[1, :, 4] += 3.0
    absent[:, :, 1:3] = torch.nan
    (warning,) = mixing_warnings({"x": absent})
    assert "`x[4]`" in warning and "more are like it" not in warning


def test_two_chains_disagree_and_elements_have_the_names_of_their_axis() -> None:
    torch.manual_seed(0)
    apart = torch.randn(2, 400, 3)
    apart[1, :, 2] += 3.0
    (warning,) = mixing_warnings({"x": apart}, axes={"x": (Axis("Floor", ("cellar", "ground", "first")),)})
    assert warning.startswith("the chains have not mixed: R-hat of `x[first]` is ")
    assert warning.endswith(f", of 800 draws; {UNTRUSTED} yet: take more warm-up and more draws")
    assert mixing_warnings({}) == []


def test_divergences_of_all_chains_are_one_line() -> None:
    one, other = drawn({"mu": torch.zeros(1, 50)}, 3), drawn({"mu": torch.zeros(1, 50)}, 2)
    told = [text for text in joined([one, other]).warnings if "diverged" in text]
    assert told == ["5 of 100 transitions diverged: raise target_accept"]


def test_a10_few_draws_are_told_as_few_draws() -> None:
    """Never as chains that have not mixed; those of one chain, as what one chain cannot tell."""
    torch.manual_seed(0)
    for draws, chains, words in [
        (3, 1, "3 draws a chain are too few to tell"),
        (10, 2, "10 draws a chain are too few to tell"),
        (50, 2, "few effective draws"),
        (90, 1, "few effective draws"),
        (90, 4, "few effective draws"),
        (400, 1, "one chain cannot disagree with another"),
    ]:
        (warning,) = drawn({"z": torch.randn(chains, draws, 10)}).warnings
        assert warning.startswith(words) and "take" in warning


@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_a3_python_and_check_fit_give_one_verdict(shift: float) -> None:
    """R-hat of some 1.015, of which Python was silent: the same checks pass and fail in both."""
    generator = torch.Generator().manual_seed(1)
    draws = torch.randn(4, 1000, generator=generator)
    draws[0] += shift
    result = replace(drawn({"mu": draws}), energy=torch.randn(4, 1000, generator=generator).cumsum(1))
    told = {one.name: (one.passed, one.text) for one in fit_checks(
        result.to_arviz(), RunConfig(algorithm="nuts"), Source(None, analyse(""), "")
    )}  # fmt: skip
    own = {one.name: (one.passed, one.text) for one in result.checks}
    assert {name: told[name] for name in own} == own and {"R-hat", "tail ESS", "MCSE", "E-BFMI"} <= set(own)
    assert own["R-hat"][0] is (shift == 0.0) and not own["E-BFMI"][0]
    assert any("R-hat of `mu`" in warning for warning in result.warnings) is (shift > 0)
    assert any("E-BFMI is low" in warning for warning in result.warnings)


def test_a3_python_tells_pareto_k() -> None:
    result = MCMC(NUTSKernel(), 100, 100, 2, seed=0).run(
        loads(posteriors.NORMAL_NORMAL).morphism, None, {"y": torch.randn(8)}
    )
    (one,) = [check for check in result.checks if check.name == "Pareto k"]
    assert one.value is not None and one.limit == good_k(200) and one.passed is (one.value <= one.limit)
    assert "8 observations are" in one.text
