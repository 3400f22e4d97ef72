"""Sizes: linear equations over the naturals, forms, widths."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from qvr_core.semantics.types.dimensions import Row, System, row, solve
from qvr_core.semantics.types.spaces import (
    Constrained,
    Finite,
    Known,
    Linear,
    Product,
    Real,
    Seq,
    add,
    linear,
    multiply,
    width,
)
from qvr_core.semantics.types.subspace import fit


def size(name: str, count: int = 1) -> Linear:
    return Linear(0, ((name, count),))


def number(value: int) -> Linear:
    return Linear(value, ())


def test_propagation_through_a_chain() -> None:
    rows = [row((1, 0), size("a"), size("b")), row((1, 1), size("b"), size("c")), row((1, 2), size("c"), number(7))]
    assert solve(rows, {}).values == {"a": 7, "b": 7, "c": 7}


def test_elimination_where_two_unknowns_meet() -> None:
    both = Linear(0, (("a", 1), ("b", 1)))
    more = Linear(0, (("a", 2), ("b", 1)))
    assert solve([row((1, 0), both, number(10)), row((1, 1), more, number(16))], {}).values == {"a": 6, "b": 4}


def test_half_a_size_fails_with_the_value() -> None:
    solution = solve([row((1, 0), size("a", 4), number(18))], {})
    assert solution.failed == [((1, 0), "a", Fraction(9, 2))]
    assert not solution.values


def test_of_two_that_contradict_the_later_one_fails() -> None:
    solution = solve([row((1, 0), size("a"), number(3)), row((2, 0), size("a"), number(4))], {})
    assert [key for key, _, _ in solution.failed] == [(2, 0)]


def test_what_nothing_fixes_has_no_value() -> None:
    assert solve([row((1, 0), size("a"), size("b"))], {}).values == {}


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 50), min_size=1),
    st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(-3, 3), min_size=1), min_size=1, max_size=10),
)
def test_a_system_with_a_solution_never_fails_and_finds_it(
    truth: dict[str, int], coefficients: list[dict[str, int]]
) -> None:
    rows: list[Row] = []
    for index, form in enumerate(coefficients):
        terms = tuple(sorted((name, count) for name, count in form.items() if count and name in truth))
        rows.append(Row((1, index), -sum(count * truth[name] for name, count in terms), terms))
    solution = solve(rows, {})
    assert not solution.failed
    assert all(truth[name] == value for name, value in solution.values.items())


def test_known_sizes_do_not_tie_regions() -> None:
    system = System()
    system.known["k"] = 5
    system.put((1, 0), [(size("a"), size("k"))])
    system.put((2, 0), [(size("b"), size("k"))])
    assert system.region(["a"]) == ({"a"}, {(1, 0)})
    assert system.solve([(1, 0)]).values == {"a": 5}


def test_a_freed_size_is_solved_from_its_equations() -> None:
    system = System()
    system.known.update(k=5, m=8)
    system.put((1, 0), [(size("k"), size("m"))])
    assert system.solve([(1, 0)], freed="k").values == {"k": 8}


# ---------------------------------------------------------------- forms and widths


def test_known_sizes_remember_what_they_stem_from() -> None:
    a, b = Known(3, size("a")), Known(4, size("b"))
    total = add([a, b, 2])
    assert total == 9
    assert linear(total) == Linear(2, (("a", 1), ("b", 1)))
    assert linear(multiply(a, 4)) == size("a", 4)


def test_width_of_products_and_matrices() -> None:
    space = Product((Real((28, 28)), Constrained("Simplex", 3), Constrained("Covariance", 2)), (None, None, None))
    assert width(space) == 784 + 3 + 4
    assert width(Seq(Real((5,)))) == 5


def test_a_shape_with_one_hole_is_linear_in_it_solved_or_not() -> None:
    open_hole = Real((28, size("h")))
    solved = Real((28, Known(3, size("h"), hole=True)))
    assert linear(width(open_hole)) == size("h", 28)
    assert linear(width(solved)) == size("h", 28)
    assert width(solved) == 84


# ---------------------------------------------------------------- what fits


def test_sequences_of_products_are_products_of_sequences() -> None:
    pair = Product((Real((2,)), Real((3,))), ("A", "B"))
    assert fit(Seq(pair), Product((Seq(Real((2,))), Seq(Real((3,)))), ("A", "B"))).problem is None
    assert fit(Seq(pair), Seq(Real((5,)))).widths == ""
    assert fit(Seq(pair), pair).problem is not None


def test_every_space_fits_itself() -> None:
    spaces = [
        Finite(3, "A"),
        Finite(3),
        Real((2, 3)),
        Real((1,), low=0.0),
        Constrained("Simplex", 3),
        Seq(Finite(3, "A")),
        Product((Finite(3, "A"), Real((2,))), ("A", None)),
    ]
    for space in spaces:
        assert fit(space, space).problem is None
        for other in spaces:
            if other is not space and fit(space, other).problem is None:
                assert {type(space), type(other)} == {Finite} or isinstance(other, Real)
