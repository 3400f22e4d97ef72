"""What an editor is told of data types, encoders and decoders."""

from __future__ import annotations

import pytest

from qvr_core.ide.completion.completion import complete
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.hover import hover
from qvr_core.ide.navigation import definition, find_references
from qvr_core.ide.outline_and_folding import outline
from qvr_core.ide.prose import markdown
from qvr_core.syntax.formatter import format_text
from tests.ide.cases import applied, at, text_of

TEXT = """\
object Name : FinSet 3
# Formulas of propositional logic.
data type Formula = atom(Name) | truth | not(Formula) | and(Formula, Formula)
object Code : Real 4
morphism letter : Name -> Code [role=embed]
# What a formula means.
encoder meaning : Formula -> Code
    atom(n) = letter(n)
    truth = zeros(4)
    not(a) = -a
    and(a, b) = a * b
"""


def marked(mark: str) -> str:
    return TEXT.replace(mark.replace("$0", ""), mark, 1)


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("Form$0ula =", "    | and(Formula, Formula)"),
        ("Form$0ula =", "Formulas of propositional logic."),
        ("not(Form$0ula", "`atom` and `truth` end them"),
        ("a$0nd(", "A constructor of `Formula`."),
        ("enc$0oder", "Makes numbers of a term, from its leaves up"),
        ("mean$0ing :", "encoder meaning : Formula => Code"),
        ("mean$0ing :", "What a formula means."),
        ("    a$0nd(a", "A constructor of `Formula`."),
        ("data t$0ype", "each constructor says what stands below a node"),
    ],
)
def test_hover(mark: str, words: str) -> None:
    answer = hover(*at(marked(mark)))
    assert answer is not None
    assert words in markdown(answer.content)


def test_types_and_constructors_are_gone_to_found_and_renamed() -> None:
    used = at(marked("not(Form$0ula"))
    (place,) = definition(*used)
    assert (place.start.line, place.start.column) == (2, 10)
    assert len(find_references(*used)) == 5
    edits = rename(*used, "Prop")
    assert isinstance(edits, tuple)
    assert applied(text_of(used[0]), edits) == TEXT.replace("Formula", "Prop").replace("Props of", "Formulas of")
    used = at(marked("a$0nd("))
    edits = rename(*used, "both")
    assert isinstance(edits, tuple)
    assert applied(text_of(used[0]), edits) == TEXT.replace("and(", "both(")
    (place,) = definition(*at(marked("    a$0nd(a")))
    assert place.start.line == 2


def test_outline() -> None:
    found = {one.name: one for one in outline(at(TEXT + "$0")[0])}
    assert (found["Formula"].kind, found["meaning"].kind) == ("data type", "encoder")
    for name in ("Formula", "meaning"):
        assert [child.name for child in found[name].children] == ["atom", "truth", "not", "and"]


def test_completion() -> None:
    assert "data type" in {item.label for item in complete(*at(TEXT + "$0"))}
    found = {item.label for item in complete(*at(TEXT.replace("atom(Name)", "atom($0)")))}
    assert {"Formula", "Name", "Real"} <= found
    cut = TEXT.replace("    not(a) = -a\n    and(a, b) = a * b", "    $0")
    assert {item.label for item in complete(*at(cut))} == {"not", "and"}
    assert "letter" in {item.label for item in complete(*at(TEXT.replace("= letter(n)", "= $0")))}
    assert [item.label for item in complete(*at(TEXT.replace(": Formula ->", ": $0 ->")))] == ["Formula"]


def test_a_long_type_has_a_constructor_a_line() -> None:
    long = "data type Formula = " + "|".join(f"constructor_{i}( Formula,Name )" for i in range(6)) + "|leaf"
    printed = format_text(long)
    assert printed.splitlines()[1:3] == ["    | constructor_1(Formula, Name)", "    | constructor_2(Formula, Name)"]
    assert format_text(printed) == printed


PROGRAM = """\
let doubled = meaning >> again
morphism again : Code -> Code [role=linear]
program p(f) : Formula -> Code
    let y = meaning(f)
    return y
export p
"""


def test_an_encoder_is_offered_and_followed_as_an_arrow() -> None:
    whole = TEXT + PROGRAM
    for mark in ("= $0meaning(f)", "= $0meaning >>"):
        text = whole.replace(mark.replace("$0", ""), "= $0" if "(" in mark else "= $0 >>", 1)
        assert "meaning" in {item.label for item in complete(*at(text))}
    used = at(whole.replace("= meaning(f)", "= mean$0ing(f)"))
    (place,) = definition(*used)
    assert place.start.line == 6
    assert len(find_references(*used)) == 3
    answer = hover(*used)
    assert answer is not None
    assert "encoder meaning : Formula => Code" in markdown(answer.content)
    answer = hover(*at(whole.replace("program p(", "program $0p(")))
    assert answer is not None
    # the letters alone: nothing else of the encoder is learned
    assert "12 parameters" in markdown(answer.content)


def test_the_hover_of_an_encoder_says_what_is_drawn() -> None:
    drawn = TEXT.replace("= letter(n)", "= shaken(letter(n))")
    drawn += "morphism shaken : Code -> Code [role=kernel] ~ Normal\n"
    answer = hover(*at(drawn.replace("encoder meaning", "encoder mean$0ing")))
    assert answer is not None
    text = markdown(answer.content)
    assert "encoder meaning : Formula -> Code" in text
    assert "Each node makes the draws of its case." in text
    assert "Exact density, given 1 innovation" in text


DECODER = """\
object Name : FinSet 3
data type Formula = atom(Name) | truth | not(Formula) | and(Formula, Formula)
object Code : Real 4
morphism choose : Code -> FinSet 4 [role=kernel] ~ Categorical
morphism letter : Code -> Name [role=kernel] ~ Categorical
morphism left : Code -> Code [role=linear]
# What a formula may be.
decoder unmeaning : Code -> Formula [depth=8]
    Formula(h) = choose(h)
    atom(h) = letter(h)
    not(s) = -s
    and(h) = (left(h), h)
program p(z) : Code -> Formula
    observe f <- unmeaning(z)
    return f
"""


def decoding(mark: str) -> str:
    return DECODER.replace(mark.replace("$0", ""), mark, 1)


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("dec$0oder", "Makes a term from numbers, from its root down"),
        ("unmean$0ing :", "decoder unmeaning : Code -> Formula [depth=8]"),
        ("unmean$0ing :", "What a formula may be."),
        ("<- unmean$0ing", "Terms of at most 8 levels"),
        ("    Form$0ula(h)", "    | and(Formula, Formula)"),
        ("    a$0nd(h", "A constructor of `Formula`."),
        ("[de$0pth", "how many levels a term has at most"),
    ],
)
def test_hover_of_decoders(mark: str, words: str) -> None:
    answer = hover(*at(decoding(mark)))
    assert answer is not None
    assert words in markdown(answer.content)


def test_decoders_are_gone_to_found_and_renamed() -> None:
    used = at(decoding("<- unmean$0ing"))
    (place,) = definition(*used)
    assert (place.start.line, place.start.column) == (7, 8)
    used = at(decoding("    Form$0ula(h)"))
    (place,) = definition(*used)
    assert place.start.line == 1
    edits = rename(*at(decoding("data type Form$0ula")), "Prop")
    assert isinstance(edits, tuple)
    assert applied(DECODER, edits) == DECODER.replace("Formula", "Prop")
    found = {one.name: one for one in outline(at(DECODER + "$0")[0])}
    assert found["unmeaning"].kind == "decoder"


def test_completion_in_decoders() -> None:
    cut = DECODER.replace("    Formula(h) = choose(h)\n", "").replace("    and(h) = (left(h), h)", "    $0")
    assert {item.label: item.insert for item in complete(*at(cut))} == {
        "Formula": "Formula(h) = $0",
        "and": "and(h) = ($1, $2)",
    }
    offered = {item.label for item in complete(*at(DECODER.replace("= letter(h)", "= $0")))}
    assert {"letter", "left", "h"} <= offered
    assert [item.label for item in complete(*at(DECODER.replace("Code -> Formula [", "Code -> $0 [")))] == ["Formula"]
    offered = {item.label for item in complete(*at(DECODER.replace("[depth=8]", "[$0]")))}
    assert offered == {"depth"}
    assert "unmeaning" in {item.label for item in complete(*at(DECODER.replace("<- unmeaning(z)", "<- $0")))}
