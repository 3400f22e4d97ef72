"""Which engine evaluates the density of chains, by a count of what each would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.models import SCHOOLS
from qvr_core.codegen import store
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, HMCKernel, NUTSKernel
from qvr_core.inference.mcmc.engines import Choice, least_draws
from qvr_core.inference.mcmc.potential import potential_of
from tests.programs.programs import data_of, prepared


def chosen(draws: int, text: str = SCHOOLS.text, kernel: NUTSKernel | HMCKernel | None = None) -> Choice:
    asked = MCMC(kernel or NUTSKernel(), draws, draws, 2, seed=0)
    return asked.choose(potential_of(loads(text).morphism, None, SCHOOLS.data()))


def test_dear_densities_are_compiled_for_fewer_draws() -> None:
    draws = [least_draws(cost, NUTSKernel()) for cost in (1, 100, 1_000, 10_000, 1_000_000)]
    assert draws == sorted(draws, reverse=True) and draws[0] == 500 and draws[2] < 200 and draws[3] < 100
    assert least_draws(1_000, HMCKernel(num_steps=200)) < draws[2] < least_draws(1_000, HMCKernel(num_steps=1))


def test_a_short_run_has_the_same_engine_whatever_was_compiled_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(store.CACHE_VARIABLE, str(tmp_path))
    before = chosen(20)
    assert chosen(250).engine == "compiled"
    after = chosen(20)
    assert before.engine == after.engine == "replay"
    assert before.why == after.why == "40 draws a chain, and 500 are worth compiling"
    assert before.note is None


def test_few_draws_of_a_hidden_markov_model_are_compiled() -> None:
    potential = potential_of(prepared("hidden_markov").model, None, data_of("hidden_markov"))
    asked = {draws: MCMC(NUTSKernel(), draws, draws, 2, seed=0).choose(potential) for draws in (20, 100)}
    assert [choice.engine for choice in asked.values()] == ["replay", "compiled"]
    assert (asked[100].why or "").startswith("200 draws a chain, and ")
