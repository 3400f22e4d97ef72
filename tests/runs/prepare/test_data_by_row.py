"""Declared data of a program that reads its input: one array for all rows, or an entry for each of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.store import RunStore

PICTURES = """\
object Pixel : FinSet 4
object Code : Real 2
morphism prior : One -> Code [role=kernel] ~ Normal(0.0, 1.0)
morphism paint : Code -> Real 4 [role=linear]
program pictures(unit) : One -> Code
LINE
    sample z <- prior(unit)
    let logits = paint(z)
    observe picture[p : Pixel] <- Bernoulli(logits=logits[p] + tone[p])
    return z
"""
TYPED = "    data picture : Pixel -> Bool\n    data tone : Pixel -> Real 1"
INFERRED = "    data tone : Pixel -> Real 1"


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(1)
    picture, tone = generator.integers(0, 2, (20, 4)), generator.normal(size=4)
    unit = np.zeros(20, dtype=int)
    np.savez("d.npz", picture=picture, tone=tone, unit=unit)
    np.savez("each.npz", picture=picture, tone=np.tile(tone, (20, 1)), unit=unit)
    np.savez("wrong.npz", picture=picture[:, :3], tone=tone, unit=unit)
    np.savez("two.npz", picture=2 * picture, tone=tone, unit=unit)
    return tmp_path


def losses(folder: Path, line: str, data: str) -> object:
    Path("p.qvr").write_text(PICTURES.replace("LINE", line))
    done = CliRunner().invoke(
        app, ["run", "svi", "p.qvr", "--data", f"npz:{data}", "--steps", "6", "--batch-size", "5"]
    )
    assert done.exit_code == 0, done.output + done.stderr
    return losses_of(RunStore(folder).open("last"))


def test_an_array_has_an_entry_for_each_row_or_is_the_same_for_all(there: Path) -> None:
    inferred = losses(there, INFERRED, "d.npz")
    assert losses(there, TYPED, "d.npz") == inferred
    assert losses(there, TYPED, "each.npz") == inferred


@pytest.mark.parametrize(("data", "said"), [("wrong.npz", "20 × 3"), ("two.npz", "at [0,")])
def test_each_row_is_checked(data: str, said: str) -> None:
    Path("p.qvr").write_text(PICTURES.replace("LINE", TYPED))
    done = CliRunner().invoke(app, ["run", "svi", "p.qvr", "--data", f"npz:{data}", "--steps", "6"])
    assert done.exit_code == 1 and "picture" in done.output + done.stderr and said in done.output + done.stderr
