"""Graphs of the textbooks (Pearl, Causality; Greenland, Pearl and Robins 1999), whose answers are known."""

from __future__ import annotations

import pytest

from qvr_core.dependence import NoAnswer, adjustment, blanket, colliders, separation
from tests.dependence.programs import graph_of, linear

CHAIN, FORK, COLLIDER = "a > b, b > c", "b > a, b > c", "a > b, c > b"
DESCENDANT = "a > b, c > b, b > d"
M_BIAS = "u > a, u > m, v > m, v > y"
DIAMOND = "a > b, a > c, b > d, c > d"


@pytest.mark.parametrize(
    ("edges", "question", "independent"),
    [
        (CHAIN, "a c", False),
        (CHAIN, "a c b", True),
        (FORK, "a c", False),
        (FORK, "a c b", True),
        (COLLIDER, "a c", True),
        (COLLIDER, "a c b", False),
        (DESCENDANT, "a c", True),
        (DESCENDANT, "a c d", False),
        (M_BIAS, "a y", True),
        (M_BIAS, "a y m", False),
        (M_BIAS, "a y m u", True),
        (M_BIAS, "a y m v", True),
        (DIAMOND, "b c", False),
        (DIAMOND, "b c a", True),
        (DIAMOND, "b c a d", False),
        (DIAMOND, "a d b", False),
        (DIAMOND, "a d b c", True),
        ("a, b", "a b", True),
        ("z > x, u > x, u > y, x > y", "z y x", False),
        ("z > x, u > x, u > y, x > y", "z u", True),
        ("z > x, u > x, u > y, x > y", "z y x u", True),
    ],
)
def test_separation(edges: str, question: str, independent: bool) -> None:
    first, second, *given = question.split()
    graph = graph_of(linear(edges))
    for one, other in ((first, second), (second, first)):
        assert separation(graph, one, other, given).independent == independent


@pytest.mark.parametrize(
    ("edges", "question", "way"),
    [
        (CHAIN, "a c", "a→b→c"),
        (FORK, "a c", "a←b→c"),
        (COLLIDER, "a c b", "a→b(b)←c"),
        (DESCENDANT, "a c d", "a→b(d)←c"),
        (M_BIAS, "a y m", "a←u→m(m)←v→y"),
    ],
)
def test_the_way_by_which_one_tells_of_the_other(edges: str, question: str, way: str) -> None:
    first, second, *given = question.split()
    trail = separation(graph_of(linear(edges)), first, second, given).trail
    assert "".join(f"{s.arrow}{s.name}{f'({s.opened})' if s.opened else ''}" for s in trail) == way


@pytest.mark.parametrize(
    ("edges", "question", "separator"),
    [(CHAIN, "a c", ("b",)), (M_BIAS, "a y m", ("u",)), (DIAMOND, "a d", ("b", "c")), ("a > b", "a b", None)],
)
def test_what_would_make_them_independent(edges: str, question: str, separator: tuple[str, ...] | None) -> None:
    first, second, *given = question.split()
    found = separation(graph_of(linear(edges)), first, second, given).separator
    assert found == separator or (edges == M_BIAS and found in (("u",), ("v",)))


def test_observed_sites_are_given_where_they_are_named_or_all_with_the_data() -> None:
    graph = graph_of(linear("a > y, b > y", observed=["y"]))
    assert separation(graph, "a", "b").independent
    assert not separation(graph, "a", "b", ["y"]).independent
    assert not separation(graph, "a", "b", given_data=True).independent


@pytest.mark.parametrize(
    ("edges", "observed", "found"),
    [
        # confounding, blocked by the observed common cause
        ("z > t, z > y, t > y", "z t y", ("z",)),
        # a mediator is no confounder
        ("t > m, m > y", "t m y", ()),
        # M-bias: adjusting for m would open a way
        ("u > t, u > m, v > m, v > y, t > y", "m t y", ()),
        # the classic graph of Pearl: one of several smallest sets
        ("a > b, a > t, b > t, c > b, c > y, b > y, t > y", "a b c t y", ("a", "b")),
        # back door through two
        ("w > t, w > z, z > y, t > y", "w z t y", ("w",)),
    ],
)
def test_back_doors(edges: str, observed: str, found: tuple[str, ...]) -> None:
    names = adjustment(graph_of(linear(edges, observed.split())), "t", "y").observed
    assert names is not None and len(names) == len(found)
    check = graph_of(linear(edges.replace("t > y", "t, y"), observed.split()))
    if "m >" not in edges or found:
        assert separation(check, "t", "y", names).independent or "t > m" in edges


def test_a_latent_confounder_leaves_the_front_door() -> None:
    found = adjustment(graph_of(linear("u > t, u > y, t > m, m > y", ["t", "m", "y"])), "t", "y")
    assert (found.observed, found.latent, found.front) == (None, ("u",), ("m",))


def test_the_front_door_is_shut_where_the_mediator_is_confounded() -> None:
    found = adjustment(graph_of(linear("u > t, u > y, u > m, t > m, m > y", ["t", "m", "y"])), "t", "y")
    assert (found.observed, found.latent, found.front) == (None, ("u",), None)


def test_no_way_no_effect() -> None:
    assert not adjustment(graph_of(linear("z > t, z > y", ["z", "t", "y"])), "t", "y").affects


def test_a_score_below_the_cause_leaves_nothing_to_adjust_for() -> None:
    graph = graph_of("sample t <- Normal(0.0, 1.0)\nsample y <- Normal(t, 1.0)\nscore chosen = -(t * y)\nreturn y")
    found = adjustment(graph, "t", "y")
    assert found.affects and found.observed is None and found.latent is None


def test_blankets() -> None:
    graph = graph_of(linear("a > b, b > c, d > c, c > e, f"))
    assert set(blanket(graph, "b")) == {"a", "c", "d"}
    assert blanket(graph, "f") == ()


def test_colliders() -> None:
    assert colliders(graph_of(linear("a > b, c > b, a > d, b > d"))) == {"b": ("a", "c")}


@pytest.mark.parametrize(
    ("first", "second", "given", "message"),
    [
        ("a", "bb", [], "has no `bb`; did you mean `b`"),
        ("a", "a", [], "about itself"),
        ("a", "b", ["a"], "given as well"),
    ],
)
def test_questions_that_make_no_sense(first: str, second: str, given: list[str], message: str) -> None:
    with pytest.raises(NoAnswer, match=message):
        separation(graph_of(linear("a > b, b > bc")), first, second, given)
