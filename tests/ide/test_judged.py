"""What people write next is among the first that is offered, and no hover of the judged places is silent."""

import pytest

from tests.ide.judged import COMPLETIONS, HOVERS, hovered, offered


@pytest.mark.parametrize(("example", "begins", "before", "likely"), COMPLETIONS)
def test_the_likely_is_among_the_first_five(example: str, begins: str, before: str, likely: tuple[str, ...]) -> None:
    assert set(likely) & set(offered(example, begins, before)[:5])


@pytest.mark.parametrize(("example", "begins", "word"), HOVERS)
def test_every_word_is_explained_without_the_machine(example: str, begins: str, word: str) -> None:
    told = hovered(example, begins, word)
    assert len(told) > 20, told
    if example.startswith("statistics/"):
        assert "(B" not in told and "nan" not in told


def test_columns_of_booleans_counts_and_labels_are_drawn_from_what_fits_them() -> None:
    assert offered("statistics/hidden_markov", "observe quakes", "        observe quakes[t : Year] <- ")[0] == "Poisson"
    assert offered("statistics/ordinal", "observe pain", "    observe pain[i : Patient] <- ")[0] == "Categorical"
    assert offered("statistics/survival", "observe months", "    observe months[i : Patient] <- ")[0] == "LogNormal"


def test_a_value_stands_with_its_indices_and_the_bare_name_behind() -> None:
    found = offered("statistics/radon", "observe log_radon", "    observe log_radon[i : House] <- Normal(")
    assert found.index("level[county[i]]") < found.index("mu") < found.index("level")
