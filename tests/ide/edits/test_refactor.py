"""Refactorings keep the meaning: no new problem, the same types."""

from __future__ import annotations

from qvr_core.analysis import Analyzer
from qvr_core.ide.answers import Action
from qvr_core.ide.edits.formatting import edits, indentation
from qvr_core.ide.edits.refactor import organize, refactorings
from qvr_core.syntax.source import Cursor
from tests.ide.cases import LM, PROGRAM, applied, between, errors, text_of

HEAD = LM.partition("let backbone")[0]


def do(text: str, kind: str, title: str = "") -> str:
    snapshot, stretch = between(text)
    found = [action for action in refactorings(snapshot, stretch) if action.kind == kind and title in action.title]
    assert len(found) == 1, found
    return applied(text_of(snapshot), found[0].edits)


def offered(text: str) -> list[Action]:
    return refactorings(*between(text))


def test_extract_a_call() -> None:
    result = do(HEAD + "let y = tok_embed >> $1scan(cell)$2 >> lm_head\n", "refactor.extract")
    assert result.endswith("let y_part = scan(cell)\nlet y = tok_embed >> y_part >> lm_head\n")
    assert not errors(result)


def test_extract_stages_of_a_pipeline() -> None:
    result = do(HEAD + "let y = $1tok_embed >> scan(cell)$2 >> lm_head\n", "refactor.extract")
    assert result.endswith("let y_part = tok_embed >> scan(cell)\nlet y = y_part >> lm_head\n")
    assert not errors(result)


def test_nothing_to_extract_from_half_an_expression() -> None:
    assert not offered(HEAD + "let y = tok_embed $1>> scan(ce$2ll) >> lm_head\n")


def test_inline() -> None:
    text = HEAD + "let inner = tok_embed >> scan(cell)\nlet y = $1$2inner >> lm_head\n"
    result = do(text, "refactor.inline")
    assert result == HEAD + "let y = (tok_embed >> scan(cell)) >> lm_head\n"
    assert not errors(result)


def test_inlining_a_stack_that_is_used_twice_would_unshare_its_layers() -> None:
    text = HEAD + "morphism f : Hidden -> Hidden [role=linear]\nlet de$1$2ep = stack(f, 3)\nlet y = deep >> deep\n"
    assert not [action for action in offered(text) if action.kind == "refactor.inline"]


def test_name_a_space() -> None:
    result = do(HEAD + "morphism f : Hidden -> Re$1$2al 12 [role=linear]\n", "refactor.extract")
    assert result.endswith("object Space : Real 12\nmorphism f : Hidden -> Space [role=linear]\n")
    assert not errors(result)


def test_width_into_a_hole_and_back() -> None:
    text = HEAD.replace("Real 64", "Real $164$2") + (
        "object Wide : Real 64\nmorphism g : Wide -> Hidden [role=linear]\nlet y = tok_embed >> g\n"
    )
    hole = do(text, "refactor.rewrite")
    assert "object Embedded : Real _" in hole
    assert not errors(hole)
    back = do(hole.replace("Real _", "Real $1_$2"), "refactor.rewrite")
    assert back == text.replace("$1", "").replace("$2", "")


def test_organize_orders_declarations_and_takes_comments_along() -> None:
    text = "# the file\n\nlet y = f >> f\n# about f\nmorphism f : A -> A [role=linear]\nobject A : Real 3\n"
    result = applied(text, organize(Analyzer(text).snapshot()))
    assert result == (
        "# the file\n\nobject A : Real 3\n\n# about f\nmorphism f : A -> A [role=linear]\n\nlet y = f >> f\n"
    )
    assert organize(Analyzer(result).snapshot()) == ()


def test_organize_moves_nothing_across_a_composition() -> None:
    """It holds for what comes after it."""
    before, after = "morphism f : A -> A [role=latent]\nobject A : FinSet 3\n", "let g = f >> h\nmorphism h : A -> A\n"
    text = f"{before}\ncomposition godel\n\n# the last\n{after}"
    result = applied(text, organize(Analyzer(text).snapshot()))
    assert result == (
        "object A : FinSet 3\n\nmorphism f : A -> A [role=latent]\n\ncomposition godel\n\n"
        "morphism h : A -> A\n\n# the last\nlet g = f >> h\n"
    )
    assert errors(result) == errors(text) == []
    assert organize(Analyzer(result).snapshot()) == ()


def test_organize_leaves_alone_what_depends_on_its_place() -> None:
    last_let = LM + PROGRAM + "let tail = tok_embed\n"
    assert organize(Analyzer(last_let).snapshot()) == ()


def test_formatting_is_done_and_done() -> None:
    text = "object   A:Real 3\nmorphism f:A->A[role=linear]\n"
    snapshot = Analyzer(text).snapshot()
    result = applied(text, tuple(edits(snapshot)))
    assert result == "object A : Real 3\nmorphism f : A -> A [role=linear]\n"
    assert edits(Analyzer(result).snapshot()) == []


def test_new_line_in_a_program_is_indented() -> None:
    text = LM + "program lm : Token -> Token\n\n"
    line = text.count("\n") - 1
    found = indentation(Analyzer(text).snapshot(), Cursor(line, 0))
    assert [edit.text for edit in found] == ["    "]


def test_a_draw_around_another_one_becomes_non_centred() -> None:
    program = "object S : FinSet 8\nprogram p : S -> S\n    sample tau <- HalfNormal(1.0)\n    sample $1z$2 : S <- {}\n"
    program += "    observe y : S <- Normal(z, 1.0)\n    return z\nexport p\n"
    for draw, after in (
        ("Normal(0.0, exp(tau))", "Normal(0.0, exp(tau)) [noncentred]"),
        ("Normal(0.0, tau) [mask=seen]", "Normal(0.0, tau) [mask=seen, noncentred]"),
    ):
        result = do(program.format(draw), "refactor.rewrite", "Sample `z` non-centred")
        assert f"sample z : S <- {after}\n" in result
        assert not errors(result)
    for draw in ("Normal(0.0, 1.0)", "Gamma(tau, 1.0)", "Normal(0.0, tau) [noncentred]"):
        assert not [action for action in offered(program.format(draw)) if "non-centred" in action.title]
