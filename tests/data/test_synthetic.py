"""Data drawn from a program itself are data that it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from qvr_core.analysis import Analyzer
from qvr_core.data.binding import Whole
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.store import RunStore

THETA = "    sample z : School <- Normal(0.0, 1.0)\n    let theta = 2.0 * z\n"
OPTIONS = {
    "groups of rows": (THETA + "    observe y : Pupil <- Normal(theta, 1.0) [via=school]\n", 8, 30),
    "groups of rows without a plate": (THETA + "    observe y <- Normal(theta, 1.0) [via=school]\n", 8, 64),
    "rows of their own plate": (THETA + "    observe y : School <- Normal(theta, 1.0) [via=school]\n", 8, 8),
    "selected rows": (THETA + "    observe y : Pupil <- Normal(theta, 1.0) [at=school]\n", 8, 30),
    "groups of a summed-out latent": (
        "    sample z <- Beta(1.0, 1.0)\n    marginalize k : FinSet 2 <- Bernoulli(z) [over=School]\n"
        "        observe y : Pupil <- Normal(k, 1.0) [via=school]\n",
        8,
        30,
    ),
    "two plates": (
        THETA + "    observe w : School <- Normal(theta, 1.0)\n"
        "    observe y : Pupil <- Normal(theta, 1.0) [via=school]\n",
        8,
        30,
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_index_is_one_of_the_set_that_it_numbers(name: str, tmp_path: Path) -> None:
    steps, size, rows = OPTIONS[name]
    text = f"object School : FinSet 8\nobject Pupil : FinSet 30\nprogram p : Pupil -> Pupil\n{steps}    return z\n"
    config = RunConfig(threads=1)
    job = RunStore(tmp_path).create(path="m.qvr", text=text, program=None, config=config, base=str(tmp_path))
    train = prepare(job, Analyzer(text).snapshot()).train
    assert isinstance(train, Whole)
    index = train.observations["school"]
    assert isinstance(index, Tensor) and index.dtype == torch.int64
    assert len(index) == rows and int(index.min()) >= 0 and int(index.max()) < size
    assert len(set(index.tolist())) > 2
    assert train.observations["y"].numel() == rows
