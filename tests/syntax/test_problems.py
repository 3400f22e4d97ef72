"""Every syntax problem: its code, the exact text it marks, and what its fix does."""

import pytest

from qvr_core.syntax.placing import units_of
from qvr_core.syntax.problems import PROBLEMS
from qvr_core.syntax.source import Cursor, SourceText
from qvr_core.syntax.statements import Document
from qvr_core.syntax.tree.names import Span
from tests.syntax.parsing import parse_text

# ⟦ ⟧ stand around what is marked; then its code and a part of the message.  An indented line alone is a step.
CASES = [
    ("morphism f : A ⟦B⟧", "syntax-error", "expected `->` after the domain"),
    ("morphism f : A ⟦->⟧", "syntax-error", "expected an object"),
    ("morphism ⟦:⟧ A -> B", "syntax-error", "expected a name after `morphism`"),
    ("morphism f : A -> B [role=⟦]⟧", "syntax-error", "expected a value"),
    ("morphism f : A -> B ⟦role⟧=kernel", "syntax-error", "options stand in brackets"),
    ("morphism f : A -> B [role=kernel ⟦scale⟧=0.1]", "syntax-error", "expected `,` or `]`"),
    ("morphism f : A -> B ⟦[⟧role=kernel ~ Normal", "unclosed-bracket", "never closed"),
    ("morphism f : A ⟦=>⟧ B", "invalid-character", "written `->`"),
    ("morphism f : A ⟦→⟧ B", "invalid-character", "written `->`"),
    ("object A ⟦=⟧ FinSet 3", "syntax-error", "expected `,` or `:`"),
    ("object A : ⟦FinSet⟧", "syntax-error", "expected a size"),
    ("object A : FinSet ⟦2.5⟧", "syntax-error", "expected a size"),
    ("object ⟦3A⟧ : FinSet 3", "invalid-number", "neither a number nor a name"),
    ("object ⟦naïve⟧ : FinSet 3", "invalid-character", "letters a to z"),
    ("object ⟦let⟧ : FinSet 3", "reserved-name", "reserved word"),
    ("object ⟦Real⟧ : FinSet 3", "reserved-name", "reserved word"),
    ("let ⟦scan⟧ = f", "reserved-name", "combinator"),
    ("let f = a ⟦b⟧", "syntax-error", "`>>` and `@` join arrows"),
    ("let f = a >> ⟦>>⟧ b", "syntax-error", "expected an arrow"),
    ("let f = fan(a, ⟦,⟧ b)", "syntax-error", "expected an argument"),
    ("let f = fan⟦(⟧a, b", "unclosed-bracket", "never closed"),
    ("let f = fan(a, b)⟦)⟧", "unmatched-bracket", "closes nothing"),
    ("let f = fan(a, b⟦]⟧", "unmatched-bracket", "cannot close"),
    ("⟦export⟧", "syntax-error", "expected an arrow"),
    ("⟦objct⟧ A : FinSet 3", "unknown-statement", "did you mean `object`"),
    ("⟦hello⟧ world", "unknown-statement", "starts with one of"),
    ("⟦sample⟧ x <- f", "misplaced-step", "body of a program"),
    ("⟦    ⟧object A : FinSet 3", "stray-indent", "nothing above it opens a block"),
    ("program p : A -> B⟦:⟧\n    return x", "header-colon", "no colon"),
    ("program p : A -> B\n⟦sample⟧ x <- f\nreturn x", "unindented-body", "indented"),
    ("program p : A -> B\n    return x\n    ⟦sample⟧ y <- f", "misplaced-return", "behind the `return`"),
    ("program p : A -> B\n    sample x <- f\n    ⟦  ⟧let y = x\n    return y", "stray-indent", "deeper"),
    ("program p : A -> B\n    sample x <- f\n⟦  ⟧let y = x\n    return y", "bad-dedent", "no open block"),
    ("program p : A -> B\n⟦\t⟧sample x <- f\n\treturn x", "tab-indentation", "tabs"),
    ("program p : A -> B\n  ⟦\t⟧sample x <- f\n  \treturn x", "tab-indentation", "tabs"),
    ("    ⟦marginalize⟧ z <- f(x)", "empty-block", "missing"),
    ("    sample x ⟦=⟧ f", "syntax-error", "expected `<-`"),
    ("    sample x <- f(a ⟦b⟧)", "syntax-error", "expected `,` or `)`"),
    ("    ⟦smaple⟧ x <- f", "unknown-statement", "did you mean `sample`"),
    ("    ⟦x⟧ = 3", "unknown-statement", "is `let` left out"),
    ("    ⟦x⟧ <- f", "unknown-statement", "is `sample` left out"),
    ("    ⟦x⟧", "unknown-statement", "is `return` left out"),
    ("⟦f⟧ = a >> b", "unknown-statement", "is `let` left out"),
    ("⟦f⟧ : A -> B [role=embed]", "unknown-statement", "is `morphism` left out"),
    (" ⟦A⟧ : FinSet 3", "unknown-statement", "is `object` left out"),
    ("program p(a : ⟦Foo⟧) : A -> B\n    return a", "syntax-error", "a parameter is"),
    ("program p(a : ⟦Mor⟧) : A -> B\n    return a", "syntax-error", "a parameter is"),
    ("program p(a : ⟦Map⟧[A, B]) : A -> B\n    return a", "syntax-error", "a parameter is"),
    ("⟦p⟧(x) : A -> B\n    return x", "unknown-statement", "is `program` left out"),
    ("morphism f : A -> B ⟦Normal⟧", "syntax-error", "expected `~`"),
    (
        "program p : A -> B\n    sample x <- f\n    ⟦    ⟧let y = x\n        let z = y\n    return y",
        "stray-indent",
        "deeper",
    ),
    ("program p : A -> B\n    sample x <- f\n⟦  ⟧let y = x\n  let z = y\n  return y", "bad-dedent", "no open block"),
    ("    let x = 1 < 2 ⟦<⟧ 3", "syntax-error", "not expected"),
    ("    let x = (a)⟦(⟧y)", "syntax-error", "not expected"),
    ("    let x = ⟦_⟧ + 1", "syntax-error", "open size"),
    ('    let x = ⟦"abc⟧', "unclosed-string", "not closed"),
    ("    let x = ⟦'abc'⟧", "invalid-character", "double quotes"),
    ("    let x = a ⟦&&⟧ b", "invalid-character", "no meaning"),
    ("    let x = a ⟦**⟧ b", "invalid-character", "written `^`"),
    ("    let x = a⟦[⟧", "unclosed-bracket", "never closed"),
    ("    let x = 3 ⟦+⟧", "syntax-error", "expected an expression after `+`"),
    (f"    ⟦let x = 1{' + 1' * 200}⟧", "too-deep", "name parts of it"),
    (f"    ⟦let x = {'(' * 200}1{')' * 200}⟧", "too-deep", "name parts of it"),
    ("deduction d : A -> B\n    rule r : X ⟦->⟧ Y", "syntax-error", "expected `|-`"),
    ("deduction d : A -> B\n    ⟦foo⟧ bar", "unknown-statement", "line of a deduction"),
    ("composition c as algebra\n    unit ⟦1.0⟧", "syntax-error", "expected `=`"),
]


def _marked(text: str) -> tuple[str, Cursor, Cursor]:
    if text.startswith("    "):
        text = f"program p : A -> B\n{text}\n    return x"
    before, inside, _ = text.replace("⟧", "⟦").split("⟦")
    lines = before.split("\n")
    start = Cursor(len(lines) - 1, len(lines[-1]))
    return text.replace("⟦", "").replace("⟧", ""), start, Cursor(start.line, start.column + len(inside))


@pytest.mark.parametrize(("marked", "code", "message"), CASES, ids=[f"{c[1]}:{c[0][:60]!r}" for c in CASES])
def test_one_mistake_is_one_problem_at_the_token_to_fix(marked: str, code: str, message: str) -> None:
    text, start, end = _marked(marked)
    _, problems = parse_text(text)
    assert [(p.code, r.start, r.end) for r, p in problems] == [(code, start, end)]
    assert message in problems[0][1].message
    assert problems[0][1].severity == PROBLEMS[code].severity


def test_every_code_has_a_case() -> None:
    assert {case[1] for case in CASES} == set(PROBLEMS)


def _apply_fix(text: str) -> str:
    document = Document(text)
    uid, fix = next(
        (uid, p.fix)
        for s in document.statements
        for uid, p in [*s.problems, *[(u.uid, p) for u in units_of(s) for p in u.unit.problems]]
        if p.fix
    )
    source = SourceText(text)
    for span, new in sorted(fix[1], key=lambda edit: edit[0], reverse=True):
        place = document.range(uid, span)
        source.edit(place.start, place.end, new)
    return source.text


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("morphism f : A B", "morphism f : A -> B"),
        ("object A = FinSet 3", "object A : FinSet 3"),
        ("object A B : FinSet 3", "object A, B : FinSet 3"),
        ("let f = a > b", "let f = a >> b"),
        ("let f = fan(a, b]", "let f = fan(a, b)"),
        ("morphism f : A -> B role=kernel", "morphism f : A -> B [role=kernel]"),
        ("morphism f : A -> B [role:kernel]", "morphism f : A -> B [role=kernel]"),
        ("  object A : FinSet 3", "object A : FinSet 3"),
        ("program p : A -> B:\n    return x", "program p : A -> B\n    return x"),
        (
            "program p : A -> B\nsample x <- f(a,\n  b)\n\nmarginalize z <- g\nobserve y <- z\nreturn y",
            "program p : A -> B\n    sample x <- f(a,\n      b)\n\n    marginalize z <- g\n        observe y <- z\n"
            "    return y",
        ),
        (
            "program p : A -> B\n\tmarginalize z <- f\n\t\tobserve y <- z\n\treturn z",
            "program p : A -> B\n    marginalize z <- f\n        observe y <- z\n    return z",
        ),
        (
            "program p : A -> B\n    sample x <- f\n      let y = x\n    return y",
            "program p : A -> B\n    sample x <- f\n    let y = x\n    return y",
        ),
        (
            "program p : A -> B\n    sample x <- f\n  let y = x\n    return y",
            "program p : A -> B\n    sample x <- f\n    let y = x\n    return y",
        ),
        ("morphism f : A -> B (role=kernel)", "morphism f : A -> B [role=kernel]"),
        ("morphism f : A -> B [role=kernel] Normal", "morphism f : A -> B [role=kernel] ~ Normal"),
        ("morphism f : (A, B) -> C", "morphism f : (A * B) -> C"),
        ("object A : Real(3)", "object A : Real 3"),
        ("let f = fan(a, b", "let f = fan(a, b)"),
        ("object A : finset 3", "object A : FinSet 3"),
        ("let f = fan[a, b]", "let f = fan(a, b)"),
        ("program p : A -> B\n    x ~ f\n    return x", "program p : A -> B\n    sample x <- f\n    return x"),
        (
            "program p : A -> B\n    sample x, y <- f\n    return x, y",
            "program p : A -> B\n    sample (x, y) <- f\n    return (x, y)",
        ),
        ("program p(a : real) : A -> B\n    return a", "program p(a : Real) : A -> B\n    return a"),
        ("program p : A -> B\n    x = 3\n    return x", "program p : A -> B\n    let x = 3\n    return x"),
    ],
)
def test_fixes_leave_no_problem(text: str, fixed: str) -> None:
    for _ in parse_text(text)[1]:
        text = _apply_fix(text)
    assert text == fixed
    assert parse_text(fixed)[1] == []


def test_independent_mistakes_are_reported_each_once() -> None:
    text = (
        "object A FinSet 3\nobject B : Real 2\nmorphism f : A B\nlet g = fan(a, b\nprogram p : A -> B\n"
        "    sample x = f\n    let y = x\n    let z = (y\n    observe w <- g(z) [via w]\n    return w\nexport\n"
    )
    statements, problems = parse_text(text)
    assert [r.start.line for r, _ in problems] == [0, 2, 3, 5, 7, 8, 10]
    assert [s.header.unit.keyword for s in statements] == ["object", "object", "morphism", "let", "program", "export"]
    assert len(statements[4].header.children) == 5


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("object A, B FinSet 3 3", ["A", "B"]),
        ("morphism f, g A ->", ["f", "g"]),
        ("let f = >>", ["f"]),
        ("program p(a, b) : ->", ["p"]),
        ("composition c as as as", ["c"]),
        ("objct A : FinSet", ["A"]),
    ],
)
def test_a_damaged_declaration_still_says_what_it_declares(text: str, names: list[str]) -> None:
    statements, problems = parse_text(text)
    assert len(problems) == 1
    assert [name.text for name in statements[0].header.unit.declares] == names


@pytest.mark.parametrize("text", ["sample (a, b <- f", "let [a, b] = = 3", "observe a f(2)", "score a b"])
def test_a_damaged_step_still_says_what_it_binds(text: str) -> None:
    statements, _ = parse_text(f"program p : A -> B\n    {text}\n    return a\n")
    assert "a" in [name.text for name in statements[0].header.children[0].unit.declares]


@pytest.mark.parametrize(
    ("text", "part"),
    [("object A : Real(3)", "3"), ("object A : FinSet[ 12 ]", "12"), ("morphism f : (A, Bcd) -> C", "Bcd"),
     ("morphism f : A -> B Normal", "Normal"), ("let f = fan[a, bcd]", "bcd")],
)  # fmt: skip
def test_the_tree_of_a_repair_counts_in_the_text_as_it_is(text: str, part: str) -> None:
    node = parse_text(text)[0][0].header.unit.node
    assert part in [text[slice(*span)] for span in _spans(node)]


def _spans(node: object) -> list[Span]:
    if isinstance(node, tuple) and not isinstance(node, Span):
        return [span for item in node for span in _spans(item)]
    fields = getattr(node, "__dataclass_fields__", {})
    own = [node.span] if hasattr(node, "span") else []  # pyright: ignore[reportAttributeAccessIssue]
    return own + [span for name in fields for span in _spans(getattr(node, name))]


def test_the_nearest_repair_gives_a_tree() -> None:
    statements, problems = parse_text("morphism f : A B [role=kernel]")
    assert len(problems) == 1
    assert statements[0].header.unit.node == parse_text("morphism f : A B [role=kernel]")[0][0].header.unit.node
    assert statements[0].header.unit.node is not None
