"""Chains in a process of their own: what they keep when they are stopped, and what they say at their end."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from pathlib import Path

import pytest
import torch

from qvr_core.codegen.llvm import tell
from qvr_core.inference.mcmc import MCMCResult
from qvr_core.inference.mcmc.engines import Choice
from qvr_core.runs.evaluation.posterior_table import chain_table
from qvr_core.runs.fit import nuts, waiting_messages
from qvr_core.runs.fit.chains import together
from qvr_core.runs.record.exports import export_csv
from qvr_core.runs.record.protocol import (
    Cancelled,
    Event,
    Finished,
    Message,
    Progress,
    Started,
)
from qvr_core.runs.record.store import RunDirectory
from tests.patience import HANG
from tests.runs.jobs import LATENTS, make_job, start, watched

pytestmark = pytest.mark.usefixtures("patient")


async def test_cancelled_chains_keep_their_draws(tmp_path: Path) -> None:
    job = make_job(
        tmp_path, LATENTS, algorithm="nuts", data="synthetic", warmup=20, samples=1_000_000, chains=2, max_tree_depth=4
    )
    sampling = asyncio.Event()
    events: list[Event] = []

    def take(event: Event) -> None:
        events.append(event)
        if isinstance(event, Progress) and event.step > 40:
            sampling.set()

    worker = await start(job, take)
    await asyncio.wait_for(sampling.wait(), HANG)
    last = await worker.cancel()
    assert isinstance(last, Cancelled), last
    assert {row.name for row in last.posterior} >= {"mu", "tau"}
    assert any(isinstance(event, Message) and "of 1000000 draws each" in event.text for event in events)
    run = RunDirectory.of(job)
    assert run.status() == "cancelled"
    export_csv(run, tmp_path / "draws.csv")
    rows = (tmp_path / "draws.csv").read_text().splitlines()
    assert rows[0].startswith("chain,draw,mu,tau,z[0]") and len(rows) > 3
    assert len(rows) % 2 == 1  # both chains have as many


async def test_chains_at_their_time_limit_say_what_they_have(tmp_path: Path) -> None:
    job = make_job(
        tmp_path, LATENTS, algorithm="nuts", data="synthetic", warmup=5, samples=1_000_000, chains=2,
        max_tree_depth=2, time_limit=2.0, engine="plain",
    )  # fmt: skip
    _, last = await watched(job)
    assert isinstance(last, Finished) and last.posterior
    assert last.reason is not None and last.reason.startswith("the time limit of 2 s: 2 of 2 chains, ")


async def test_chains_of_parameters_that_have_not_mixed_are_reported_at_the_end(tmp_path: Path) -> None:
    job = make_job(
        tmp_path, LATENTS, algorithm="nuts", data="synthetic", warmup=0, samples=60, chains=2, max_tree_depth=1,
        step_size=0.01,
    )  # fmt: skip
    events, last = await watched(job)
    assert isinstance(last, Finished)
    (warning,) = [text for text in last.warnings if text.startswith("the chains have not mixed")]
    assert [event.text for event in events if isinstance(event, Message)].count(warning) == 1


@pytest.mark.parametrize("engine", ["compiled", "plain"])
async def test_a_run_names_the_engine_that_was_asked_for(tmp_path: Path, engine: str) -> None:
    job = make_job(tmp_path, LATENTS, algorithm="nuts", data="synthetic", warmup=5, samples=5, chains=2, engine=engine)
    events, last = await watched(job)
    (begun,) = [event for event in events if isinstance(event, Started)]
    assert isinstance(last, Finished) and last.posterior
    assert begun.engine == engine
    name = {"compiled": "as machine code", "plain": "step by step"}[engine]
    assert begun.where() == f"cpu, {name} (as asked for)"


async def test_a_short_run_is_machine_code_too(tmp_path: Path) -> None:
    job = make_job(tmp_path, LATENTS, algorithm="nuts", data="synthetic", warmup=20, samples=20, chains=1)
    (begun,) = [event for event in (await watched(job))[0] if isinstance(event, Started)]
    assert begun.engine == "compiled" and begun.where() == "cpu, as machine code"


def test_compiling_that_takes_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()
    events: list[Event] = []

    class Slow:
        def choose(self, potential: object) -> Choice:
            tell()
            tell()
            assert told.wait(HANG)
            return Choice("plain")

    class Read:
        def choose(self, potential: object) -> Choice:
            return Choice("plain")

    def take(event: Event) -> None:
        events.append(event)
        told.set()

    monkeypatch.setattr(waiting_messages, "LONG", 0.0)
    assert nuts.chosen_engine(nuts.Asked(Slow(), None, None), take).engine == "plain"  # pyright: ignore
    (message,) = events
    assert isinstance(message, Message) and message.text.startswith("preparing the program's machine code")
    # what is read from disk is not compiled, however long it takes
    events.clear()
    nuts.chosen_engine(nuts.Asked(Read(), None, None), take)  # pyright: ignore
    assert not events


def result_of(draws: int, chains: int) -> MCMCResult:
    """Chains whose draws are their numbers."""
    numbers = torch.arange(draws).expand(chains, draws)
    return MCMCResult(
        {"mu": numbers.double()}, torch.ones(chains), torch.zeros(chains), torch.ones(chains), numbers, numbers,
        numbers < 0, numbers.double(), torch.ones(chains, draws),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lengths", "shape"), [((50, 50, 3), (2, 50)), ((50, 40), (2, 40)), ((3,), (1, 3)), ((5, 5), (2, 5))]
)
def test_chains_that_ended_early_cost_as_few_draws_as_can_be(lengths: tuple[int, ...], shape: tuple[int, int]) -> None:
    kept = together([result_of(draws, 1) for draws in lengths])
    assert kept is not None
    assert tuple(kept.samples["mu"].shape) == shape == tuple(kept.acceptance.shape)
    assert together([]) is None


def test_a_table_in_a_hurry_leaves_out_what_takes_long() -> None:
    draws = torch.randn(2, 100_000, 8)
    result = dataclasses.replace(result_of(100_000, 2), samples={"mu": draws[:, :, 0], "z": draws})
    hurried = {row.name: row for row in chain_table(result, {"mu", "z"}, hurry=True)}
    assert hurried["mu"].r_hat is not None and hurried["mu"].ess is not None
    assert hurried["z[7]"].ess is None and hurried["z[7]"].sd == pytest.approx(1, abs=0.02)
