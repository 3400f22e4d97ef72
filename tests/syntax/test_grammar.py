"""What parses, and into what."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qvr_core.syntax.grammar import COMPILED, STARTS, compiled_grammar, serialized
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tree.arithmetic import Arith, Binary, Comprehension, Gather, Literal, ParenArith, TupleArith
from qvr_core.syntax.tree.arrows import ComposeExpr
from qvr_core.syntax.tree.declarations import Header, LetDecl, MorphismDecl, ObjectDecl
from qvr_core.syntax.tree.deductions import RuleItem
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import EnumExpr, ProductExpr, SpaceExpr
from qvr_core.syntax.tree.steps import LetStep, ObserveStep, SampleStep, Step
from qvr_core.syntax.tree_to_text import to_lines, to_text
from qvr_core.syntax.units import parse_unit
from qvr_core.syntax.walk import walk
from tests.syntax.generated import sentence
from tests.syntax.parsing import parse_text
from tests.syntax.samples import SAMPLES


def test_the_compiled_table_is_that_of_the_grammar() -> None:
    """After a change of grammar.lark run `python -m qvr_core.syntax.grammar`."""
    assert json.loads(COMPILED.read_text(encoding="utf-8")) == json.loads(json.dumps(serialized(compiled_grammar())))


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_clean(name: str) -> None:
    statements, problems = parse_text(SAMPLES[name])
    assert [p for _, p in problems if p.code != "unindented-body"] == []
    assert all(placed.unit.node is not None for s in statements for placed in units_of(s))


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.sampled_from(STARTS))
def test_every_sentence_of_the_grammar_parses(seed: int, start: str) -> None:
    text = sentence(random.Random(seed), start)
    unit = parse_unit(start, text)
    assert unit.node is not None, text
    assert [p for p in unit.problems if p.severity == "error"] == [], text


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.sampled_from(STARTS), st.sampled_from([20, 60, 120]))
def test_a_printed_tree_parses_to_itself(seed: int, start: str, width: int) -> None:
    node = parse_unit(start, sentence(random.Random(seed), start)).node
    for text in (to_text(node), "\n".join(to_lines(node, 0, width))):
        assert to_text(parse_unit(start, text).node) == to_text(node)


UNRESERVED = (
    *("factor", "in", "as", "from", "atoms", "rule", "lexicon", "binders"),
    *("data", "predict", "def", "family", "for", "if"),
)


def step(text: str) -> Step:
    unit = parse_unit("step", text)
    assert unit.problems == () and unit.node is not None
    return unit.node


def statement(text: str) -> Header:
    unit = parse_unit("statement", text)
    assert unit.problems == () and unit.node is not None
    return unit.node


def value(text: str) -> Arith:
    found = step(f"let v = {text}")
    assert isinstance(found, LetStep)
    return found.value


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("-a ^ b", "-(a ^ b)"),
        ("a ^ b ^ c", "a ^ (b ^ c)"),
        ("a * -b", "a * (-b)"),
        ("a < b + c", "a < (b + c)"),
        ("x -> x + 1 < 2", "x -> ((x + 1) < 2)"),
        ("2 * factor i : I in x[i] + 1", "2 * (factor i : I in (x[i] + 1))"),
        ("a / b / c", "(a / b) / c"),
        ("x.f[0].m(1) ^ 2", "((x.f)[0]).m(1) ^ 2"),
    ],
)
def test_precedence(text: str, grouped: str) -> None:
    assert _bare(value(text)) == _bare(value(grouped))


def _bare(node: object) -> object:
    """The tree without spans and parentheses."""
    if isinstance(node, ParenArith):
        return _bare(node.inner)
    if isinstance(node, tuple) and not isinstance(node, Span):
        return tuple(map(_bare, node))
    if hasattr(node, "__dataclass_fields__"):
        names = [n for n in node.__dataclass_fields__ if n not in ("span", "operator_span")]
        return type(node).__name__, [_bare(getattr(node, n)) for n in names]
    return node


def test_tensor_binds_tighter_than_composition() -> None:
    found = statement("let f = a >> b @ c >> d")
    assert isinstance(found, LetDecl) and isinstance(found.value, ComposeExpr)
    assert [type(stage).__name__ for stage in found.value.stages] == ["ArrowRef", "TensorExpr", "ArrowRef"]


def test_a_bracket_of_bounds_belongs_to_the_space() -> None:
    found = statement("morphism f : A -> Real 2 [low=0.0, high=1] [role=kernel]")
    assert isinstance(found, MorphismDecl) and isinstance(found.codomain, SpaceExpr)
    assert found.codomain.options and [o.key.text for o in found.codomain.options.items] == ["low", "high"]
    assert found.options and [o.key.text for o in found.options.items] == ["role"]


@pytest.mark.parametrize("text", ["A -> Real 2 [role=kernel, low=0.0]", "A -> B [low=0.0]"])
def test_other_brackets_belong_to_the_declaration(text: str) -> None:
    found = statement(f"morphism f : {text}")
    assert isinstance(found, MorphismDecl) and found.options is not None


@pytest.mark.parametrize(
    "text",
    ["sample h <- tok >> scan(cell)", "sample h <- (a @ b)", "sample h <- f.dagger", "sample h <- fan(f, g) [via=z]"],
)
def test_an_anonymous_arrow_in_a_draw_is_kept_as_an_expression(text: str) -> None:
    found = step(text)
    assert isinstance(found, SampleStep) and found.draw.expression is not None


def test_a_draw_with_arguments_is_a_name_with_arithmetic() -> None:
    found = step("observe y : Item <- Normal(mu[person, 0] * 2, scale=-s.x) [via=item]")
    assert isinstance(found, ObserveStep) and found.draw.expression is None
    assert found.draw.args and [a.key and a.key.text for a in found.draw.args] == [None, "scale"]


@pytest.mark.parametrize("word", UNRESERVED)
def test_words_that_are_special_only_in_their_place_are_names(word: str) -> None:
    assert isinstance(value(f"{word} * {word}(2)"), Binary)
    assert isinstance(step(f"sample {word} <- {word}({word}, {word}={word})"), SampleStep)
    assert isinstance(statement(f"object {word}, x : {word} * {word}"), ObjectDecl)
    assert isinstance(statement(f"let {word} = {word} >> {word}.{word}"), LetDecl)


@pytest.mark.parametrize("word", ["let", "sample", "object", "Real", "FinSet", "return", "Seq", "score"])
def test_any_word_is_an_option_key_a_value_or_a_field(word: str) -> None:
    assert isinstance(step(f"sample v <- f(x.{word}) [{word}={word}, {word}]"), SampleStep)


def test_words_are_plain_inside_a_deduction() -> None:
    unit = parse_unit("deduction_item", "rule let : sample(Real, let) |- object #[let]")
    assert unit.problems == () and isinstance(unit.node, RuleItem)


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("1.5", 1.5), (".5", 0.5), ("5.", 5.0), ("1e-3", 1e-3), ("+2", 2), ("12E2", 1200.0)]
)
def test_numbers(text: str, number: float) -> None:
    found = value(text)
    assert isinstance(found, Literal) and found.value == number and type(found.value) is type(number)


def test_indices_and_first_elements_of_a_step() -> None:
    text = "sample (u, v)[p : Person * Item, e : Effect] : Real 2 <- Normal(m, s) [noncentred] from (u0, v0) [keep=[u]]"
    found = step(text)
    assert isinstance(found, SampleStep) and found.bracket is not None and found.options is not None
    assert text[slice(*found.bracket)] == "[p : Person * Item, e : Effect]"
    assert [text[slice(*binder.span)] for binder in found.binders] == ["p : Person * Item", "e : Effect"]
    assert isinstance(found.start, TupleArith) and text[slice(*found.start.span)] == "(u0, v0)"
    assert [option.key.text for option in found.options.items] == ["noncentred", "keep"]


@pytest.mark.parametrize(
    ("start", "indexed", "options"),
    [
        ("v0[i]", True, 0),
        ("v0 [i]", True, 0),
        ("f(x)[0]", True, 0),
        ("f(x)[i] + 1", True, 0),
        ("f(x) [noncentred]", False, 1),
        ("f(x) [noncentred, keep=[a]] [b]", False, 3),
        ("v0[i] [keep=true]", True, 1),
        ("v0 [keep=true]", False, 1),
        ("(a, b) [noncentred]", False, 1),
    ],
)
def test_a_bracket_behind_from_is_an_index_or_holds_options(start: str, indexed: bool, options: int) -> None:
    found = step(f"sample v[t : T] <- Normal(v[t - 1], s) from {start}")
    assert isinstance(found, SampleStep) and found.start is not None
    assert any(isinstance(node, Gather) for node in walk(found.start)) == indexed
    assert len(found.options.items if found.options is not None else ()) == options


def test_a_comprehension_keeps_its_parts() -> None:
    found = value("prod(x[i] * y -> y for i : I, j : FinSet 3 if i == j)")
    assert isinstance(found, Comprehension) and isinstance(found.body, Binary)
    assert found.function.text == "prod" and [binder.name.text for binder in found.binders] == ["i", "j"]
    assert isinstance(found.condition, Binary)


def test_labels_in_quotes_are_told_from_others() -> None:
    text = r'object Firm : {"General \"Motors\"", ford}'
    found = statement(text)
    assert isinstance(found, ObjectDecl) and isinstance(found.space, EnumExpr)
    quoted, plain = found.space.labels
    assert (quoted.text, quoted.quoted, plain.quoted) == ('General "Motors"', True, False)
    assert text[slice(*quoted.span)] == r'"General \"Motors\""'


def test_a_comparison_with_a_negative_number_needs_no_blank() -> None:
    assert _bare(value("where(x <-1, a, b)")) == _bare(value("where(x < -1, a, b)"))


def test_escapes_in_strings() -> None:
    found = value(r'"a\n\"b\" é \q \\"')
    assert isinstance(found, Literal) and found.value == 'a\n"b" é q \\'


def test_spans_cover_what_was_written() -> None:
    text = "morphism f, g : A * (B + C) -> Real 3 [role=kernel] ~ Normal(0.0, -1)"
    found = statement(text)
    assert isinstance(found, MorphismDecl) and isinstance(found.domain, ProductExpr)
    assert found.span == (0, len(text))
    shown = [text[s.start : s.end] for s in (found.domain.span, found.domain.operators[0], found.names[1].span)]
    assert shown == ["A * (B + C)", "*", "g"]
    assert found.init and text[slice(*found.init.span)] == "Normal(0.0, -1)"
