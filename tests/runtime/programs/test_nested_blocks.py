"""Blocks in blocks: what is drawn of them, what is known of the outer state, cells that lack, too many values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from qvr_core import dsl
from qvr_core.inference import Predictive
from qvr_core.runtime.values.errors import InputProblem

HEAD = """\
object Group : FinSet 2
object Row : FinSet 3
object Time : FinSet 2
object State : FinSet 2
program p : Row -> Row
    data group : Row -> Group
    data P : State * State
    sample m <- Normal(0.0, 1.0)
"""
ROWS = """\
    marginalize z[g : Group] : State <- Categorical([0.3, 0.7])
        marginalize c[i : Row] : State <- Categorical(P[z[group[i]]])
            observe y[i : Row] <- Normal(m + c[i] + 10.0 * z[group[i]], 0.5) OPTIONS
"""
CHAINS = """\
    marginalize z[g : Group] : State <- Categorical([0.3, 0.7])
        marginalize c[i : Row, t : Time] : State <- Categorical(P[c[i, t - 1]]) from Categorical(P[z[group[i]]])
            observe y[i : Row, t : Time] <- Normal(m + 5.0 * c[i, t] + 20.0 * z[group[i]], 0.01)
"""
TABLE = np.array([[0.9, 0.1], [0.25, 0.75]])
GROUP = [1, 0, 1]
GIVEN = {"group": torch.tensor(GROUP), "P": torch.tensor(TABLE)}

pytestmark = pytest.mark.usefixtures("double_precision")


def loaded(block: str, options: str = "") -> Any:
    return dsl.loads(f"{HEAD}{block.replace('OPTIONS', options)}    return m\nexport p\n").morphism


def by_hand(y: list[float], m: float, counted: list[bool]) -> tuple[float, list[list[float]]]:
    """The log density of y, and the probabilities of z in each group."""
    total, chances = stats.norm.logpdf(m), []
    for group in (0, 1):
        each = []
        for z, weight in ((0, 0.3), (1, 0.7)):
            term = np.log(weight)
            for i in np.flatnonzero(np.equal(GROUP, group)):
                seen = [stats.norm.logpdf(y[i], m + c + 10.0 * z, 0.5) if counted[i] else 0.0 for c in (0, 1)]
                term += np.logaddexp.reduce(np.log(TABLE[z]) + seen)
            each.append(term)
        total += np.logaddexp.reduce(each)
        chances.append((np.exp(each) / np.exp(each).sum()).tolist())
    return float(total), chances


def test_draws_are_of_the_state_of_their_group() -> None:
    """Rows of one group share its state, and each has one of its own beside it: z and c are read off each value."""
    torch.manual_seed(1)
    drawn = (
        Predictive(loaded(ROWS), posterior_samples={"m": torch.zeros(4000)})(None, GIVEN)["y"].numpy().reshape(-1, 3)
    )
    z = (drawn > 5.0).astype(int)
    assert (z[:, 0] == z[:, 2]).all()
    assert z[:, 0].mean() == pytest.approx(0.7, abs=0.03)
    assert abs(np.corrcoef(z[:, 0], z[:, 1])[0, 1]) < 0.06
    for state in (0, 1):
        own = drawn[z[:, 0] == state, 0] - 10.0 * state
        mean = TABLE[state, 1]
        assert own.mean() == pytest.approx(mean, abs=4.0 * np.sqrt((mean * (1 - mean) + 0.25) / len(own)))


def test_paths_are_drawn_in_the_state_of_their_group() -> None:
    torch.manual_seed(2)
    drawn = Predictive(loaded(CHAINS), posterior_samples={"m": torch.zeros(4000)})(None, GIVEN)["y"]
    z, c = np.divmod(np.round(drawn.numpy().reshape(-1, 3, 2) / 5.0).astype(int), 4)
    assert (z[..., 0] == z[..., 1]).all()
    assert (z[:, 0] == z[:, 2]).all()
    for state in (0, 1):
        assert c[z[:, 0, 0] == state, 0, 0].mean() == pytest.approx(TABLE[state, 1], abs=0.05)
    for before in (0, 1):
        assert c[c[:, 1, 0] == before, 1, 1].mean() == pytest.approx(TABLE[before, 1], abs=0.05)


@pytest.mark.parametrize(
    ("options", "more", "counted"),
    [("", {}, [True, True, True]), ("[mask=seen]", {"seen": torch.tensor([1, 1, 0])}, [True, True, False])],
)
def test_what_is_known_of_the_outer_state(options: str, more: dict[str, Any], counted: list[bool]) -> None:
    y = [4.0, 6.5, 9.0]
    model, given = loaded(ROWS, options), {**GIVEN, "y": torch.tensor(y), **more}
    density, chances = by_hand(y, 0.4, counted)
    found = model.log_joint(None, {"m": torch.tensor(0.4), **given}).item()
    assert found == pytest.approx(density, abs=1e-9)
    states, _ = Predictive(model, posterior_samples={"m": torch.tensor([0.4])}).states(None, given)
    np.testing.assert_allclose(states["z"].numpy().reshape(2, 2), chances, atol=1e-9)


def test_cells_that_lack_are_left_out() -> None:
    y = [4.0, float("nan"), 9.0]
    found = loaded(ROWS, "[missing=drop]").log_joint(None, {"m": torch.tensor(0.4), **GIVEN, "y": torch.tensor(y)})
    assert found.item() == pytest.approx(by_hand(y, 0.4, [True, False, True])[0], abs=1e-9)


def test_too_many_values_together_are_an_error_of_the_data() -> None:
    block = """\
    data top : Nat
    marginalize n[g : Group] <- DiscreteUniform(0, top)
        marginalize k[i : Row] <- DiscreteUniform(0, top)
            observe y[i : Row] <- Normal(m + k[i] + n[group[i]], 1.0)
"""
    model = loaded(block)
    given = {"m": torch.tensor(0.4), **GIVEN, "y": torch.tensor([1.0, 2.0, 3.0])}
    assert np.isfinite(model.log_joint(None, {**given, "top": torch.tensor(63)}).item())
    with pytest.raises(InputProblem, match="at most 4,096 values to sum over, found 65 × 65 of `n` and `k`"):
        model.log_joint(None, {**given, "top": torch.tensor(64)})
