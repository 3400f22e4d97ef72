"""What a line most likely means stands first: by what other lines say of its names, its indices and its sets."""

from __future__ import annotations

import pytest

from qvr_core.ide.completion.completion import complete
from tests.ide.cases import at
from tests.ide.judged import offered


def labels(text: str) -> list[str]:
    return [item.label for item in complete(*at(text))]


@pytest.mark.parametrize(
    ("example", "begins", "before", "first"),
    [
        # an index that the formula has used without naming it
        ("statistics/horseshoe", "observe tonnes", "    observe tonnes[i : Plant] <- Normal(sum(beta[g] * x[i, ", "g"),
        ("statistics/autoregression", "observe rate", "    observe rate[t : Quarter] <- Normal(sum(phi[j] * rate[t - ",
         "j"),
        ("statistics/horseshoe", "observe tonnes", "    observe tonnes[i : Plant] <- Normal(sum(beta[g] for g : ",
         "Gene"),
        # a name of its own line is read at an earlier element, and what is made of it never
        ("statistics/garch", "let variance", "    let variance[t : Day] = omega + variance[", "t - 1"),
        ("statistics/hidden_markov", "marginalize z", "    marginalize z[t : Year] : State <- Categorical(",
         "P[z[t - 1]]"),
        # a row of a table is the argument that is a vector
        ("statistics/topic_model", "observe word", "        observe word[i : Token] <- Categorical(", "phi[z[i]]"),
        ("statistics/gaussian_process", "observe height", "    observe height <- MultivariateNormal(", "zeros(Day)"),
        # what nothing reads yet was written for this line
        ("statistics/gaussian_process_counts", "observe acc",
         "    observe accidents[k : Kilometre] <- Poisson(log_rate=", "log_rate[k]"),
        ("radon", "observe log_radon", "    observe log_radon : House <- Normal(level[county], ", "within"),
        ("conversion_test", "return", "    return ", "lift"),
        # sets: by the letter, by where other lines read the name, by the name of the data
        ("statistics/survival", "sample beta", "    sample beta[c : ", "Covariate"),
        ("statistics/radon", "sample level", "    sample level[", "c : County"),
        ("analyses/poll", "data schooling", "    data schooling : Person -> ", "Schooling"),
        ("analyses/poll", "data schooling", "    data schooling : ", "Person"),
        ("statistics/survival", "program survival", "program survival : ", "Patient"),
        ("statistics/mixture", "marginalize kind", "    marginalize kind[i : Eruption] : ", "Kind"),
        ("topic_model", "sample topics_of", "    sample topics_of : Document <- Dirichlet(0.5) [", "over"),
        ("linear_regression", "observe y", "    observe y : Row <- Normal(", "mu"),
        # arrows
        ("lstm_lm", "program lstm_lm", "program lstm_lm(tokens) : Token -> ", "Token"),
        ("bidirectional_rnn_lm", "morphism bwd_cell", "morphism bwd_cell : Embedded * BwdHidden -> ", "BwdHidden"),
        ("seq2seq", "let dec_block", "let dec_block = fan(", "dec_head"),
        ("bert_pretraining", "let block", "let block = ", "transformer"),
        ("transformer_lm", "let backbone", "let backbone = tok_embed >> place >> ", "stack(block, n)"),
        ("grammar", "let chart", "    let chart = parse(", "english"),
        ("mogrifier_rlstm_lm", "observe next_token", "    observe next_token : Token <- lm_head(", "h"),
        ("lstm_lm", "let h", "    let h = ", "backbone"),
        ("ordinal_ratings", "observe rating", "    observe rating : Employee <- OrderedLogistic(by_effort * effort, ",
         "cuts"),
        ("statistics/horseshoe", "observe tonnes", "    observe tonnes[i : Plant] <- Normal(intercept + ",
         "sum(beta[g] * x[i, g] for g : Gene)"),
        # priors
        ("statistics/stochastic_volatility", "sample persistence", "    sample persistence <- ", "Normal"),
        ("statistics/garch", "sample alpha", "    sample alpha <- ", "Beta"),
        ("statistics/capture_recapture", "sample detection", "    sample detection <- ", "Beta"),
        ("statistics/gaussian_process", "sample rho", "    sample rho <- ", "HalfNormal"),
        ("seq2seq", "observe next_token", "    observe next_token : Target <- ", "lm_head"),
        ("statistics/mixture", "observe wait", "        observe wait[i : Eruption] <- Normal(mu[", "kind[i]"),
        ("grammar", "rule forward", "    rule forward : span(I, K, X) |- span(I, K, X) #[", "learnable"),
        ("statistics/holt_winters", "observe sold",
         "    observe sold[t : Quarter] <- Normal(level[t - 1] + season[t - 4], ", "sigma"),
        ("variational_autoencoder", "score divergence", "    score divergence = sum(square(", "feature"),
        ("linear_regression", "sample sigma", "    sample sigma <- ", "HalfNormal"),
        ("linear_regression", "sample slope", "    sample slope <- Normal(", "0.0, 1.0"),
        # the line below
        ("lstm_lm", "morphism lm_head", "", "morphism"),
        ("radon", "export", "", "export"),
    ],
)  # fmt: skip
def test_what_is_meant_stands_first(example: str, begins: str, before: str, first: str) -> None:
    assert offered(example, begins, before)[0] == first


@pytest.mark.parametrize(
    ("example", "begins", "before", "not_offered"),
    [
        ("analyses/infant_deaths", "sample rate", "    sample rate <- Normal(", {"expected"}),
        ("poisson_regression", "let rate", "    let rate = exposure * ", {"accidents"}),
        ("hidden_markov", "let predict", "let predict = scan(", {"scan", "fan", "roll"}),
        ("flower_classifier", "morphism species_of", "morphism species_of : Measurement -> Species [role=", {"embed"}),
        (
            "factor_analysis",
            "morphism cause",
            "morphism cause : Case -> Code [scale=0.5] ~ ",
            {"Exponential", "Dirichlet"},
        ),
        ("statistics/occupancy", "marginalize z", "    marginalize z[i : Pond] : ", {"Real", "Simplex"}),
        ("statistics/item_response", "data correct", "    data correct : Answer * ", {"Bool", "Nat"}),
        ("statistics/stochastic_volatility", "let h", "    let h[t : Day] = mu from ", {"h", "h[t]"}),
        ("analyses/lung", "sample shape", "    sample shape <- ", {"lung_without"}),
        (
            "mogrifier_rlstm_lm",
            "observe next_token",
            "    observe next_token : Token <- lm_head(",
            {"rlstm", "lm_head"},
        ),
    ],
)
def test_what_would_be_a_mistake_is_not_offered(example: str, begins: str, before: str, not_offered: set[str]) -> None:
    assert not not_offered & set(offered(example, begins, before))


def test_an_outcome_and_a_whole_vector_stand_behind_everything() -> None:
    begun = "    observe cases[d : District] <- Poisson(log_rate="
    found = offered("statistics/icar", "observe cases", begun)
    assert found.index("log_risk[d]") < found.index("exp") < found.index("farming")
    found = offered("statistics/gaussian_process", "let K", "    let K[s : Day, t : Day] = ")
    assert found.index("age[s]") < found.index("exp") < found.index("height[s]")


def test_an_axis_without_an_index_is_read_at_the_label_that_the_line_has() -> None:
    begun = "    let longer[b : Bird, k : Kind] = (found[b, length] - mu[k, length]) / "
    found = offered("analyses/bills", "let longer", begun)
    assert "T[length, length]" in found[:4] and "L[length, length]" not in found[:4]
    begun = "    let u[s : Subject, e : Effect] = tau[e] * "
    assert not {"L[e]", "intercept"} & set(offered("statistics/varying_slopes", "let u", begun))
    assert not {"Hour", "Fix"} & set(
        offered("statistics/hidden_markov_subjects", "object Elk", "object Elk, Hour, Fix : ")
    )


def test_data_that_earlier_lines_read_with_a_lag_are_offered_with_it() -> None:
    begun = "    let variance[t : Day] = omega + alpha * (change[t - 1] - mu) ^ 2 + beta * "
    found = offered("statistics/garch", "let variance", begun)
    assert found[0] == "variance[t - 1]" and "variance[t]" not in found


COLUMNS = """\
object Row : FinSet 5
program p : Row -> Row
    sample b <- Normal(0.0, 1.0)
    let mu = b * $0
    return b
"""


def test_columns_of_the_files_of_a_program_without_declared_data_are_offered_in_formulas() -> None:
    snapshot, cursor = at(COLUMNS)
    found = [item.label for item in complete(snapshot, cursor, {"height": "people.csv"})]
    assert found[0] == "height"
    assert "height" not in labels(COLUMNS)
    looked_up = COLUMNS.replace("sample b <-", "sample b : Town <-").replace(
        "program", "object Town : FinSet 3\nprogram"
    )
    snapshot, cursor = at(looked_up.replace("b * $0", "$0"))
    assert next(item.label for item in complete(snapshot, cursor, {"town": "people.csv"})) == "b[town]"


def test_options_that_name_a_column_offer_data_of_the_kind() -> None:
    begun = "    observe months[i : Patient] <- Weibull(scale[i], shape) [right_censored="
    found = offered("statistics/survival", "observe months", begun)
    assert found[0] == "censored" and "months" not in found and "beta" not in found
