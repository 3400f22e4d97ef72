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


def test_what_is_compared_with_an_element_is_an_index_of_its_set() -> None:
    begun = "    let inhabitants[s : State] = sum(people[c] for c : Cell if cell_state[c] == "
    assert offered("statistics/mrp", "let inhabitants", begun)[0] == "s"

    steps = "    let P[d : Dipper, t : Spring, s : Status, r : Status] = where(r == "
    assert offered("statistics/capture_recapture", "let P", steps)[:3] == ["s", "alive", "dead"]


def test_a_sum_runs_over_an_index_of_its_own() -> None:
    found = offered("statistics/gaussian_process_counts", "observe acc", "    let x[k : Kilometre] = sum(")
    assert "L[k, j] for j : Kilometre" in found[:3]
    assert "L[k, k]" not in found


def test_a_third_latent_is_drawn_as_the_two_above() -> None:
    assert offered("statistics/holt_winters", "sample gamma", "    sample gamma <- ")[0] == "Beta"


def test_behind_the_cell_of_a_scan_stand_its_words() -> None:
    begun = "let backbone = tok_embed >> scan(elman(Embedded, Hidden), "
    assert offered("elman_rnn_lm", "let backbone", begun) == ["direction", "emit", "init"]


def test_functions_that_most_formulas_have_stand_before_the_alphabet() -> None:
    found = offered("survival", "score seen", "    score seen = sum(")
    assert found.index("exp") < found.index("abs") < found.index("acos")


def test_a_program_is_exported_before_its_parts() -> None:
    assert offered("lstm_lm", "export", "export ")[0] == "lstm_lm"


def test_a_bias_is_an_option_of_a_tied_head_alone() -> None:
    begun = "morphism lm_head : Hidden -> Token [role=kernel, "
    assert "bias" not in offered("lstm_lm", "morphism lm_head", begun)
    assert "bias" in offered("lstm_lm", "morphism lm_head", begun + "tie=tok_embed, ")


def test_a_set_of_the_data_says_what_names_its_elements_and_what_has_values_for_them() -> None:
    told = hovered("statistics/radon", "object County", "County")
    assert "The values of county are its elements." in told
    assert "Of each, log_uranium is given; level is latent." in told
    assert "Of each, velocity is observed; z is summed out." in hovered("mixture", "object Galaxy", "Galaxy")


def test_a_part_of_a_state_says_what_it_is_a_part_of() -> None:
    told = hovered("rlstm_lm", "let backbone", "h")
    assert "Seq (Hidden * Hidden)" in told
    assert "Gives Seq Real 64" in told
