"""Index notation in an editor: indices are names of their own, and types are told with their axes."""

from __future__ import annotations

import pytest

from qvr_core.analysis import analyse
from qvr_core.ide.answers import Refusal
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.completion.signature import signature
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.hover import hover
from qvr_core.ide.indices import chain_note
from qvr_core.ide.navigation import definition, find_references, highlights
from qvr_core.ide.prose import markdown
from qvr_core.ide.semantic_tokens import tokens
from qvr_core.semantics.types.model.steps import MarginalizeModel
from qvr_core.syntax.source import Cursor, Range
from tests.ide.cases import applied, at

TEXT = """\
object County : FinSet 4
object House : FinSet 50
object Time : FinSet 30
object Lag : FinSet 2
object Feature : {floor, area}
program radon : House -> Real 1
    data county : House -> County
    sample mu : Real 3 <- Normal(0.0, 1.0) [iid_over=County]
    sample a[c : County] <- Normal(0.0, 1.0)
    sample beta[f : Feature] <- Normal(0.0, 1.0)
    sample phi[j : Lag] <- Normal(0.0, 0.5)
    let eta[i : House] = a[county[i]] + sum(beta[f] * x[i, f] for f : Feature)
    let hidden[i : House] = sum(a[i] for i : County) + eta[i]
    observe y[i : House] <- Normal(hidden[i], 1.0)
    sample h[t : Time] <- Normal(0.9 * h[t - 1], 1.0) from Normal(0.0, 2.0)
    observe q[t : Time] <- Normal(sum(phi[j] * q[t - 1 - j] for j : Lag), 1.0)
    let v[t : Time] = 0.1 + 0.5 * v[t - 1] from 1.0
    let k[s : Time, t : Time] = h[s] * v[t]
    observe z[t : Time] <- Normal(0.0, sqrt(v[t]))
    return k
"""


def marked(words: str) -> str:
    """The text with the cursor where `words`, a piece of it, have their mark."""
    plain = words.replace("$0", "")
    assert TEXT.count(plain) == 1, plain
    return TEXT.replace(plain, words)


def told(words: str) -> str:
    answer = hover(*at(marked(words)))
    assert answer is not None
    return markdown(answer.content)


def slices(ranges: list[Range]) -> list[tuple[int, int]]:
    return [(place.start.line, place.start.column) for place in ranges]


def columns(line: int, words: str, *letters: int) -> list[tuple[int, int]]:
    """Places in a line of the text, counted from where `words` begin."""
    begin = TEXT.split("\n")[line].index(words)
    return [(line, begin + letter) for letter in letters]


def test_an_index_belongs_to_its_step() -> None:
    snapshot, cursor = at(marked("a[county[$0i]]"))
    assert slices(definition(snapshot, cursor)) == columns(11, "[i : House]", 1)
    expected = columns(11, "[i : House]", 1) + columns(11, "[i]]", 1) + columns(11, "[i, f]", 1)
    assert slices(find_references(snapshot, cursor)) == expected
    assert [place.write for place in highlights(snapshot, cursor)] == [True, False, False]


def test_an_index_of_a_comprehension_hides_that_of_its_step() -> None:
    snapshot, cursor = at(marked("sum(a[$0i] for"))
    inner = columns(12, "a[i]", 2) + columns(12, "i : County", 0)
    assert slices(find_references(snapshot, cursor)) == inner
    snapshot, cursor = at(marked("County) + eta[$0i]"))
    assert slices(find_references(snapshot, cursor)) == columns(12, "i : House", 0) + columns(12, "eta[i]", 4)


def test_renaming_an_index_stays_in_its_scope() -> None:
    text = marked("let hidden[$0i : House]")
    edits = rename(*at(text), "row")
    assert not isinstance(edits, Refusal)
    found = applied(TEXT, edits)
    assert "    let hidden[row : House] = sum(a[i] for i : County) + eta[row]\n" in found
    assert "    observe y[i : House] <- Normal(hidden[i], 1.0)\n" in found


@pytest.mark.parametrize(
    ("words", "name", "why"),
    [
        ("let eta[$0i : House]", "f", "`f` is bound already where `i` stands, on line 12"),
        ("let eta[$0i : House]", "x", "`x` on line 12 would then be what `i` is now"),
        ("let eta[$0i : House]", "beta", "`beta` is already bound in the program"),
        ("let eta[$0i : House]", "County", "`County` is already an object"),
        ("let k[$0s : Time", "t", "`t` is bound already where `s` stands"),
        ("beta[f] * x[i, $0f]", "i", "`i` is bound already where `f` stands"),
        ("sample $0beta[f", "f", "`f` is bound already where `beta` stands"),
        ("data $0county :", "i", "`i` is bound already where `county` stands"),
    ],
)
def test_a_name_that_would_mean_something_else_is_refused(words: str, name: str, why: str) -> None:
    found = rename(*at(marked(words)), name)
    assert isinstance(found, Refusal)
    assert why in found.message


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (
            "a[county[$0i]]",
            [
                "i : House",
                "An index of this line, which holds for each element of `House`. It runs through 50 elements.",
            ],
        ),
        (
            "* x[i, $0f]",
            ["f : Feature", "it stands for each element of `Feature` in turn. It runs through `floor`, `area`."],
        ),
        ("* h[$0t - 1]", ["t : Time", "runs from the second element on, since the line reads one back."]),
        ("* q[$0t - 1 - j]", ["runs from the third element on, since the line reads two back."]),
        ("Normal(hidden[$0i]", ["i : House", "through 50 elements"]),
        ("sample m$0u", ["mu : County -> Real 3", "(4, 3)"]),
        ("sample $0a[c", ["a : County\n"]),
        ("let e$0ta[", ["let eta : House\n"]),
        ("let $0k[s", ["let k : Time * Time\n"]),
        (
            "sample $0h[t",
            ["h : Time\n", "drawn given the one before it. The first element is drawn from"],
        ),
        ("observe $0q[", ["The first two elements are given with the data and not scored", "given the two before it"]),
        ("let $0v[t", ["let v : Time\n", "Runs in order: it reads itself one element back. `from` gives the first"]),
    ],
)
def test_hovers_speak_of_axes_and_of_order(words: str, lines: list[str]) -> None:
    found = told(words)
    assert [line for line in lines if line not in found] == []


def test_a_hidden_value_that_depends_on_no_earlier_one_is_no_chain() -> None:
    text = (
        "object Row : FinSet 9\nprogram p : Row -> Row\n    sample mu <- Normal(0.0, 1.0)\n"
        "    marginalize z[i : Row] : FinSet 2 <- Bernoulli(0.5)\n        observe y[i : Row] <- Normal(mu * z[i], 1)\n"
        "    return mu\n"
    )
    program = analyse(text).model.programs["p"]
    [block] = [step for step in program.steps if isinstance(step, MarginalizeModel)]
    assert chain_note(block.site) == ""


def test_an_index_is_coloured_like_a_parameter() -> None:
    snapshot, _ = at(marked("a[county[$0i]]"))
    found = [
        (token.column, token.modifiers)
        for token in tokens(snapshot, Range(Cursor(11, 0), Cursor(11, 99)))
        if token.line == 11 and token.kind == "parameter"
    ]
    (first,) = columns(11, "i : House", 0)
    assert found[0] == (first[1], ("declaration",))
    assert len(found) == 6


INDEXED = """\
object County : FinSet 4
object House : FinSet 50
object Wide : Real 4
object Feature : {floor, "first floor"}
program radon : House -> Real 1
    data county : House -> County
    sample a[c : County] <- Normal(0.0, 1.0)
    sample beta[c : County, f : Feature] <- Normal(0.0, 1.0)
"""


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("let eta[i : House] = a[$0]", ["county[i]"]),
        ("let eta[i : House] = county[$0]", ["i"]),
        ("observe y[i : House] <- Normal(a[$0], 1.0)", ["county[i]"]),
        ("let eta[i : House] = beta[county[i], $0]", ['"first floor"', "floor"]),
        ("let eta[i : House] = sum(beta[county[i], $0] for f : Feature)", ["f", '"first floor"', "floor"]),
        ("let eta[i : $0", ["House", "County", "Feature"]),
        ("let eta[i : House] = sum(a[c] for c : $0)", ["County", "House", "Feature"]),
    ],
)
def test_what_an_index_may_be_comes_first(line: str, first: list[str]) -> None:
    found = complete(*at(f"{INDEXED}    {line}\n    return a\n"))
    chosen = [item.label for item in found[: len(first)]]
    assert chosen == first
    assert "Wide" not in [item.label for item in found]


@pytest.mark.parametrize(
    ("line", "label", "current", "said"),
    [
        ("let eta[i : House] = a[$0]", "a[County]", "County", "an element of `County`, such as `county[i]`"),
        ("let eta[i : House] = beta[county[i], $0]", "beta[County, Feature]", "Feature", "an element of `Feature`"),
        ("let eta[i : House] = beta[county[$0]]", "county[House]", "House", "an element of `House`, such as `i`"),
        ("let eta = sum(beta[$0] for c : County)", "beta[County, Feature]", "County", "such as `c`"),
        ("let eta = softmax(beta, over=$0)", "softmax(x, dim, over=)", "over=", "here `County` or `Feature`"),
        ("let eta = softmax(2.0 * beta, over=$0)", "softmax(x, dim, over=)", "over=", "a set that `x` runs over"),
        ("observe y[i : House] <- Normal(0.0, $0)", "Normal(loc, scale)", "scale", "positive"),
        ("observe k[i : House] <- Categorical($0)", "Categorical(probs)", "probs", "its last axis is the vector"),
        (
            "observe k <- MultivariateNormal(a, $0)",
            "MultivariateNormal(loc, scale_tril)",
            "scale_tril",
            "its last two axes are the matrix",
        ),
    ],
)
def test_signatures_speak_of_axes(line: str, label: str, current: str, said: str) -> None:
    found = signature(*at(f"{INDEXED}    {line}\n    return a\n"))
    assert found is not None and found.label == label
    name, text = found.parameters[found.active]
    assert name == current
    assert said in markdown(text)


def test_the_signature_of_an_indexed_draw_says_for_what_it_draws() -> None:
    found = signature(*at(f"{INDEXED}    observe y[i : House] <- Normal($0)\n    return a\n"))
    assert found is not None and "One draw for each `i : House`." in markdown(found.documentation)


def test_the_sets_of_the_argument_come_first_behind_over() -> None:
    found = [item.label for item in complete(*at(f"{INDEXED}    let eta = softmax(beta, over=$0)\n    return a\n"))]
    assert found == ["County", "Feature", "House"]


def test_names_are_offered_with_their_axes() -> None:
    found = {item.label: item.detail for item in complete(*at(f"{INDEXED}    let eta = $0\n    return a\n"))}
    assert (found["a"], found["beta"]) == ("sample · County", "sample · County * Feature")


LABELLED = """\
object Row, Person : FinSet _
object Effect : {intercept, "the slope"}
object Kind : {intercept, other}
program p : Row -> Row
    data person : Row -> Person
    data kind : Row -> Kind
    sample u[p : Person, e : Effect] <- Normal(0.0, 1.0)
    let eta[i : Row] = u[person[i], intercept] + u[person[i], "the slope"] * days[i] + (kind[i] == intercept)
    observe y[i : Row] <- Normal(eta[i], 1.0)
    return u
"""


def test_a_label_is_renamed_with_its_uses_and_told_from_that_of_another_set() -> None:
    edits = rename(*at(LABELLED.replace("person[i], intercept]", "person[i], inter$0cept]")), "level")
    assert not isinstance(edits, Refusal)
    found = applied(LABELLED, edits)
    assert 'object Effect : {level, "the slope"}' in found
    assert "object Kind : {intercept, other}" in found
    assert "u[person[i], level] +" in found and "(kind[i] == intercept)" in found
    edits = rename(*at(LABELLED.replace('"the slope"}', '"the $0slope"}')), "slope")
    assert not isinstance(edits, Refusal)
    found = applied(LABELLED, edits)
    assert '{intercept, "slope"}' in found and 'u[person[i], "slope"] * days' in found


@pytest.mark.parametrize(
    ("place", "name", "why"),
    [
        ("{$0intercept, other}", "other", "is an element of the same set"),
        ("{$0intercept, other}", "person", "`person` is already bound in the program"),
        ("sample $0u[p", "days", "`days` on line 8 is data; it would then be what `u` is now"),
        ("sample $0u[p", "intercept", "`intercept` on line 8 is the element; it would then be what `u` is now"),
        ("object Row, $0Person", "days", "`days` on line 8 is data"),
    ],
)
def test_a_name_that_would_catch_data_or_a_label_is_refused(place: str, name: str, why: str) -> None:
    plain = place.replace("$0", "")
    found = rename(*at(LABELLED.replace(plain, place, 1)), name)
    assert isinstance(found, Refusal)
    assert why in found.message


def test_a_label_is_told_with_its_set() -> None:
    answer = hover(*at(LABELLED.replace("== intercept", "== inter$0cept")))
    assert answer is not None and "an element of `Kind`" in markdown(answer.content)
    snapshot, cursor = at(LABELLED.replace("== intercept", "== inter$0cept"))
    assert slices(definition(snapshot, cursor)) == [(2, LABELLED.split("\n")[2].index("intercept"))]
