"""What hovering says."""

from __future__ import annotations

from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.ide.hover import hover
from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.prose import markdown as rendered
from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.syntax.source import Cursor
from tests.ide.cases import LM, PROGRAM, at

BIDIRECTIONAL = LM + (
    "morphism bwd_cell : Embedded * Hidden -> Hidden ~ Normal\n"
    "morphism combine : Hidden * Hidden -> Hidden ~ Normal\n"
    "let both = tok_embed >> fan(scan(cell), scan(bwd_cell)) >> combine\n"
)


def markdown(text: str) -> str:
    answer = hover(*at(text))
    assert answer is not None
    return rendered(answer.content)


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        (
            "object Tok$0en",
            ["object Token : FinSet 256", "What the tokens are.", "Used by `tok_embed`, `lm_head`, `lm`"],
        ),
        (
            "morphism ce$0ll",
            ["cell : Embedded * Hidden -> Hidden", "64 + 128 = 192", "starts with a scale of 0.1", "33,152 parameters"],
        ),
        ("let back$0bone", ["backbone : Seq Token -> Hidden", "Seq Token → Seq Embedded → Hidden", "1 innovation"]),
        ("tok_embed >$0>", ["Left gives Seq Embedded", "right wants Seq Embedded"]),
        ("sc$0an(cell)", ["scan : Seq Embedded -> Hidden", "`(B, L, 64) -> (B, 128)`", "final state"]),
        ("program l$0m", ["program lm : Seq Token -> Token", "Latent: `h`", "Observed: `next_token`", "78,592"]),
        ("sample $0h", ["h : Hidden", "latent", "from `backbone`", "(B, 128)"]),
        ("observe next_t$0oken", ["next_token : Token", "observed", "(B,)"]),
        ("lm_head($0h)", ["h : Hidden"]),
        ("morphism tok_emb$0ed", ["`=>`: it computes its result", "(`B`: rows of a batch)"]),
        ("sc$0an(cell)", ["(`B`: rows of a batch, `L`: positions of a sequence)"]),
        ("sample $0h", ["from `backbone` · 128 numbers"]),
        ("observe next_t$0oken", ["observed · from `lm_head` · one token", "exact, not estimated from samples"]),
        ("ro$0le=embed", ["What kind of arrow this is", "Default: kernel"]),
        ("sca$0le=0.1", ["standard deviation", "Default: 1.0", "above 0"]),
        ("~ Cate$0gorical", ["Categorical(probs)", "probabilities that sum to 1"]),
        ("obj$0ect Token", ["sets to index by", "object Token : FinSet 256", "A set of 256 elements."]),
        ("~ Cate$0gorical", ["give `probs` (probabilities that sum to 1) for each input"]),
        ("let back$0bone", ["given 1 innovation: the standardised noise of the draw inside"]),
        ("FinS$0et 256", ["A finite set"]),
        ("<$0- backbone", ["Draws v"]),
    ],
)
def test_hover(marked: str, words: list[str]) -> None:
    plain = marked.replace("$0", "")
    text = LM + PROGRAM
    assert plain in text, plain
    found = markdown(text.replace(plain, marked, 1))
    for word in words:
        assert word in found, found


@pytest.mark.parametrize(
    ("step", "shape"),
    [
        ("sample $0z : School <- Normal(0.0, 1.0)", "(8,)"),
        ("sample $0t : School <- Dirichlet([1.0, 1.0, 1.0])", "(8, 3)"),
        ("sample $0k : School <- Categorical([0.5, 0.5])", "(8,)"),
        ("observe $0y : School <- Normal(0.0, spread)", "(8,)"),
    ],
)
def test_shapes_of_plates(step: str, shape: str) -> None:
    name = step.partition("$0")[2].partition(" ")[0]
    found = markdown(f"object School : FinSet 8\nprogram p : School -> School\n    {step}\n    return {name}\n")
    assert f"shape: `{shape}`" in found.lower() or f"shape `{shape}`" in found, found
    assert "for each school" in found or "per element of School" in found


CELLS = (Path(__file__).resolve().parents[2] / "examples" / "mogrifier_rlstm_lm.qvr").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("let st$0ates", ["states : Seq Token => Seq (Hidden * Hidden)", "`(B, L) -> (B, L, 64), (B, L, 64)`"]),
        ("let back$0bone", ["Seq Token => Seq ", "`(B, L) -> (B, L, 64)`"]),
        ("(tok$0ens)", ["tokens : Seq Token", "`(B, L)`"]),
        ("let $0h = backbone", ["let h", "Seq Real 64"]),
        ("observe next_$0token", ["next_token : Seq Token", "`(B, L)`"]),
        ("(h$03, c2) = rlstm", ["let h3\n", "Real 64 ·"]),
        ("(x2, h$02) = mogrified", ["let h2\n", "Real 64 ·"]),
        ("let mogri$0fied", ["Embedded * Hidden => Embedded * Hidden", "8,320 parameters"]),
    ],
)
def test_hover_in_a_cell_and_behind_its_scan(marked: str, words: list[str]) -> None:
    plain = marked.replace("$0", "")
    assert plain in CELLS, plain
    found = markdown(CELLS.replace(plain, marked, 1))
    for word in words:
        assert word in found, found


def test_inferred_direction_is_told() -> None:
    found = markdown(BIDIRECTIONAL.replace("let both", "let bo$0th"))
    assert "`bwd_cell` reads the sequence from its end (read off the name)" in found
    assert "`cell` reads the sequence from its start" in found


def test_replicated_arrow_counts_all_its_copies() -> None:
    found = markdown(LM + "morphism to$0p : Hidden -> Hidden [role=linear, replicate=3]\nlet y = fan(top)\n")
    assert "3 independent copies, `top_0` … `top_2`" in found
    assert f"{3 * (128 * 128 + 128):,} parameters" in found


def test_layers_of_a_stack_count_each_for_itself() -> None:
    base = LM + "morphism top : Hidden -> Hidden [role=linear]\n"
    one = 128 * 128 + 128
    assert f"{4 * one:,} parameters" in markdown(base + "let de$0ep = stack(top, 4)\n")
    assert f"{one:,} parameters" in markdown(base + "let sa$0me = repeat(top, 4)\n")
    assert f"{one:,} parameters" in markdown(base + "let tw$0ice = top >> top\n")


def test_replicated_arrow_of_unknown_size_is_no_obstacle() -> None:
    text = "object A : Real _\nmorphism to$0p : A -> A [role=linear, replicate=3]\nlet y = fan(top)\n"
    assert "3 independent copies" in markdown(text)


def test_data_names_are_told() -> None:
    text = "object P : Real 1\nprogram p : P -> P\n    observe y <- Normal(off$0set, 1.0)\n    return y\n"
    assert "Data, given to `p`." in markdown(text)


def test_damaged_declaration_silences_no_other() -> None:
    found = markdown(LM + "let broken = tok_embed >> >>\nlet fi$0ne = tok_embed >> scan(cell)\n")
    assert "fine : Seq Token -> Hidden" in found


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_explains_itself(name: str) -> None:
    found = markdown(f"object A : Real 1\nmorphism f : A -> A ~ {name[:1]}$0{name[1:]}\n")
    for parameter in FAMILIES[name].parameters:
        assert f"`{parameter.name}`" in found
    assert "Support:" in found


@pytest.mark.parametrize("name", COMBINATORS)
def test_every_combinator_explains_itself(name: str) -> None:
    assert COMBINATORS[name].summary in markdown(LM + f"let y = {name[:1]}$0{name[1:]}(cell)\n")


@pytest.mark.parametrize("word", [keyword for keyword in KEYWORDS if keyword not in ("factor",)])
def test_examples_of_keywords_are_readable(word: str) -> None:
    assert KEYWORDS[word].summary.endswith(".")
    assert KEYWORDS[word].example


def test_every_place_has_an_answer_or_none() -> None:
    snapshot = Analyzer(BIDIRECTIONAL + PROGRAM).snapshot()
    answered = 0
    for line, text in enumerate(snapshot.lines):
        for column in range(len(text) + 1):
            answer = hover(snapshot, Cursor(line, column))
            if answer is not None:
                answered += 1
                assert rendered(answer.content)
                assert answer.range.start <= Cursor(line, column) <= answer.range.end
    assert answered > sum(map(len, snapshot.lines)) / 3


def test_an_encoder_over_padded_rows_says_what_is_a_sequence_and_what_each_row_brings() -> None:
    text = (Path(__file__).parents[2] / "examples" / "bert_pretraining.qvr").read_text(encoding="utf-8")

    def told(old: str) -> str:
        assert text.count(old.replace("$0", "")) == 1
        return markdown(text.replace(old.replace("$0", ""), old))

    assert "encoder : Seq (Token * Segment) => Seq Hidden" in told("let enc$0oder")
    assert "masked_token : Seq Token" in told("observe masked_$0token")
    assert "466,746 parameters" in told("program bert_$0pretraining")
    assert "differs from row to row" in told("at=sel$0ected")
    assert "Data, given to `bert_pretraining`." in told("[lengths=va$0lid]")
    assert "Attention sees no others" in told("[len$0gths=")


OPERATORS = """\
object A : Real 2
object B : Real 3
object Row : FinSet 9
morphism f, h : A -> A [role=linear]
morphism g : B -> B [role=linear]
morphism k : B -> A [role=linear]
let both = (f @ g) >> (h.freeze @ k)
program p : Row -> Row
    sample w : Row <- Normal(0.0, 1.0)
    let mu = w * 2.0 + 1.0  # a @ b
    observe y : Row <- Normal(mu * (w > 0.5), 1.0)
    return w
morphism u : A * B -> A [role=linear]
export u
"""


@pytest.mark.parametrize(
    ("sign", "words"),
    [
        ("f @ g", ["f @ g", "Side by side", "`A * B => A * B`"]),
        ("h.freeze @ k", ["f @ g", "Side by side", "`A * B => A * A`"]),
        (") >> (", ["Left gives A * B", "right wants A * B"]),
        ("w * 2.0", ["x * y", "The product, element by element", "Gives `Row`"]),
        ("w > 0.5", ["x > y", "1 where it holds, 0 elsewhere", "Gives `Row`"]),
        ("mu * (w", ["x * y", "The product, element by element"]),
        ("A * B ->", ["A * B", "Widths of real spaces add"]),
    ],
)
def test_an_operator_says_what_it_joins(sign: str, words: list[str]) -> None:
    place = OPERATORS.index(sign) + sign.index(" ") + 1
    found = markdown(f"{OPERATORS[:place]}$0{OPERATORS[place:]}")
    assert [word for word in words if word not in found] == []


def test_a_sign_in_a_comment_is_no_operator() -> None:
    place = OPERATORS.index("a @ b") + 2
    assert hover(*at(f"{OPERATORS[:place]}$0{OPERATORS[place:]}")) is None


def test_a_label_as_an_index_is_an_element_of_its_set() -> None:
    text = "object Pet : {cat, dog}\nobject Row : FinSet 4\n"
    text += "program p : Row -> Row\n    sample u : Pet <- Normal(0.0, 1.0)\n"
    text += "    observe y : Row <- Normal(u[d$0og], 1.0)\n    return u\n"
    assert markdown(text) == "`dog`: an element of `Pet`, whose labels are `cat`, `dog`"


def test_declared_data_show_their_type() -> None:
    steps = "    data county : House -> County\n    return county\n"
    text = f"object County, House : FinSet _\nprogram p : House -> House\n{steps}"
    shown = str(hover(Analyzer(text).snapshot(), Cursor(2, 11)))
    assert "data county : House -> County" in shown


def test_weights_with_a_prior_are_latent_numbers() -> None:
    text = (
        "object Row : FinSet 5\nmorphism w : Real 2 -> Real 1 [role=linear] ~ Normal(0.0, 1.0)\n"
        "program p : Row -> Real 1\n    data x : Row -> Real 2\n    let m = w(x)\n"
        "    observe y : Row <- Normal(m, 1.0)\n    return m\n"
    )
    said = markdown(text.replace("morphism w", "morphism $0w"))
    assert "3 latent numbers, each drawn from `Normal(0, 1)`" in said and "parameters" not in said
    assert "Latent: `w`" in markdown(text.replace("program p", "program $0p"))


def test_the_branches_of_a_fan_are_told_in_words() -> None:
    found = markdown(LM + "let two = f$0an(tok_embed, backbone)\n")
    assert "Each of its 2 branches reads the same `Seq Token`" in found
    assert "one part for each of them, in order:" in found
    assert "branches" not in markdown(LM + "let one = f$0an(tok_embed)\n")


def test_a_size_that_comes_with_the_data_says_so() -> None:
    assert "comes with the data" in markdown("object County : FinSet $0_\n")


@pytest.mark.parametrize("family", ["Binomial(5, 0.5)", "BetaBinomial(5, 1.0, 2.0)"])
def test_a_count_that_ends_says_where(family: str) -> None:
    marked = f"program p : Real 1 -> Real 1\n    sample k <- {family.replace('B', 'B$0', 1)}\n    return k\n"
    assert "Support: counts 0, 1, …, total" in markdown(marked)
    endless = marked.replace(family.replace("B", "B$0", 1), "Po$0isson(2.0)")
    assert "Support: counts 0, 1, 2, …" in markdown(endless)


def test_a_network_says_what_it_gives_and_lists_no_arguments() -> None:
    found = markdown((LM + PROGRAM).replace("~ Categorical", "~ Cate$0gorical", 1))
    assert "no arguments are written" in found and "also called" not in found


def test_a_draw_says_what_its_arrow_scores_and_observes() -> None:
    declared = "object X : Real 1\nprogram step(z) : X -> X\n    sample e <- Normal(z, 0.5)\n    score k = -e ^ 2\n"
    text = f"{declared}    observe o <- Normal(e, 1.0)\n    return e\nlet walk = stack(step, 3)\n"
    lines = f"{text}program m(x) : X -> X\n    sample zz <- walk(x)\n    return zz\n".splitlines()
    found = hover(Analyzer("\n".join(lines)).snapshot(), Cursor(8, lines[8].index("zz")))
    assert found is not None
    words = "Its arrow scores `zz.k` (one a step) and observes `zz.o` (one a step): terms of the log joint density."
    assert words in rendered(found.content)
