"""The recurrent language models learn a real text in the order in which they should, at a small budget."""

import json
import pydoc_data.topics
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
CELLS = ("lstm_lm", "rlstm_lm", "mogrifier_rlstm_lm", "mogrifier_low_rank_lm")


def held_out(example: str, folder: Path, *flags: str) -> dict[str, float]:
    """The figures on held-out bytes after a run of the example on a text that comes with Python."""
    command = [sys.executable, "-m", "qvr_core.cli", "run", "svi", str(ROOT / "examples" / f"{example}.qvr")]
    data = ["--data", f"text:{pydoc_data.topics.__file__}", "--held-out-rows", "256", "--json", *flags]
    done = subprocess.run([*command, *data], cwd=folder, capture_output=True, text=True, timeout=2 * HANG, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])["held_out"]


@pytest.mark.statistical
def test_gated_cells_beat_the_vanilla_network_and_that_the_bigrams(tmp_path: Path) -> None:
    vanilla = held_out("vanilla_rnn_lm", tmp_path, "--steps", "700", "--learning-rate", "0.003")
    assert vanilla["bits_per_byte"] < vanilla["bigram"]
    for cell in CELLS:
        assert held_out(cell, tmp_path, "--steps", "200")["bits_per_byte"] < vanilla["bits_per_byte"], cell
