"""A fit by svi of a table that is read by blocks: its order of rows, resumption, processes, posterior, memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from qvr_core.analysis import analyse
from qvr_core.data.scanned import files, plan, rows
from qvr_core.runs.fit.minibatches import BlockOrder
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.prepare.tables_in_blocks import Scanned
from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.protocol import Finished, Job
from qvr_core.runs.record.store import RunDirectory, RunStore
from qvr_core.runs.worker.job import conduct
from tests.patience import HANG
from tests.runs.jobs import make_job

ROOT = Path(__file__).resolve().parents[3]
MODEL = """\
object Row, Group : FinSet _
program p : Row -> Row
    data g : Row -> Group
    data x : Row
    sample m <- Normal(0.0, 2.0)
    sample b <- Normal(0.0, 1.0)
    sample u[k : Group] <- Normal(m, 1.0)
    observe y[i : Row] <- Normal(u[g[i]] + b * x[i], 1.0)
    return m
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is large, blocks have 50 rows, and four of them are shuffled together."""
    monkeypatch.setattr(plan, "STREAMED", 0)
    monkeypatch.setattr(rows, "MOST_ROWS", 50)
    monkeypatch.setattr(rows, "FEWEST_ROWS", 1)
    monkeypatch.setattr(rows, "POOL", 4)
    monkeypatch.setattr(rows, "HELD", 10)


def written(folder: Path, count: int, parts: int) -> pl.DataFrame:
    """Rows whose groups stand together, as in files that were written group by group."""
    rng = np.random.default_rng(5)
    g = np.arange(count) * 5 // count
    x = rng.integers(-2, 3, count) / 2.0
    y = np.round(0.5 * g + 0.8 * x + rng.normal(size=count), 1)
    frame = pl.DataFrame({"g": [f"g{at}" for at in range(5)]})["g"].gather(g)
    table = pl.DataFrame({"g": frame, "x": x, "y": y})
    folder.mkdir(exist_ok=True)
    size = -(-count // parts)
    for part in range(parts):
        table[part * size : (part + 1) * size].write_parquet(folder / f"{part}.parquet")
    return table


def job(folder: Path, **config: object) -> Job:
    asked = {"batch_size": 30, "steps": 60, "learning_rate": 0.05, "checkpoint_steps": 7, **config}
    return make_job(folder, MODEL, data="parquet:d", **asked)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many rows each reading of a file takes."""
    found: list[int] = []
    read = files.Part.read

    def noted(part: files.Part, start: int, count: int, names: list[str]) -> pl.DataFrame:
        found.append(count)
        return read(part, start, count, names)

    monkeypatch.setattr(files.Part, "read", noted)
    yield found


def test_an_epoch_has_each_row_once_and_reads_each_block_once() -> None:
    starts = np.concatenate([[0], np.cumsum([50, 50, 20, 50, 50, 50, 17, 50, 50])])
    count = int(starts[-1])

    def order(seed: int = 1) -> BlockOrder:
        return BlockOrder(count, 9, seed, True, starts, 4)

    made, steps = order(), count // 9
    epochs = [np.concatenate([made.rows_of(step).numpy() for step in range(at * steps, (at + 1) * steps)])
              for at in range(2)]  # fmt: skip
    for seen in epochs:
        assert len(set(seen.tolist())) == steps * 9 == len(seen)
        blocks = np.searchsorted(starts, seen, side="right") - 1
        assert len({*blocks[:150].tolist()}) <= 4  # of one pool
        assert len({*blocks[:9].tolist()}) > 1  # which is shuffled
        for block in range(len(starts) - 1):
            there = np.flatnonzero(blocks == block)
            assert there.max() - there.min() < 200
    assert epochs[0].tolist() != epochs[1].tolist()
    assert order(2).rows_of(0).tolist() != made.rows_of(0).tolist()
    for step in (3 * steps + 2, 0, 17, 16):  # whatever was asked for before
        assert order().rows_of(step).tolist() == made.rows_of(step).tolist()
    plain = BlockOrder(count, 9, 1, False, starts, 4)
    assert plain.rows_of(2).tolist() == list(range(18, 27))


@pytest.mark.statistical
@pytest.mark.parametrize("guide", ["normal", "laplace"])
def test_a_fit_ends_with_the_posterior_of_all_rows(tmp_path: Path, guide: str, small: None) -> None:
    table = written(tmp_path / "d", 640, 3)
    asked = job(tmp_path, steps=800, guide=guide, checkpoint_steps=None)
    fit = SviFit(prepare(asked, analyse(asked.text)), Stop())
    assert isinstance(fit.prepared.train, Scanned)
    [done] = [event for event in fit.run() if isinstance(event, Finished)]
    found = {row.name: row for row in done.posterior}
    # all latents are Normal and the noise is 1: the posterior is a Normal that can be written down
    ones = np.eye(5)[np.array([int(name[1:]) for name in table["g"]])]
    design = np.column_stack([np.zeros(640), table["x"].to_numpy(), ones])
    prior = np.zeros((7, 7))
    prior[0, 0], prior[1, 1] = 1 / 4 + 5, 1.0
    prior[2:, 2:], prior[0, 2:], prior[2:, 0] = np.eye(5), -1.0, -1.0
    covariance = np.linalg.inv(prior + design.T @ design)
    mean = covariance @ design.T @ table["y"].to_numpy()
    for at, name in enumerate(["m", "b", *(f"u[g{k}]" for k in range(5))]):
        assert found[name].mean == pytest.approx(mean[at], abs=0.08), name
    assert found["b"].sd == pytest.approx(covariance[1, 1] ** 0.5, rel=0.2)
    assert stats.norm.ppf(0.95, found["b"].mean, found["b"].sd or 0) == pytest.approx(found["b"].q95, abs=0.02)


@pytest.mark.parametrize("at", [11, 29])
@pytest.mark.sampled(2)
def test_an_interrupted_fit_goes_on_with_the_same_losses(tmp_path: Path, at: int, small: None) -> None:
    written(tmp_path / "d", 410, 2)
    whole, broken = job(tmp_path), job(tmp_path)
    assert conduct(whole, Stop(), lambda _: None) == 0
    stop = Stop()

    def watch(event: object) -> None:
        if getattr(event, "step", None) == at:
            stop.cancelled.set()

    assert conduct(broken, stop, watch) == 0
    run = RunDirectory.of(broken)
    assert at <= len(losses_of(run)) < 60
    assert conduct(broken.model_copy(update={"resume": True}), Stop(), lambda _: None) == 0
    assert losses_of(run) == losses_of(RunDirectory.of(whole))
    assert len(losses_of(run)) == 60


def test_a_resumed_fit_reads_on_where_it_was(tmp_path: Path, small: None, reads: list[int]) -> None:
    written(tmp_path / "d", 2000, 2)
    asked = job(tmp_path, steps=64)
    made = SviFit(prepare(asked, analyse(asked.text)), Stop())
    reads.clear()
    made.batch(60)  # the end of the first epoch
    assert 0 < sum(reads) <= 8 * 50


def test_a_new_file_in_the_folder_is_other_data(tmp_path: Path, small: None) -> None:
    table = written(tmp_path / "d", 410, 2)
    asked, said = job(tmp_path, steps=8), list[str]()
    assert conduct(asked, Stop(), lambda _: None) == 0
    table[:10].write_parquet(tmp_path / "d" / "9.parquet")
    more = asked.model_copy(update={"resume": True, "config": asked.config.model_copy(update={"steps": 16})})
    assert conduct(more, Stop(), lambda event: said.append(str(event))) != 0
    assert "9.parquet is new" in said[-1]


def test_a_prediction_of_every_row_is_refused(tmp_path: Path, small: None) -> None:
    written(tmp_path / "d", 410, 2)
    text = MODEL.replace("    return m", "    predict z[i : Row] <- Normal(u[g[i]], 1.0)\n    return m")
    asked = make_job(tmp_path, text, data="parquet:d", batch_size=30)
    with pytest.raises(Exception, match="`z` is a prediction of every element of `Row`"):
        SviFit(prepare(asked, analyse(asked.text)), Stop())


LARGE = 3
"""Millions of rows above which a table of three columns is read by blocks, whoever reads it."""


def million_times(folder: Path, times: int) -> None:
    """A million rows so many times: files are read by their names, so one on the disk will do."""
    written(folder, 1_000_000, 1)
    for again in range(1, times):
        os.link(folder / "0.parquet", folder / f"{again}.parquet")


@pytest.mark.statistical
def test_processes_see_the_rows_of_one(tmp_path: Path) -> None:
    million_times(tmp_path / "d", LARGE)
    (tmp_path / "m.qvr").write_text(MODEL)

    def losses(*more: str) -> list[float]:
        # a point has no noise: the loss of a step is a function of its rows
        command = [sys.executable, "-m", "qvr_core.cli", "run", "svi", "m.qvr", "--data", "parquet:d", "--steps", "12",
                   "--batch-size", "600", "--guide", "delta", "--learning-rate", "0.05", *more]  # fmt: skip
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG, env={**os.environ}
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "read by blocks of rows" in done.stdout + done.stderr
        return losses_of(RunStore(tmp_path).open("last"))

    one = losses()
    assert len(one) == 12 and one[-1] < one[0]
    assert losses("--nproc", "2") == pytest.approx(one, rel=1e-5)


def test_a_batch_that_processes_cannot_share_evenly_is_refused(tmp_path: Path, small: None) -> None:
    from qvr_core.runs.fit.distributed import Team

    written(tmp_path / "d", 410, 2)
    asked = job(tmp_path)
    with pytest.raises(Exception, match="batch_size is 30, and 4 processes take as many rows each"):
        SviFit(prepare(asked, analyse(asked.text)), Stop(), Team(0, 4))


MEASURE = """
import re, sys
from pathlib import Path
from qvr_core.analysis import analyse
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.prepare.parts_of_rows import parts_of
from qvr_core.runs.fit.minibatches import row_order
sys.path.insert(0, sys.argv[2])
from tests.runs.fit.test_scanned_fit import job
asked = job(Path(sys.argv[1]), batch_size=5000)
parts = parts_of(prepare(asked, analyse(asked.text)))
assert parts.blocks is not None
order = row_order(parts, asked.config)
for step in range(0, parts.rows // 5000, 4):
    parts.batch(order.rows_of(step))
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


@pytest.mark.long
def test_memory_does_not_grow_with_the_table(tmp_path: Path) -> None:
    peaks: list[int] = []
    # what polars has freed would count until the kernel wants it
    there = {**os.environ, "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"}
    for times in (LARGE, 3 * LARGE):
        folder = tmp_path / str(times)
        folder.mkdir()
        million_times(folder / "d", times)
        done = subprocess.run(
            [sys.executable, "-m", "tests.script", MEASURE, str(folder), str(ROOT)],
            capture_output=True, text=True, check=False, env=there,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
    # the larger one has 60 MB more of blocks that are held, of 144 MB more of numbers
    assert peaks[1] < peaks[0] + 110, peaks
