"""What is offered, in which order."""

from __future__ import annotations

import pytest

from qvr_core.ide.completion.completion import complete
from qvr_core.semantics.language.combinators import POSTFIX
from tests.ide.cases import LM, PROGRAM, at


def labels(text: str, count: int | None = None) -> list[str]:
    return [item.label for item in complete(*at(text))][:count]


def test_after_compose_the_arrows_that_fit_come_first() -> None:
    found = complete(*at(LM + "let y = tok_embed >> scan(cell) >> $0\n"))
    assert found[0].label == "lm_head"
    assert found[0].detail == "Hidden -> Token"
    ranks = {item.label: item.rank for item in found}
    assert ranks["lm_head"] < ranks["cell"]
    assert ranks["lm_head"] < ranks["tok_embed"]
    assert labels(LM + "let y = tok_embed >> lm$0\n", 1) == ["cell"] or "lm_head" in labels(
        LM + "let y = tok_embed >> lm$0\n"
    )


def test_scan_is_offered_cells_first_then_its_keywords() -> None:
    assert labels(LM + "let y = tok_embed >> scan($0)\n", 1) == ["cell"]
    assert labels(LM + "let y = tok_embed >> scan(cell, $0)\n") == ["direction", "emit", "init"]
    assert labels(LM + "let y = tok_embed >> scan(cell, direction=$0)\n") == ["backward", "forward"]


def test_option_keys_are_those_of_the_role() -> None:
    found = complete(*at(LM + "morphism m : Hidden -> Hidden [role=attention, $0]\n"))
    assert {item.label for item in found} == {"heads", "causal", "dropout", "replicate"}
    heads = next(item for item in found if item.label == "heads")
    assert "default 1" in heads.detail
    assert heads.insert == "heads="
    assert "heads" not in labels(LM + "morphism m : Hidden -> Hidden [role=linear, $0]\n")


def test_option_values() -> None:
    assert "attention" in labels(LM + "morphism m : Hidden -> Hidden [role=$0]\n")
    assert labels(LM + "morphism m : Hidden -> Hidden [role=attention, causal=$0]\n") == ["false", "true"]
    assert labels(LM + "morphism m : Hidden -> Hidden [role=kernel, param_source=$0] ~ Normal\n") == ["linear", "mlp"]


def test_families_fit_the_codomain() -> None:
    finite = labels(LM + "morphism m : Hidden -> Token [role=kernel] ~ $0\n")
    assert "Categorical" in finite
    assert "Normal" not in finite
    real = labels(LM + "morphism m : Hidden -> Hidden [role=kernel] ~ $0\n")
    own = "family Own(loc, scale : Real 1 [low=0.0]) : Real 1\n    density(x) = -x^2\n"
    own += "family Trials(total : Nat) : Real 1\n    density(x) = -x^2\n"
    declared = labels(LM + own + "morphism m : Hidden -> Hidden [role=kernel] ~ $0\n")
    assert "Own" in declared[:3]
    assert "Trials" not in declared
    assert real[0] == "Normal"
    assert "Categorical" not in real
    assert "LogNormal" not in labels(
        LM + "object Unit : Real 1 [low=0.0, high=1.0]\nmorphism m : Hidden -> Unit ~ $0\n"
    )


@pytest.mark.parametrize(
    "head", ["object X : $0", "morphism m : $0", "morphism m : Token -> $0", "program p : Token * $0"]
)
def test_objects_where_objects_stand(head: str) -> None:
    found = labels(LM + head + "\n")
    assert {"Token", "Embedded", "Hidden"} <= set(found)
    assert "cell" not in found
    assert "Real" in found


def test_statements_at_the_beginning_of_a_line() -> None:
    found = labels(LM + "$0")
    assert {"object", "morphism", "let", "program", "export"} <= set(found)
    assert "sample" not in found


def test_steps_inside_a_program() -> None:
    text = LM + "program lm : Token -> Token\n    sample h <- backbone\n    $0\n"
    steps = {"data", "sample", "observe", "predict", "marginalize", "let", "score", "return"}
    assert set(labels(text)) == steps
    guide = text.replace("program lm : Token -> Token", "program g : Token -> Token [guide=lm]")
    assert "param" in labels(LM + PROGRAM + guide.removeprefix(LM))


def test_after_the_arrow_of_a_draw_arrows_and_families_with_their_arguments() -> None:
    found = complete(*at(LM + "program lm : Token -> Token\n    sample h <- $0\n    return h\n"))
    by_label = {item.label: item for item in found}
    assert by_label["lm_head"].insert == "lm_head(${1:hidden})"
    assert by_label["Normal"].insert == "Normal(${1:loc}, ${2:scale})"
    assert by_label["Normal"].snippet


def test_bound_names_in_arithmetic_and_in_return() -> None:
    head = LM + "program lm : Token -> Token\n    sample h <- backbone\n"
    assert labels(head + "    let z = $0\n", 1) == ["h"]
    assert "sigmoid" in labels(head + "    let z = sig$0\n")
    assert labels(head + "    return $0\n") == ["h"]
    assert labels(head + "    observe y <- Normal($0\n")[0] == "h"


def test_parameters_of_a_family() -> None:
    found = labels(LM + "program lm : Token -> Token\n    sample h <- Normal($0)\n    return h\n")
    assert {"loc", "scale"} <= set(found)


def test_nothing_in_comments_and_strings() -> None:
    assert labels(LM + "# let y = tok_embed >> $0\n") == []
    assert labels(LM + 'let y = from_data("$0\n') == []


def test_postfix_of_tensor_arrows_only() -> None:
    tensor = "object I : FinSet 3\nmorphism t : I -> I [role=latent]\n"
    assert set(labels(LM + tensor + "let y = t.$0\n")) == set(POSTFIX)
    assert labels(LM + "let y = cell.$0\n") == []


def test_cells_are_offered_as_scans_of_what_stands_on_the_left() -> None:
    assert labels(LM + "let y = tok_embed >> $0\n", 1) == ["scan(cell)"]
    assert "scan(cell)" not in labels(LM + "let y = backbone >> $0\n")


def test_draws_have_the_arguments_that_fit() -> None:
    head = LM + "program lm : Token -> Token\n    sample h <- backbone\n    observe y <- $0\n    return y\n"
    found = {item.label: item for item in complete(*at(head))}
    assert found["lm_head"].insert == "lm_head(${1:h})"
    assert found["lm_head"].rank < found["backbone"].rank < found["cell"].rank
    assert found["cell"].insert == "cell(${1:embedded}, ${2:hidden})"
    assert "lm" not in found, "a program that draws from itself"
    first = complete(*at(LM + "program lm : Token -> Token\n    sample h <- $0\n    return h\n"))
    assert (first[0].label, first[0].insert, first[0].snippet) == ("backbone", "backbone", False)
    inputs = "program q(e, s) : Embedded * Hidden -> Hidden\n    sample n <- $0\n    return n\n"
    found = {item.label: item for item in complete(*at(LM + inputs))}
    assert found["cell"].insert == "cell(${1:e}, ${2:s})"


def test_roles_that_join_the_two_spaces_come_first() -> None:
    assert labels(LM + "morphism m : Token -> Hidden [role=$0]\n", 2) == ["embed", "kernel"]
    assert labels(LM + "morphism m : Hidden -> Hidden [role=$0]\n") == [
        "kernel", "linear", "norm", "attention", "position", "dropout", "conv", "batch_norm",
    ]  # fmt: skip
    windows = "morphism m : Real 1 9 9 -> Real 4 CODOMAIN [role=$0]\n"
    assert labels(LM + windows.replace("CODOMAIN", "7 7")) == ["kernel", "linear", "conv", "pool"]
    assert labels(LM + windows.replace("CODOMAIN", "63")) == ["kernel", "linear"]
    unit = LM + "object Unit : Real 1 [low=0.0, high=1.0]\n"
    assert "discretize" in labels(unit + "morphism m : Unit -> FinSet 4 [role=$0]\n")
    assert "discretize" not in labels(unit + "morphism m : Hidden -> FinSet 4 [role=$0]\n")


def test_a_head_is_tied_to_what_has_a_matrix() -> None:
    assert labels(LM + "morphism m : Hidden -> Token [role=kernel, tie=$0]\n") == ["tok_embed"]


def test_options_and_family_behind_the_type_of_a_morphism() -> None:
    assert labels(LM + "morphism m : Hidden -> Token $0\n") == ["[role=…]", "~ Categorical"]
    assert labels(LM + "morphism m : Hidden -> Hidden [role=kernel] $0\n") == ["~ Normal"]
    assert labels(LM + "morphism m : Hidden -> Hidden [role=linear] $0\n") == []


def test_object_is_not_offered_to_itself() -> None:
    assert "X" not in labels(LM + "object X : $0\n")


def test_every_place_of_a_program_has_an_answer() -> None:
    text = LM + PROGRAM
    for offset in range(len(text) + 1):
        complete(*at(text[:offset] + "$0" + text[offset:]))
