"""Names of the library that need no import, in an editor: known as built-in ones are, and at home in its files."""

from __future__ import annotations

from qvr_core.ide.answers import Refusal
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.completion.signature import signature
from qvr_core.ide.edits.refactor import refactorings
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.hover import hover
from qvr_core.ide.inlays import inlays
from qvr_core.ide.navigation import definition, definition_elsewhere
from qvr_core.ide.prose import markdown
from qvr_core.ide.semantic_tokens import tokens
from qvr_core.syntax.source import Cursor, Range
from tests.ide.cases import at

TEXT = """object Row : FinSet 3
program p : Row -> Row
    sample m <- Logistic(0.5, 2.0)
    sample s <- Wald(m, 2.0)
    observe y[i : Row] <- Normal(m, s)
    return m
"""
CELLS = "object Item : Real 4\nobject State : Real 5\nlet states = scan(lstm(Item, State))\n"


def shown(text: str) -> str:
    answer = hover(*at(text))
    return "" if answer is None else markdown(answer.content)


def test_hover_says_what_a_built_in_family_says_and_where_it_is() -> None:
    said = shown(TEXT.replace("Wald(", "Wa$0ld("))
    assert "Wald(mean, shape)" in said and "Brownian motion" in said and "above 0" in said
    assert "mean is m and shape is 2.0" in said.replace("`", "") and "std/families.qvr" in said
    assert "Long short-term memory" in shown(CELLS.replace("lstm(", "ls$0tm("))
    # in a line that is not whole yet, and so is not checked
    assert "Wald(mean, shape)" in shown(TEXT.replace("Wald(m, 2.0)", "Wa$0ld(m,"))


def test_its_declaration_is_in_the_library() -> None:
    for text, file, header in (
        (TEXT.replace("Wald(", "Wa$0ld("), "std:families.qvr", "family Wald(mean"),
        (CELLS.replace("lstm(", "ls$0tm("), "std:recurrent.qvr", "program lstm(x, h, c"),
    ):
        place = definition_elsewhere(*at(text))
        assert place is not None and place.location == file
        assert place.lines[place.range.start.line].startswith(header)
        assert definition(*at(text)) == []


def test_signatures_while_a_call_is_written() -> None:
    for call in ("Wald($0", "Wald(m, $0", "Wald(m, 2.0$0)"):
        given = signature(*at(TEXT.replace("Wald(m, 2.0)", call)))
        assert given is not None
        assert given.label == "Wald(mean, shape)"
    for call in ("horseshoe($0", "horseshoe(Row, scale=$0"):  # the second cannot be read yet
        given = signature(*at(TEXT.replace("Wald(m, 2.0)", call)))
        assert given is not None
        assert given.label == "horseshoe(J, scale=1.0)"


def labels(text: str) -> list[str]:
    return [item.label for item in complete(*at(text))]


def test_completion_offers_families_behind_those_of_the_language() -> None:
    offered = labels(TEXT.replace("Wald(m, 2.0)", "$0"))
    assert {"Wald", "Logistic", "horseshoe", "garch"} < set(offered)
    assert offered.index("Normal") < offered.index("Wald") < offered.index("horseshoe")
    assert offered.count("Wald") == 1
    observed = labels(TEXT.replace("Normal(m, s)", "$0"))
    assert "Wald" in observed and "horseshoe" not in observed
    assert "mean" in labels(TEXT.replace("Wald(m, 2.0)", "Wald($0"))


def test_completion_offers_cells_where_cells_are_wanted() -> None:
    inside = labels(CELLS.replace("scan(lstm(Item, State))", "scan($0"))
    assert {"lstm", "gru"} < set(inside) and not {"pre_norm", "horseshoe"} & set(inside)
    assert "pre_norm" in labels(CELLS.replace("scan(lstm(Item, State))", "stack($0"))
    own = "program lstm(x) : Real 2 -> Real 2\n    let y = x\n    return y\n"
    assert labels(own + CELLS.replace("scan(lstm(Item, State))", "fan($0")).count("lstm") == 1


def test_such_a_name_is_not_renamed_and_not_taken() -> None:
    refused = rename(*at(TEXT.replace("Wald(", "Wa$0ld(")), "Other")
    assert isinstance(refused, Refusal) and "comes with the package" in refused.message
    refused = rename(*at(TEXT.replace("sample m", "sample $0m")), "Wald")
    assert isinstance(refused, Refusal)


def test_colours_inlays_and_noncentred() -> None:
    snapshot, _ = at("$0" + TEXT)
    whole = Range(Cursor(0, 0), Cursor(len(snapshot.lines), 0))
    kinds = {(token.line, token.column): token.kind for token in tokens(snapshot, whole)}
    assert kinds[2, 16] == kinds[3, 16] == kinds[4, 26] == "class"
    assert [hint.text for hint in inlays(snapshot, whole) if hint.kind == "parameter"] == ["mean=", "shape="]
    text = TEXT.replace("sample s <- Wald(m, 2.0)", "sample s : Row <- Logi$0stic(m, 2.0)")
    snapshot, cursor = at(text.replace("Normal(m, s)", "Normal(s, 1.0)"))
    assert any("non-centred" in one.title for one in refactorings(snapshot, Range(cursor, cursor)))
