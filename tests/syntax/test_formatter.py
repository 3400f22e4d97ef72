"""The formatter: canonical, idempotent, and never at the cost of meaning."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from qvr_core.syntax.formatter import format_edits, format_text, same_tree
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor, SourceText
from qvr_core.syntax.statements import Document, is_damaged
from qvr_core.syntax.tree.units import Statement
from tests.syntax.generated import sentence
from tests.syntax.parsing import parse_text
from tests.syntax.samples import LSTM, PIECES, RNN, SAMPLES

MESSY = """\


object   A,B:FinSet   3
object Row:FinSet _   # rows



# about f


morphism f:A*B->Real 3[low=0.0,high=1.0,][role = kernel,scale=0.1,]~Normal( 0.0,scale=- 1 )
program p(a,b):A*B->Real 3 :
  sample ( x,y )<-f( a,b )[ via=z ]   # draws

  # about z


  marginalize z:K<-Categorical( p )[over=G]
      # inside
      observe w<-Normal(x [ 0 ]+-y^2*( a-b ),1.)
  return x
  # the end
export p"""

NEAT = """\
object A, B : FinSet 3
object Row : FinSet _  # rows


# about f


morphism f : A * B -> Real 3 [low=0.0, high=1.0] [role=kernel, scale=0.1] ~ Normal(0.0, scale=-1)

program p(a, b) : A * B -> Real 3
    sample (x, y) <- f(a, b) [via=z]  # draws

    # about z

    marginalize z : K <- Categorical(p) [over=G]
        # inside
        observe w <- Normal(x[0] + -y^2 * (a - b), 1.)
    return x
    # the end

export p
"""


def test_canonical_layout() -> None:
    assert format_text(MESSY) == NEAT


def test_canonical_layout_of_indices_data_and_functions() -> None:
    """Options stand behind `from` where they cannot be read as an index there, and in front of it otherwise."""
    messy = """\
def  f( x,k=1.0 )=x/k
def g(x) :
  let y=x
  return y
family  F(a,b:Real 1[low=0.0])   : Real 1
  density( x )=-( x-a )
object Firm:{ "General Motors",ford , }
program p(sd:Real=1.0) : Row->Row
  data   a,b:Row->County   # columns
  data n:Nat
  let  (l,b) [t:Time]=( e1,e2 )
           from (l0,b0)
  let k[ s:Time,t : Time, ]=sum( x[s] *y[ t ]  for  f:F,g : G if  f==g )
  sample h[t:Time]:Real 1<-Normal( h[t-1],s )[noncentred]   from  Normal( 0.0,s )
  sample h2[t:Time]<-Normal(h[t-1],s)  from v0[ 0 ]  [keep=true]
  sample h3[t:Time]<-Normal(h[t-1],s)[noncentred]  from v0
  predict  y[i:Row]<-Normal(sum(x,over=( Row,F )),s)
  return y
"""
    neat = """\
def f(x, k = 1.0) = x / k

def g(x)
    let y = x
    return y

family F(a, b : Real 1 [low=0.0]) : Real 1
    density(x) = -(x - a)

object Firm : {"General Motors", ford}

program p(sd : Real = 1.0) : Row -> Row
    data a, b : Row -> County  # columns
    data n : Nat
    let (l, b)[t : Time] = (e1, e2) from (l0, b0)
    let k[s : Time, t : Time] = sum(x[s] * y[t] for f : F, g : G if f == g)
    sample h[t : Time] : Real 1 <- Normal(h[t - 1], s) from Normal(0.0, s) [noncentred]
    sample h2[t : Time] <- Normal(h[t - 1], s) from v0[0] [keep=true]
    sample h3[t : Time] <- Normal(h[t - 1], s) [noncentred] from v0
    predict y[i : Row] <- Normal(sum(x, over=(Row, F)), s)
    return y
"""
    assert format_text(messy) == neat
    assert format_text(neat) == neat


def test_what_does_not_fit_breaks_before_from_and_inside_a_comprehension() -> None:
    term = "coefficient_of_the_level[group[i], feature]"
    text = f"program p : A -> B\n    let level[t : Time] = {term} * {term} from first_{term}\n    let y = sum({term} * "
    text += f"{term} for feature : Feature, i : Row if t > 3)\n"
    assert format_text(text) == (
        f"program p : A -> B\n    let level[t : Time] = {term} * {term}\n        from first_{term}\n    let y = sum(\n"
        f"        {term} * {term}\n        for feature : Feature, i : Row\n        if t > 3\n    )\n"
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_formatting_twice_is_formatting_once(name: str) -> None:
    once = format_text(SAMPLES[name])
    assert format_text(once) == once
    assert parse_text(once)[1] == []


def test_the_seeds_are_canonical() -> None:
    assert format_text(RNN) == RNN
    assert format_text(LSTM) == LSTM


def test_long_chains_break_before_operators_and_long_lists_inside_brackets() -> None:
    stages = " >> ".join(f"stage_{i}" for i in range(14))
    arguments = ", ".join(f"argument_{i}" for i in range(14))
    assert format_text(f"let f = {stages}\nlet g = fan({arguments})\n") == (
        "let f = stage_0\n"
        + "".join(f"    >> stage_{i}\n" for i in range(1, 14))
        + "let g = fan(\n"
        + ",\n".join(f"    argument_{i}" for i in range(14))
        + "\n)\n"
    )


def test_comments_between_the_lines_of_a_unit_keep_its_lines() -> None:
    text = "program p : A -> B\n  let x = f(\n    a,  # first\n    # second\n      b\n  )\n  return x\n"
    assert format_text(text) == (
        "program p : A -> B\n    let x = f(\n      a,  # first\n      # second\n        b\n    )\n    return x\n"
    )


def test_a_stripped_body_is_indented() -> None:
    text = "program p : A -> B\nsample x <- f\n# note\nmarginalize z <- g\nobserve y <- z\nreturn x\n"
    assert format_text(text) == (
        "program p : A -> B\n    sample x <- f\n    # note\n    marginalize z <- g\n        observe y <- z\n"
        "    return x\n"
    )


def test_damaged_statements_stay_as_they_are() -> None:
    text = "object  A:FinSet 3\nlet   f = = a  \nprogram p:A->B\n    let  x=(\n  return   x\nobject   B:Real 1\n"
    assert format_text(text) == (
        "object A : FinSet 3\nlet   f = = a  \n\nprogram p:A->B\n    let  x=(\n  return   x\n\nobject B : Real 1\n"
    )


def test_line_endings_and_byte_order_mark_are_kept() -> None:
    assert format_text("\ufeffobject A:Real 1\r\nlet f=a\r\n") == "\ufeffobject A : Real 1\r\nlet f = a\r\n"


@pytest.mark.parametrize("text", ["", "\n\n", "   \n"])
def test_nothing_stays_nothing(text: str) -> None:
    assert format_text(text) == ""


def test_comments_alone() -> None:
    assert format_text("\n#a\n\n\n\n  #b") == "#a\n\n\n#b\n"


# ---------------------------------------------------------------- alignment


def test_an_aligned_run_stays_aligned() -> None:
    text = "object A      : FinSet 3\nobject Longer : Real 2\nobject B      : Real 1\n"
    assert format_text(text) == text


def test_an_edit_in_an_aligned_run_aligns_it_again() -> None:
    text = "object A      : FinSet 3\nobject MuchLonger : Real 2\nobject B      : Real 1\nobject C      : Real 1\n"
    assert format_text(text) == (
        "object A          : FinSet 3\nobject MuchLonger : Real 2\nobject B          : Real 1\n"
        "object C          : Real 1\n"
    )


def test_a_run_that_nobody_aligned_is_not_aligned() -> None:
    text = "object A : FinSet 3\nobject Longer : Real 2\nobject B   : Real 1\n"
    assert format_text(text) == text.replace("   :", " :")


def test_arrows_are_aligned_too() -> None:
    text = "morphism f      : A     -> B [role=embed]\nmorphism longer : A * B -> C\nmorphism g      : B     -> C\n"
    assert format_text(text) == text


# ---------------------------------------------------------------- edits for a range


def test_edits_touch_only_lines_that_differ() -> None:
    text = "object A : Real 1\nlet  f = a\nlet g = b\n"
    assert [e[0] for e in format_edits(Document(text))] == [(Cursor(1, 0), Cursor(2, 0))]


def test_a_range_is_formatted_alone() -> None:
    text = "object  A : Real 1\n\nlet  f = a\nlet  g = b\n"
    edits = format_edits(Document(text), 2, 2)
    assert [(r.start.line, new) for r, new in edits] == [(2, "let f = a\n")]


TEXTS = st.sampled_from(list(SAMPLES.values())) | st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@settings(max_examples=100)
@given(TEXTS, st.integers(0, 400), st.sampled_from(PIECES))
def test_edits_give_the_formatted_text(text: str, at: int, piece: str) -> None:
    text = text[:at] + piece + text[at:]
    assume("\r" not in text.replace("\r\n", ""))
    source = SourceText(text)
    for place, new in sorted(format_edits(Document(text)), reverse=True):
        source.edit(place.start, place.end, new)
    assert source.text.replace("\r\n", "\n").replace("\r", "\n") == (
        format_text(text).replace("\r\n", "\n").replace("\r", "\n")
    )


@settings(max_examples=150)
@given(TEXTS, st.integers(0, 30), st.integers(0, 10))
def test_edits_for_a_range_are_those_of_the_whole_text_there(text: str, first: int, height: int) -> None:
    document = Document(text)
    here = format_edits(document, first, first + height)
    assert [edit for edit in here if edit not in format_edits(document)] == []


# ---------------------------------------------------------------- meaning


def test_an_unindented_body_takes_no_stray_lines_in() -> None:
    text = "program p : A -> B\nsample h <- f\nreturn h\n\n    sample g <- f\n    return g\n"
    assert format_text(text) == text


def _same(left: Statement, right: Statement) -> bool:
    ours, theirs = list(units_of(left)), list(units_of(right))
    return len(ours) == len(theirs) and all(
        same_tree(a.unit.node, b.unit.node) for a, b in zip(ours, theirs, strict=True)
    )


@settings(max_examples=100)
@given(TEXTS, st.integers(0, 400), st.sampled_from(PIECES))
def test_any_text_keeps_its_meaning_its_comments_and_its_damage(text: str, at: int, piece: str) -> None:
    text = text[:at] + piece + text[at:]
    once = format_text(text)
    assert format_text(once) == once
    before, after = parse_text(text)[0], parse_text(once)[0]
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        assert is_damaged(old) or _same(old, new)
    assert text.count("#") == once.count("#")


def _program(seed: int) -> str:
    """A random whole text with random blanks, breaks and comments."""
    source = random.Random(seed)
    lines: list[str] = []
    for _ in range(source.randrange(1, 6)):
        lines += source.choice((["# note"], ["#! doc", ""], [""], []))
        lines.append(sentence(source, "statement") + source.choice(("", "  # c")))
        if lines[-1].startswith("program"):
            indent = " " * source.choice((0, 1, 2, 4))
            steps = [sentence(source, "step") for _ in range(source.randrange(1, 5))]
            steps = [s for s in steps if not s.startswith(("return", "marginalize"))]
            lines += [indent + s + source.choice(("", " # c")) for s in (*steps, "return x")]
        elif lines[-1].startswith("deduction"):
            lines += ["  " + sentence(source, "deduction_item") for _ in range(3)]
            lines += ["  lexicon"] + ["     " + sentence(source, "lexicon_entry") for _ in range(2)]
        elif lines[-1].startswith("composition"):
            lines += ["   " + sentence(source, "composition_rule") for _ in range(2)]
    return "\n".join(lines)


@settings(max_examples=100)
@example(30734)  # two declarations under each other that are left as they are, with no blank before the colon
@given(st.integers(0, 2**32))
def test_generated_programs_keep_their_meaning(seed: int) -> None:
    text = _program(seed)
    once = format_text(text)
    assert format_text(once) == once
    before, after = parse_text(text)[0], parse_text(once)[0]
    assert not any(map(is_damaged, before)), text
    assert len(before) == len(after) and all(map(_same, before, after))
