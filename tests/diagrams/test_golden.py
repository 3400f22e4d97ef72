"""The Mermaid text of the examples, kept as files: `vscode-extension/test` has Mermaid itself read them.

`QVR_UPDATE=1 pytest tests/diagrams/test_golden.py` writes them anew.
"""

import os
from pathlib import Path

import pytest

from qvr_core.diagrams import build, to_mermaid
from tests.standalone import standalone

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "vscode-extension" / "test" / "mermaid"
DRAWN = (
    "bidirectional_rnn_lm",
    "vanilla_rnn_lm",
    "seq2seq",
    "lstm_lm",
    "transformer_lm",
    "eight_schools",
    "topic_model",
    "survival",
    "broken/widths_do_not_add_up",
    "broken/cell_state_does_not_match",
)


@pytest.mark.parametrize("name", DRAWN)
def test_the_diagram_is_the_one_on_file(name: str) -> None:
    text = to_mermaid(build(standalone((ROOT / "examples" / f"{name}.qvr").read_text(encoding="utf-8"))))
    path = GOLDEN / f"{Path(name).name}.mmd"
    if os.environ.get("QVR_UPDATE"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
