"""Inlay hints, semantic tokens, signature help."""

from __future__ import annotations

import itertools

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.ide.completion.signature import signature
from qvr_core.ide.inlays import inlays
from qvr_core.ide.semantic_tokens import tokens
from qvr_core.ide.undeclared import declare_actions
from qvr_core.syntax.source import Cursor, Range
from tests.ide.cases import LM, PROGRAM, applied, at, errors

WHOLE = Range(Cursor(0, 0), Cursor(10_000, 0))


def hints(text: str, kind: str) -> list[tuple[int, str]]:
    found = inlays(Analyzer(text).snapshot(), WHOLE)
    return [(hint.cursor.line, hint.text) for hint in found if hint.kind == kind]


def test_types_of_lets() -> None:
    assert hints(LM, "type") == [(7, " : Seq Token -> Hidden")]


def test_spaces_in_long_pipelines() -> None:
    text = LM + "let all = tok_embed >> scan(cell) >> lm_head\n"
    assert [shown for line, shown in hints(text, "pipeline") if line == 8] == ["Seq Embedded ", "Hidden "]


def test_solved_hole_is_shown_and_can_be_written_out() -> None:
    text = LM.replace("Real 64", "Real _").replace(
        "let backbone",
        "object Wide : Real 64\nmorphism g : Token -> Wide "
        "[role=embed]\nlet tied = fan(tok_embed, g) >> identity(Embedded * Wide)\nlet backbone",
    )
    text = text.replace(
        "let backbone = tok_embed",
        "morphism plain : Wide -> Hidden [role=linear]\nlet forced = tok_embed >> plain\nlet backbone = tok_embed",
    )
    snapshot = Analyzer(text).snapshot()
    found = [hint for hint in inlays(snapshot, WHOLE) if hint.kind == "hole"]
    assert [hint.text for hint in found] == [" = 64"]
    assert found[0].edits
    written = applied(text, found[0].edits)
    assert "object Embedded : Real 64" in written
    assert errors(written) == errors(text)


def test_inferred_direction_is_shown_and_can_be_written_out() -> None:
    text = LM + "morphism bwd_cell : Embedded * Hidden -> Hidden ~ Normal\nlet back = tok_embed >> scan(bwd_cell)\n"
    assert hints(text, "direction") == [(9, ", direction=backward")]
    hint = next(hint for hint in inlays(Analyzer(text).snapshot(), WHOLE) if hint.kind == "direction")
    written = applied(text, hint.edits)
    assert "scan(bwd_cell, direction=backward)" in written
    assert hints(written, "direction") == []


def test_parameter_names_of_families() -> None:
    text = "object R : FinSet 4\nprogram p : R -> R\n    sample mu <- Normal(0.0, 1.0)\n"
    text += "    sample df <- Exponential(0.1)\n"
    text += "    sample a <- Gamma(2.0, 3.0)\n    observe y <- StudentT(4.0, mu, scale=2.0)\n"
    text += "    observe z <- StudentT(df, mu, 1.0)\n    return mu\n"
    # not where every reader knows it, not for a lone argument, not before a variable of that name
    assert hints(text, "parameter") == [(4, "concentration="), (5, "df=")]


def test_only_the_asked_stretch() -> None:
    snapshot = Analyzer(LM + PROGRAM).snapshot()
    assert inlays(snapshot, Range(Cursor(0, 0), Cursor(3, 0))) == []


def kinds(text: str) -> dict[tuple[int, str], tuple[str, tuple[str, ...]]]:
    snapshot = Analyzer(text).snapshot()
    return {
        (token.line, snapshot.lines[token.line][token.column : token.column + token.length]): (
            token.kind,
            token.modifiers,
        )
        for token in tokens(snapshot, WHOLE)
    }


def test_names_are_coloured_by_what_they_stand_for() -> None:
    found = kinds(LM + PROGRAM)
    assert found[1, "Token"] == ("type", ("declaration", "readonly"))
    assert found[4, "tok_embed"] == ("function", ("declaration", "deterministic"))
    assert found[5, "cell"] == ("function", ("declaration", "sampled"))
    assert found[5, "Normal"] == ("class", ("defaultLibrary",))
    assert found[7, "tok_embed"] == ("function", ("deterministic",))
    assert found[7, "scan"][0] == "keyword"
    assert found[9, "h"] == ("variable", ("declaration", "latent"))
    assert found[10, "next_token"] == ("variable", ("declaration", "observed"))
    assert found[10, "h"] == ("variable", ("latent",))
    assert found[4, "role"][0] == "property"


def test_tokens_are_in_the_order_of_the_text_and_never_overlap() -> None:
    found = tokens(Analyzer(LM + PROGRAM).snapshot(), WHOLE)
    assert len(found) > 20
    for one, other in itertools.pairwise(found):
        assert (one.line, one.column + one.length) <= (other.line, other.column) or one.line < other.line


@pytest.mark.parametrize(
    ("marked", "label", "active"),
    [
        ("let y = scan($0)", "scan(cell, emit, direction, init)", 0),
        ("let y = scan(cell, $0)", "scan(cell, emit, direction, init)", 1),
        ("let y = scan(cell, init=$0)", "scan(cell, emit, direction, init)", 3),
        ("let y = stack(cell, $0", "stack(f, n)", 1),
        ("program q : Token -> Token\n    sample x <- Normal(0.0, $0)", "Normal(loc, scale)", 1),
        ("program q : Token -> Token\n    sample x <- Normal(scale=$0)", "Normal(loc, scale)", 1),
        ("program q : Token -> Token\n    sample x <- cell(a, $0)", "cell(Embedded, Hidden)", 1),
        ("program q : Token -> Token\n    let x = where(a, $0)", "where(", 1),
    ],
)
def test_signature(marked: str, label: str, active: int) -> None:
    found = signature(*at(LM + marked + "\n"))
    assert found is not None
    assert found.label.startswith(label)
    assert found.active == active
    for parameter, _ in found.parameters:
        assert parameter in found.label


def test_options_have_a_signature() -> None:
    found = signature(*at(LM + "morphism m : Hidden -> Hidden [role=attention, causal=$0]\n"))
    assert found is not None
    assert "heads=1" in found.label
    assert found.parameters[found.active][0] == "causal=false"


def test_no_signature_outside_of_brackets() -> None:
    assert signature(*at(LM + "let y = scan(cell) >> $0\n")) is None


UNDECLARED = """object School : FinSet 4
object Row : FinSet 20
program p : Row -> Row
    sample a : School <- Normal(0.0, 1.0)
    let m[i : Row] = a[k[i]] + z[i]
    observe y : Row <- Normal(m, 1.0)
    return m
"""


def test_undeclared_data_show_what_their_uses_say_and_a_fix_declares_them() -> None:
    snapshot = Analyzer(UNDECLARED).snapshot()
    shown = {hint.text: hint for hint in inlays(snapshot, WHOLE) if hint.edits}
    assert set(shown) == {" : Row -> School", " : Row"}
    assert shown[" : Row -> School"].cursor == Cursor(4, 24)
    (action,) = declare_actions(snapshot, Range(Cursor(4, 23), Cursor(4, 23)))
    assert action.title == "Declare `data k : Row -> School`"
    (edit,) = action.edits
    lines = UNDECLARED.split("\n")
    assert edit.range.start == edit.range.end == Cursor(3, 4)
    lines[3] = "    " + edit.text + lines[3][4:]
    after = Analyzer("\n".join(lines)).snapshot()
    assert lines[3].startswith("    data k : Row -> School\n    sample a")
    assert not after.diagnostics()
    assert [item.name for item in after.model.programs["p"].data if item.declared] == ["k"]


BESIDE = """object School, Row : FinSet _
object Feature : {age, income}
program p : Row -> Row
    sample a : School <- Normal(0.0, 1.0)
    sample beta : Feature <- Normal(0.0, 1.0)
    sample gamma : Feature <- Normal(0.0, 1.0)
    sample prior : School <- Normal(scale, 1.0)
    let eta = exp(a[school] + slope * x) + matmul(z, beta)
    let total = sum(gamma * w)
    observe y : Row <- Normal(eta + total, slope * noise)
    observe k : School <- Normal(prior + 0.5 * slope, 1.0)
    return a
"""


def test_data_beside_values_over_a_set_are_declared_over_it() -> None:
    analyzer = Analyzer(BESIDE)
    places = {}
    while found := next((hint for hint in inlays(analyzer.snapshot(), WHOLE) if hint.edits), None):
        (edit,) = found.edits
        places[edit.text.split()[1]] = found.text
        analyzer.edit(edit.range.start, edit.range.end, edit.text)
        assert not analyzer.snapshot().diagnostics(), analyzer.snapshot().text
    assert places == {"school": " : Row -> School", "x": " : Row", "z": " : Row * Feature", "noise": " : Row"}
    # one number for all, one for each row or school, columns that are summed over: nobody can tell
    assert {item.name for item in analyzer.snapshot().model.programs["p"].data if not item.declared} == {
        "scale",
        "slope",
        "w",
    }


def test_what_the_arguments_of_a_template_say_is_shown_in_its_call() -> None:
    text = """object Item : Real 6
object Hidden : Real 4
object Wide : Real 10
morphism f : Wide -> Hidden [role=linear]
program cell(x, h, X : Object, H : Object, mix : Mor[X * H, H] = linear) : X * H -> H
    let h2 = tanh(mix(x, h))
    return h2
program two(x, h) : Item * Hidden -> Hidden
    let a = cell(x, h)
    let b = cell(x, a, H=Hidden)
    return b
let states = scan(cell(mix=f))
"""
    found = [hint for hint in inlays(Analyzer(text).snapshot(), WHOLE) if hint.kind == "parameter"]
    assert [hint.text for hint in found] == [", X=Item, H=Hidden", ", X=Item", ", X=Real 6, H=Hidden"]
    assert [bool(hint.edits) for hint in found] == [True, True, False]
    written = applied(text, tuple(edit for hint in found for edit in hint.edits))
    assert "cell(x, h, X=Item, H=Hidden)" in written
    assert not errors(written)
