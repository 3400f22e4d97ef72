"""One mistake in a language model is one error, at the token to fix, with the repair among the fixes."""

from __future__ import annotations

from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer, Cursor, LocatedDiagnostic, Range, Snapshot, analyse
from qvr_core.semantics.types.diagnostics import Severity

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
BIDIRECTIONAL, SEQ2SEQ, VANILLA = "bidirectional_rnn_lm", "seq2seq", "vanilla_rnn_lm"

# program, what stands there, what the mistake makes of it, the code, the marked text
MISTAKES = [
    (BIDIRECTIONAL, "combine : Combined", "combine : Real 127", "compose-mismatch", ">>"),
    (BIDIRECTIONAL, "combine : Combined", "combine : Real 96", "compose-mismatch", ">>"),
    (BIDIRECTIONAL, "Combined : Real 128", "Combined : Real 129", "compose-mismatch", ">>"),
    (BIDIRECTIONAL, "BwdHidden : Real 64", "BwdHidden : Real 32", "compose-mismatch", ">>"),
    (SEQ2SEQ, "Combined : Real 32", "Combined : Real 33", "wrong-size", "33"),
    (SEQ2SEQ, "Latent : Real 16", "Latent : Real 15", "wrong-size", "15"),
    (SEQ2SEQ, "HeadOut : Real 4", "HeadOut : Real 5", "wrong-size", "5"),
    (SEQ2SEQ, "stack(enc_block, 2)", "stack(enc_ff_up, 2)", "not-endomorphism", "enc_ff_up"),
    (SEQ2SEQ, "HeadOut [role=kernel, replicate=4", "HeadOut [role=kernel, replicate=3", "wrong-size", "replicate=3"),
    (SEQ2SEQ, "fan(enc_head)", "enc_head", "bare-replicated", "enc_head"),
    (BIDIRECTIONAL, "masked_token : Token", "masked_token : Embedded", "ascription-mismatch", "Embedded"),
    (SEQ2SEQ, "next_token : Target", "next_token : Source", "ascription-mismatch", "Source"),
    (BIDIRECTIONAL, "[role=embed]", "[role=embed", "unclosed-bracket", "["),
    (BIDIRECTIONAL, "scan(fwd_cell)", "scan(fwd_cell", "unclosed-bracket", "("),
    (BIDIRECTIONAL, "    sample", "\tsample", "tab-indentation", "\t"),
    (BIDIRECTIONAL, "scale=0.1", "scal=0.1", "unknown-option", "scal"),
    (BIDIRECTIONAL, "role=embed", "role=embd", "unknown-role", "embd"),
    (BIDIRECTIONAL, "~ Categorical", "~ Categorial", "unknown-family", "Categorial"),
    (BIDIRECTIONAL, "lm_head(h)", "lm_head(hh)", "unbound-argument", "hh"),
    (BIDIRECTIONAL, "export bidirectional_rnn_lm", "export bidirectional_rnn", "unknown-name", "bidirectional_rnn"),
    (BIDIRECTIONAL, "tok_embed : Token", "tok_embed : Tokn", "unknown-name", "Tokn"),
    (VANILLA, "scan(cell)", "scan(cel)", "unknown-name", "cel"),
    (VANILLA, "scale=0.1] ~ Normal", "scale=0.1] ~ Categorical", "family-mismatch", "Categorical"),
    (BIDIRECTIONAL, "~ Categorical", "~ Normal", "family-mismatch", "Normal"),
    (BIDIRECTIONAL, "FinSet 256", "FinSet 0", "empty-size", "0"),
    (BIDIRECTIONAL, "Embedded : Real 64", "Embedded : Real 0", "empty-size", "0"),
    (VANILLA, "scale=0.1", "scale=-0.1", "invalid-option", "-0.1"),
    (VANILLA, "scale=0.1", "scale=small", "invalid-option", "small"),
    (BIDIRECTIONAL, "lm_head : Combined", "lm_head : FwdHidden", "argument-mismatch", "h"),
    (BIDIRECTIONAL, "return masked_token", "return h", "wrong-return", "h"),
    (BIDIRECTIONAL, "forward_path = tok_embed", "forward_path = backbone", "cycle", "backbone"),
    (SEQ2SEQ, "src_embed : Source", "src_embed : Target", "argument-mismatch", "backbone"),
    (SEQ2SEQ, "seq2seq : Source * Target", "seq2seq : Target * Source", "argument-mismatch", "backbone"),
    (VANILLA, "Hidden -> Hidden", "Hidden -> Embedded", "scan-mismatch", "cell"),
    (VANILLA, "    return next_token\n", "", "missing-return", None),
]  # fmt: skip


def program(name: str) -> str:
    return (EXAMPLES / f"{name}.qvr").read_text(encoding="utf-8")


def errors(snapshot: Snapshot) -> list[LocatedDiagnostic]:
    return [item for item in snapshot.diagnostics() if item.severity is not Severity.HINT]


def marked(snapshot: Snapshot, where: Range) -> str:
    assert where.start.line == where.end.line
    return snapshot.lines[where.start.line][where.start.column : where.end.column]


def damaged(name: str, before: str, after: str) -> str:
    text = program(name)
    assert before in text
    return text.replace(before, after, 1)


@pytest.mark.parametrize("name", [BIDIRECTIONAL, SEQ2SEQ, VANILLA])
def test_the_programs_of_the_seeds_are_clean(name: str) -> None:
    assert not errors(analyse(program(name)))


@pytest.mark.parametrize(("name", "before", "after", "code", "token"), MISTAKES)
def test_one_mistake_is_one_error_on_its_token(
    name: str, before: str, after: str, code: str, token: str | None
) -> None:
    snapshot = analyse(damaged(name, before, after))
    found = errors(snapshot)
    assert [item.code.name for item in found] == [code], [item.message for item in found]
    if token is not None:
        assert marked(snapshot, found[0].range) == token


@pytest.mark.parametrize(("name", "before", "after", "code", "token"), MISTAKES)
def test_the_edit_that_fixes_it_removes_it(name: str, before: str, after: str, code: str, token: str | None) -> None:
    text = damaged(name, before, after)
    analyzer = Analyzer(text)
    assert errors(analyzer.snapshot())
    analyzer.edit(Cursor(0, 0), Cursor(len(text), 0), program(name))
    assert not errors(analyzer.snapshot())


WIDTHS = [row for row in MISTAKES if row[3] in ("compose-mismatch", "wrong-size")]


@pytest.mark.parametrize(("name", "before", "after", "code", "token"), WIDTHS)
def test_each_repair_of_a_width_fixes_the_file(
    name: str, before: str, after: str, code: str, token: str | None
) -> None:
    text = damaged(name, before, after)
    (found,) = errors(analyse(text))
    assert found.fixes
    assert found.related
    for fix in found.fixes:
        analyzer = Analyzer(text)
        for edit in fix.edits:
            analyzer.edit(edit.range.start, edit.range.end, edit.text)
        assert not errors(analyzer.snapshot()), fix.title


def test_both_sums_are_spelt_out() -> None:
    text = damaged(BIDIRECTIONAL, "BwdHidden : Real 64", "BwdHidden : Real 32")
    (found,) = errors(analyse(text))
    assert "64 + 32 = 96" in found.message
    assert "128" in found.message
    declared = {analyse(text).lines[item.range.start.line] for item in found.related}
    assert declared == {"object FwdHidden : Real 64", "object BwdHidden : Real 32", "object Combined : Real 128"}


def test_independent_mistakes_are_independent_errors() -> None:
    text = damaged(SEQ2SEQ, "Combined : Real 32", "Combined : Real 33").replace("role=embed", "role=embd", 1)
    text = text.replace("return next_token", "return h")
    assert sorted(item.code.name for item in errors(analyse(text))) == ["unknown-role", "wrong-return", "wrong-size"]
