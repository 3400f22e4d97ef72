"""Every example is clean, draws, runs, and does what its comment says; every broken one is broken in one place."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qvr_core.diagrams import build, nodes, to_dot, to_mermaid, wires
from qvr_core.semantics.types.diagnostics import Severity
from tests.patience import HANG
from tests.standalone import standalone

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "examples").glob("?*.qvr"))
LONG = pytest.mark.statistical
RUNS = [pytest.param(path, marks=LONG) if path.stem == "soil_carbon" else path for path in PROGRAMS]
"""Its four stiff pools take as long as ten other examples."""
BROKEN = sorted((ROOT / "examples" / "broken").glob("?*.qvr"))
MISTAKES = {"wrong_argument_count": 2, "two_mistakes_and_a_broken_line": 3}
"""Errors of the broken examples that have more than one."""
CELLS = {"elman_rnn_lm", "gru_lm", "lstm_lm", "rlstm_lm", "mogrifier_rlstm_lm", "mogrifier_low_rank_lm"}
TEXT_MODELS = {"bidirectional_rnn_lm", "vanilla_rnn_lm", "transformer_lm"} | CELLS


def name(path: Path) -> str:
    return path.stem


def analysed(path: Path) -> object:
    return standalone(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PROGRAMS, ids=name)
def test_an_example_has_no_diagnostic_and_a_comment_that_says_what_to_see(path: Path) -> None:
    found = [item.code.name for item in analysed(path).diagnostics() if item.code.name != "inferred-direction"]
    assert found == []
    head = path.read_text(encoding="utf-8").split("\n\n")[0]
    assert all(line.startswith("#") for line in head.splitlines())
    assert "What to see" in head


@pytest.mark.parametrize("path", BROKEN, ids=name)
def test_a_broken_example_gives_one_error_for_each_mistake(path: Path) -> None:
    errors = [item for item in analysed(path).diagnostics() if item.code.severity is Severity.ERROR]
    assert len(errors) == MISTAKES.get(path.stem, 1), [item.message for item in errors]
    assert path.read_text(encoding="utf-8").startswith("# Wrong")


@pytest.mark.parametrize("path", [*PROGRAMS, *BROKEN], ids=name)
def test_everything_that_can_be_drawn_is_drawn(path: Path) -> None:
    snapshot = analysed(path)
    for drawn in (*snapshot.model.programs, *snapshot.model.lets):
        graph = build(snapshot, drawn)
        assert len(graph) > 0
        assert to_mermaid(graph).startswith("flowchart LR")
        assert to_dot(graph).startswith("digraph")
        for node in nodes(graph):
            assert node.origin is None or snapshot.range(node.origin)


def test_a_state_that_does_not_match_is_marked_where_it_returns() -> None:
    graph = build(analysed(ROOT / "examples" / "broken" / "cell_state_does_not_match.qvr"), "backbone")
    marked = [(source, target, wire.kind) for source, target, wire in wires(graph) if wire.mismatch]
    assert marked == [("cell", "cell", "state")]


def test_no_wire_of_a_sound_example_is_marked() -> None:
    for path in PROGRAMS:
        snapshot = analysed(path)
        for drawn in (*snapshot.model.programs, *snapshot.model.lets):
            marked = [wire.mismatch for _, _, wire in wires(build(snapshot, drawn)) if wire.mismatch]
            assert marked == [], (path.stem, drawn)


@pytest.mark.parametrize("path", RUNS, ids=name)
@pytest.mark.sampled(2)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("analyses", "*.svg"))
    shutil.copy(ROOT / "qvr.toml", tmp_path)
    more = ["--data", f"text:{ROOT / 'README.md'}", "--held-out-rows", "64"] if path.stem in TEXT_MODELS else []
    if path.stem == "bert_pretraining":
        more = ["--data", f"pairs:{ROOT / 'docs'}/**/*.md", "--held-out-rows", "64"]
    done = subprocess.run(
        [sys.executable, "-m", "qvr_core.cli", "run", "svi", f"examples/{path.name}", "--steps", "8", "--json", *more],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    last = json.loads(done.stdout.strip().splitlines()[-1])
    assert last["event"] == "finished", (last, done.stderr)
    assert last["losses"]["last"] is not None
    assert done.returncode == 0
