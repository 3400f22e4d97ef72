"""What an editor is told of `solve`, the form for differential equations."""

from __future__ import annotations

import pytest

from qvr_core.ide.completion.completion import complete
from qvr_core.ide.completion.signature import signature
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.hover import hover
from qvr_core.ide.navigation import definition
from qvr_core.ide.prose import markdown
from qvr_core.ide.semantic_tokens import statement_tokens
from tests.ide.cases import applied, at

TEXT = """\
object Year : FinSet 21
object Animal : {hare, lynx}
def rate(t, z, b) = [b * z[hare] - z[hare] * z[lynx], z[lynx] - z[hare]]
program p : Year -> Year
    data when : Year
    sample b <- LogNormal(-0.6, 0.3)
    let z[t : Year, a : Animal] = solve(rate, [1.0, 0.5], b, start=0.0, at=when, method=rk4, steps=4)
    observe y[t : Year, a : Animal] <- LogNormal(log(z[t, a]), 0.1)
    return b
"""
CALL = "solve(rate, [1.0, 0.5], b, start=0.0, at=when, method=rk4, steps=4)"


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("so$0lve(rate", "The solution of dz/dt = f(t, z, …)"),
        ("so$0lve(rate", "Here it gives one number for each year and animal."),
        ("ra$0te, [", "def rate(t, z, b)"),
        ("st$0art=", "the time at which the state is z0"),
        ("$0at=when", "data that ascend from `start` on"),
        ("metho$0d=", "`rk45` where nothing is said"),
        ("method=rk$04", "(a method of `solve`): of order 4, in steps of one length."),
        ("ste$0ps=", "how many steps `rk4` takes between two times"),
    ],
)
def test_hovers(mark: str, words: str) -> None:
    found = hover(*at(TEXT.replace(mark.replace("$0", ""), mark)))
    assert found is not None and words in markdown(found.content)


def offered(written: str) -> list[str]:
    """What is offered at the end of a line, the best first."""
    items = complete(*at(TEXT.replace(CALL, f"{written}$0")))
    return [item.label for item in sorted(items, key=lambda item: (item.rank, item.order))]


def test_completion_offers_the_form_its_function_its_options_and_its_methods() -> None:
    assert "solve" in offered("")
    assert "solve" not in offered("2 * ")  # it is the whole right side
    assert offered("solve(") == ["rate"]
    behind = offered("solve(rate, [1.0, 0.5], b, start=0.0, ")
    assert "b" in behind and "start" not in behind
    options = [name for name in behind if name in ("at", "method", "steps", "rtol", "atol", "max_steps")]
    assert options == ["at", "method", "steps", "rtol", "atol", "max_steps"]
    assert offered("solve(rate, [1.0, 0.5], b, start=0.0, method=") == ["rk45", "rk4", "stiff"]
    assert "when[t]" in offered("solve(rate, [1.0, 0.5], b, start=0.0, at=")


@pytest.mark.parametrize(
    ("written", "active"),
    [("solve(", 0), ("solve(rate, ", 1), ("solve(rate, 1.0, b, b, b, ", 2), ("solve(rate, 1.0, start=0.0, at=", 4)],
)
def test_signature_says_which_argument_is_written(written: str, active: int) -> None:
    found = signature(*at(TEXT.replace(CALL, f"{written}$0")))
    assert found is not None and found.active == active
    assert found.label == "solve(f, z0, …, start=, at=, method=, steps=, rtol=, atol=, max_steps=)"


def test_a_method_is_a_word_of_the_language_and_a_function_of_its_file_is_renamed() -> None:
    snapshot, cursor = at(TEXT.replace("method=rk4", "method=r$0k4"))
    assert definition(snapshot, cursor) == []
    (line,) = (one for one in snapshot.statements if one.header.unit.keyword == "program")
    tokens = statement_tokens(snapshot, line)
    kinds = {snapshot.lines[one.line][one.column :][: one.length]: one.kind for one in tokens}
    assert kinds["solve"] == "function" and kinds["rk4"] == "enumMember" and kinds["start"] == "property"
    renamed = applied(TEXT, rename(*at(TEXT.replace("def rate", "def r$0ate")), "growth"))
    assert "def growth(t, z, b)" in renamed and "solve(growth, " in renamed


OWN = """\
object Row : FinSet 3
def solve(x, method) = x + method
program p : Row -> Row
    sample rk4 <- Normal(0.0, 1.0)
    let u = solve(rk4, method=rk4)
    observe y : Row <- Normal(u, 1.0)
    return rk4
"""


def test_a_function_of_the_file_named_solve_is_that_function() -> None:
    found = hover(*at(OWN.replace("u = solve", "u = s$0olve")))
    assert found is not None and "def solve(x, method)" in markdown(found.content)
    value = hover(*at(OWN.replace("method=rk4", "method=r$0k4")))
    assert value is not None and "sample rk4" in markdown(value.content)
    assert "solve" not in [
        item.label for item in complete(*at(OWN.replace("u = solve(rk4, method=rk4)", "u[i : Row] = $0")))
        if item.kind == "function" and "dz/dt" in item.detail
    ]  # fmt: skip
