"""What stands at a cursor, and how it is said."""

from __future__ import annotations

import pytest

from qvr_core.ide import prose as p
from qvr_core.ide.completion.signature import signature
from qvr_core.ide.hover import hover
from qvr_core.ide.target import Keyword, Operator, Sign, target_at
from tests.ide.cases import at

BODY = """\
object R : Real 1
morphism f : R -> R [role=linear]
program q(x) : R -> R
    sample a <- Normal(x, 1.0)  # sample f -> a
"""


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (BODY + "    let b = a +$0 1.0\n    return b\n", Operator, "The sum"),
        (BODY + "    ret$0urn a\n", Keyword, "return"),
        (BODY.replace("f : R ->", "f : R $0->") + "    return a\n", Sign, "From the domain to the codomain"),
        (BODY + "    let g = u -$0> u + 1.0\n    let b = g(a)\n    return b\n", Sign, "A function"),
        (BODY + "    let t = factor i : FinSet 2 in { 0 -$0> 1.0, 1 -> a }\n    return a\n", Sign, "this element"),
    ],
)
def test_signs_mean_what_they_mean_where_they_stand(text: str, kind: type, words: str) -> None:
    snapshot, cursor = at(text)
    assert isinstance(target_at(snapshot, cursor), kind)
    found = hover(snapshot, cursor)
    assert found is not None
    assert words in p.markdown(found.content)


@pytest.mark.parametrize("marked", ["sam$0ple f ->", "f -$0> a"])
def test_words_and_signs_in_a_comment_are_none(marked: str) -> None:
    text = BODY.replace("# sample f -> a", "# " + ("sample f -> a".replace(marked.replace("$0", ""), marked)))
    assert "$0" in text
    snapshot, cursor = at(text + "    return a\n")
    assert target_at(snapshot, cursor) is None
    assert hover(snapshot, cursor) is None


def test_a_name_of_the_program_hides_an_arrow_from_a_call() -> None:
    """The value that is called is the one bound above, so the signature of the arrow would be the wrong one."""
    hidden = BODY + "    let f = u -> u + 1.0\n    let b = f($0a)\n    return b\n"
    assert signature(*at(hidden)) is None
    drawn = BODY + "    let b = f($0a)\n    return b\n"
    found = signature(*at(drawn))
    assert found is not None
    assert found.label.startswith("f(")


def test_parts_as_markdown_and_as_plain_text() -> None:
    answer = p.prose(
        p.Heading("key", " (of `f`): what it is"),
        p.Code("let x = f"),
        "",
        "One `a`.\nTwo.",
        p.Listing(("`a`: first", "second")),
        p.Comment("A *comment* with <b>."),
        p.Comment(""),
        p.Listing(()),
    )
    assert p.markdown(answer) == (
        "**key** (of `f`): what it is\n\n```qvr\nlet x = f\n```\n\nOne `a`.  \nTwo.\n\n- `a`: first\n- second\n\n"
        "A *comment* with &lt;b>."
    )
    assert p.plain(answer) == (
        "key (of f): what it is\n\nlet x = f\n\nOne a.\nTwo.\n\n• a: first\n• second\n\nA *comment* with <b>."
    )
