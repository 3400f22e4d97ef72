"""Which files lead to which."""

from __future__ import annotations

from qvr_core.semantics.modules.import_reach import Reach

IMPORTS = {"a": ("b", "c"), "b": ("d",), "c": ("d",), "d": ("a",), "e": ("a",), "f": ()}


def test_a_ring_and_who_leads_into_it() -> None:
    reach = Reach(IMPORTS.__getitem__)
    assert [reach.files(each) for each in "adef"] == [4, 4, 5, 1]
    assert reach.leads("c", "b") and reach.leads("e", "d") and not reach.leads("a", "e")
    assert reach.checks("e") == 4 * 4 + 5


def test_a_shortest_way_whatever_was_asked_before() -> None:
    reach = Reach(IMPORTS.__getitem__)
    assert reach.way("d", "b") == ["d", "a"]
    assert reach.way("e", "b") == ["e", "a"]
    assert reach.way("a", "d") == ["a", "b"]
    assert reach.way("a", "f") is None
