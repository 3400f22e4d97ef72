"""What would be an error is not offered, and what fits the types of data and latents comes first."""

from __future__ import annotations

import re

import pytest

from qvr_core.ide.completion.completion import complete
from tests.ide.cases import LM, at, errors
from tests.ide.judged import EXAMPLES, line_of, offered

DATA = """\
object Row, Group : FinSet _
object Grade : {bad, fair, good}
program p : Row -> Row
    data right : Row -> Bool
    data visits : Row -> Nat
    data grade : Row -> Grade
    data share : Row -> Real 1 [low=0.0, high=1.0]
    data group : Row -> Group
    data height : Row
    data age : Row
    sample m[g : Group] <- Normal(0.0, 1.0)
"""


def labels(line: str, below: str = "    return m\n") -> list[str]:
    return [item.label for item in complete(*at(f"{DATA}{line}\n{below}"))]


def test_what_is_summed_out_is_drawn_from_a_finite_set() -> None:
    found = labels("    marginalize z[i : Row] : FinSet 2 <- $0")
    assert found == ["Bernoulli", "Categorical", "OrderedLogistic"]
    three = labels("    marginalize z[i : Row] : FinSet 3 <- $0")
    assert three == ["Categorical", "OrderedLogistic", "Bernoulli"], "Bernoulli draws 0 or 1"
    for family, code in (("Beta(1.0, 1.0)", "cannot-marginalize"), ("BetaBinomial(1, 1.0, 1.0)", "cannot-marginalize")):
        text = f"    marginalize z[i : Row] : FinSet 2 <- {family}\n        observe right[i] <- Bernoulli(0.5 * z)\n"
        assert code in [name for name, _ in errors(DATA + text + "    return m\n")], "why it is left out"


@pytest.mark.parametrize(
    ("name", "first", "behind"),
    [
        ("right", {"Bernoulli", "Binomial"}, {"Normal", "StudentT", "Poisson", "Mixture"}),
        ("visits", {"Poisson", "NegativeBinomial", "Binomial"}, {"Normal", "Bernoulli", "Gamma"}),
        ("share", {"Beta", "LogitNormal", "Kumaraswamy"}, {"Normal", "Bernoulli", "Poisson", "Gamma"}),
    ],
)
def test_data_are_drawn_from_families_of_their_type(name: str, first: set[str], behind: set[str]) -> None:
    found = labels(f"    observe {name}[i : Row] <- $0")
    assert max(map(found.index, first)) < min(map(found.index, behind))


def test_labels_are_drawn_from_families_of_finite_sets_only() -> None:
    assert labels("    observe grade[i : Row] <- $0") == ["Categorical", "OrderedLogistic"]


def test_data_of_any_number_have_all_families() -> None:
    found = labels("    observe height[i : Row] <- $0")
    assert found[0] == "Normal"
    assert {"Bernoulli", "Poisson", "Mixture"} <= set(found)


def test_labels_and_outcomes_stand_last_in_a_formula() -> None:
    use = "    observe right[i : Row] <- Bernoulli(logits=eta[i])\n    return m\n"
    found = labels("    let eta[i : Row] = $0", use)
    places = [found.index(name) for name in ("m[group[i]]", "age[i]", "right[i]", "group[i]", "grade[i]")]
    assert max(places[:2]) < min(places[2:])
    assert "p" not in found, "a program that reads itself"


def test_an_index_is_of_the_set_of_its_axis() -> None:
    assert labels("    observe height[i : Row] <- Normal(m[$0]") == ["group[i]"]
    assert labels("    observe height[i : Row] <- Normal(age[$0]") == ["i"]
    assert "group[i]" in labels("    observe height[i : Row] <- Normal(unknown[$0]", ""), "nothing is known of its axis"


def test_an_index_may_have_several_of_its_own_or_none() -> None:
    text = """\
object Row, Day : FinSet _
object Group : FinSet 2
program p : Row -> Row
    data at : Row * Day -> Group
    data one : Group
    sample m[g : Group] <- Normal(0.0, 1.0)
    marginalize z : Group <- Categorical([0.5, 0.5])
        observe y[i : Row, d : Day] <- Normal(m[$0], 1.0)
    return m
"""
    found = [item.label for item in complete(*at(text))]
    assert found == ["at[i, d]", "z"], "`one` is a number for each group"


def test_where_nothing_is_known_to_be_an_index_all_values_are_offered() -> None:
    assert {"m", "group", "age"} <= set(labels("    let c = m[$0]"))


def test_options_that_cannot_stand_are_not_offered() -> None:
    found = labels("    sample u[g : Group] <- Normal(0.0, 1.0) [$0]")
    assert "auxiliary" not in found
    assert "lengths" in found, "`visits` are counts"
    begun = "    sample level[c : County] <- Normal(mu, tau) ["
    assert "lengths" not in offered("statistics/radon", "sample level", begun)
    guide = "program q : Row -> Row [guide=p]\n    sample e <- Normal(0.0, 1.0) [$0]\n    return e\n"
    assert "auxiliary" in [item.label for item in complete(*at(f"{DATA}    return m\n{guide}"))]


def test_what_is_declared_with_a_name_is_not_offered_to_it() -> None:
    later = "let fine = y.h\nlet finer = fine\nlet other = tok_embed >> scan(cell)\n"
    found = [item.label for item in complete(*at(LM + "let y = tok_embed >> $0\n" + later))]
    assert not {"y", "fine", "finer"} & set(found)
    assert {"lm_head", "other", "backbone"} <= set(found)
    assert "backbone" not in offered("lstm_lm", "let states", "let states = tok_embed >> ")


@pytest.mark.parametrize(
    ("use", "first"),
    [
        ("Normal(0.0, s)", "HalfNormal"),
        ("Normal(loc=0.0, sd=s)", "HalfNormal"),
        ("Normal(0.0, s[group[i]])", "HalfNormal"),
        ("Normal(s, 1.0)", "Normal"),
        ("Bernoulli(s)", "Beta"),
        ("Categorical(s)", "Dirichlet"),
    ],
)
def test_a_prior_is_of_what_the_latent_is_used_as(use: str, first: str) -> None:
    assert labels("    sample s <- $0", f"    observe height[i : Row] <- {use}\n    return m\n")[0] == first


def test_cutpoints_are_ordered() -> None:
    use = "    observe grade[i : Row] <- OrderedLogistic(age[i], s)\n    return m\n"
    assert labels("    sample s : $0", use)[0] == "Ordered"
    assert labels("    sample s : $0")[0] != "Ordered"


def test_outcomes_come_before_what_is_read_and_before_indices() -> None:
    read = "    observe right[i : Row] <- Bernoulli(logits=age[i] + m[group[i]])\n    return m\n"
    found = labels("    observe $0", read)
    assert "right" not in found
    assert found.index("height") < found.index("age") < found.index("group")
    assert labels("    observe $0")[0] == "age", "none is read: the last one declared"


def test_an_argument_is_first_what_may_be_it_as_it_is() -> None:
    first = "    observe log_radon[i : House] <- Normal("
    assert offered("statistics/radon", "observe log_radon", f"{first}level[county[i]], ")[:2] == ["sigma", "tau"]
    assert offered("statistics/radon", "observe log_radon", f"{first}level[county[i]], scale=")[:2] == ["sigma", "tau"]
    found = offered("statistics/radon", "observe log_radon", first)
    assert found.index("level[county[i]]") < found.index("mu") < found.index("sigma")
    grown = offered("statistics/radon", "observe log_radon", f"{first}level[county[i]], 2 * ")
    assert grown.index("floor[i]") < grown.index("sigma"), "in the midst of an argument any number may stand"


def test_an_object_is_mostly_a_set_and_its_labels_are_new_words() -> None:
    assert labels_of("object Pond : $0\n")[:2] == ["FinSet", "Real"]
    assert labels_of("object Pond : FinSet $0\n") == ["_"]
    assert labels_of("object Side : {left, $0\n") == []
    assert labels_of("object A : FinSet 2\nobject B : A * $0\n")[0] == "A"


def labels_of(text: str) -> list[str]:
    return [item.label for item in complete(*at(text))]


def test_an_index_is_named_for_each_axis_of_the_data() -> None:
    found = offered("statistics/occupancy", "observe heard", "        observe heard[")
    assert len(found) == 1 and errors(_written("statistics/occupancy", "observe heard", found[0])) == []
    assert offered("statistics/garch", "observe change", "    observe change[") == ["t : Day"]
    assert offered("statistics/radon", "sample level", "    sample level[") == ["c : County", "i : House"]


def _written(example: str, begins: str, binders: str) -> str:
    """An example with other letters for the indices of a line."""
    text = (EXAMPLES / f"{example}.qvr").read_text(encoding="utf-8")
    line = text.splitlines()[line_of(text, begins)]
    names = [one.split(" :")[0] for one in binders.split(", ")]
    bound = [one.split(" :")[0] for one in line.partition("[")[2].partition("]")[0].split(", ")]
    changed = line.replace(line.partition("[")[2].partition("]")[0], binders)
    for old, new in zip(bound, names, strict=True):
        changed = re.sub(rf"\b{old}\b", new, changed)
    return text.replace(line, changed)


def test_rules_are_written_of_their_variables_and_of_what_other_rules_apply() -> None:
    found = offered("grammar", "rule backward", "    rule backward : span(I, K, Y), span(")
    assert {"K", "Over", "span"} <= set(found[:6])


def test_imported_cells_are_offered_as_scans() -> None:
    found = offered("lstm_lm", "let states", "let states = tok_embed >> ")
    assert found[0] == "scan(lstm)"
    assert "scan(lstm)" not in offered("lstm_lm", "let states", "let states = ")


def test_sums_name_an_index_and_spaces_have_bounds() -> None:
    begun = "    observe rate[t : Quarter] <- Normal(sum(phi[j] * rate[t - 1 - j] for "
    assert set(offered("statistics/autoregression", "observe rate", begun)) == {"j : Lag", "t : Quarter"}
    assert set(labels("    data dose : Row -> Real 1 [$0")) == {"low", "high"}
    assert set(labels("    sample s : Real 1 [$0")) == {"low", "high"}


def test_what_is_drawn_begins_with_a_draw() -> None:
    begun = "    sample level[t : Year] <- Normal(level[t - 1] + slope[t - 1], level_sd) from "
    found = offered("statistics/local_linear_trend", "sample level", begun)
    assert found[0] == "Normal" and "slope[t]" in found


def test_an_arrow_into_what_is_observed_comes_before_families() -> None:
    found = offered("rlstm_lm", "observe next_token", "    observe next_token : Token <- ")
    assert found.index("lm_head") < found.index("Normal")


def test_repeat_and_scan_take_imported_programs_that_they_can_run() -> None:
    repeated = offered("mogrifier_rlstm_lm", "let mogrified", "let mogrified = repeat(")
    assert "mogrifier" in repeated and "rlstm" not in repeated
    scanned = offered("mogrifier_rlstm_lm", "let mogrified", "let mogrified = scan(")
    assert "rlstm" in scanned and "mogrifier" not in scanned
