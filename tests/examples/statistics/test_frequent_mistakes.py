"""A mistake in a program of examples/statistics is one error, at the token, and its fix mends it where one edit can."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from qvr_core.analysis import LocatedDiagnostic, Snapshot, analyse
from qvr_core.semantics.types.diagnostics import Severity
from tests.examples.statistics.programs import STATISTICS
from tests.ide.cases import applied


class Mistake(NamedTuple):
    """What a line of a program becomes, the code of what is said of it, and the text that is blamed."""

    program: str
    right: str
    wrong: str
    code: str
    blamed: str


MENDED = [
    ("radon", "level[county[i]]", "level[i]", "index-mismatch", "i"),
    ("radon", "log_uranium[c]", "log_uranium", "axes-mismatch", "log_uranium"),
    ("radon", "log_uranium[c]", "log_uranium[i]", "index-mismatch", "i"),
    ("radon", "upstairs * floor[i]", "upstairs * floor", "axes-mismatch", "floor"),
    ("radon", "HalfNormal(1.0)\n    sample sigma", "Normal(0.0, 1.0)\n    sample sigma", "argument-support", "tau"),
    ("radon", "observe log_radon[i : House]", "observe log_radon[i : County]", "index-mismatch", "County"),
    ("radon", "[noncentred]", "[noncentered]", "step-option", "noncentered"),
    ("radon", "observe log_radon[i : House]", "observe log_radn[i : House]", "possible-typo", "log_radn"),
    ("varying_slopes", "u[subject[i], slope]", "u[subject[i], slop]", "possible-typo", "slop"),
    ("varying_slopes", "z[s, k] for", "z[k, s] for", "index-mismatch", "k, s"),
    ("item_response", "Bernoulli(logits=logit[a])", "Bernoulli(logit[a])", "argument-support", "logit[a]"),
    ("item_response", "ability[student[a]]", "ability[item[a]]", "index-mismatch", "item[a]"),
    ("item_response", "logits=logit[a]", "logits=logit", "axes-mismatch", "logit"),
    ("hidden_markov", "P[z[t - 1]]", "P[z[t + 1]]", "future-shift", "t + 1"),
    ("hidden_markov", "P[z[t - 1]]", "P[z[t]]", "used-before-bound", "z[t]"),
    ("hidden_markov_subjects", "[z[elk[i], hour[i]]],", "[z[hour[i], elk[i]]],", "index-mismatch", "hour[i], elk[i]"),
    ("hidden_markov_subjects", "Categorical(P[z[e, t - 1]])", "Categorical(P)", "axes-mismatch", "P"),
    ("hidden_markov_subjects", "observe step[i : Fix]", "observe step[i : Hour]", "index-mismatch", "Hour"),
    ("autoregression", "rate[t - 1 - j]", "rate[t - j]", "used-before-bound", "rate[t - j]"),
    ("autoregression", "rate[t - 1 - j]", "rate[t + 1 + j]", "future-shift", "t + 1 + j"),
    ("autoregression", "phi[j] *", "phi *", "axes-mismatch", "phi"),
    ("garch", "variance[t - 1]", "variance[t]", "used-before-bound", "variance[t]"),
    ("garch", "(change[t - 1] - mu)", "(change[t] - mu)", "used-before-bound", "change[t]"),
    ("garch", "sqrt(variance[t])", "sqrt(variance)", "axes-mismatch", "variance"),
    ("garch", "change[t - 1] - mu", "change[t + 1] - mu", "future-shift", "t + 1"),
    ("local_linear_trend", "level[t - 1] + slope[t - 1]", "level[t - 1] + slope", "axes-mismatch", "slope"),
    ("local_linear_trend", "level[t - 1] + slope[t - 1]", "level[t - 1] + slope[t + 1]", "future-shift", "t + 1"),
    ("local_linear_trend", "level[t], gauge_sd", "level[t], slope[t]", "argument-support", "slope[t]"),
    ("stochastic_volatility", "h[t - 1] - mu", "h[t] - mu", "used-before-bound", "h[t]"),
    ("gaussian_process", "[over=Day]", "[over=Dya]", "unknown-name", "Dya"),
    ("gaussian_process_counts", "Poisson(log_rate=", "Poisson(", "argument-support", "log_rate[k]"),
    ("topic_model", "theta[document[i]]", "theta[word[i]]", "index-mismatch", "word[i]"),
    ("mixture", "mu[kind[i]]", "mu[kind]", "index-mismatch", "kind"),
    ("mixture", "sigma[kind[i]]", "sigma", "axes-mismatch", "sigma"),
    ("mixture", "HalfNormal(10.0)", "Normal(0.0, 10.0)", "argument-support", "sigma[kind[i]]"),
    ("survival", "x[i, c]", "x[c, i]", "index-mismatch", "c, i"),
    ("measurement_error", "b * eaten[i]", "b * salt", "axes-mismatch", "salt"),
    ("missing_predictors", "b * fed[c]", "b * fed", "axes-mismatch", "fed"),
    ("missing_predictors", "Gamma(shape, shape /", "Gamma(older, shape /", "argument-support", "older"),
    ("capture_recapture", "t > ringed[d]", "t > ringed[v]", "index-mismatch", "v"),
    ("capture_recapture", "P[d, t, z[d, t - 1]]", "P[t, d, z[d, t - 1]]", "index-mismatch", "t, d"),
    ("capture_recapture", "== alive)", "== alife)", "possible-typo", "alife"),
    ("occupancy", "found[i, j] * z[i]", "found[j, i] * z[i]", "index-mismatch", "j, i"),
    ("ordinal", "u[ward[i]]", "u[ward]", "axes-mismatch", "ward"),
    ("multinomial_choice", "minutes[i, m]", "minutes[i]", "axes-mismatch", "minutes[i]"),
    ("horseshoe", "x[i, g]", "x[g, i]", "index-mismatch", "g, i"),
    ("icar", "phi[d]", "phi", "axes-mismatch", "phi"),
    ("icar", "log(expected[d]) + ", "expected + ", "axes-mismatch", "expected"),
    ("factor_analysis", "W[j, k] * W[l, k]", "W[k, j] * W[l, k]", "index-mismatch", "k, j"),
    ("factor_analysis", "for k : Component", "for k : Measure", "index-mismatch", "Measure"),
    ("ratings", "q[film[r], k]", "q[r, k]", "index-mismatch", "r"),
    ("ratings", "u[viewer[r], k]", "u[film[r], k]", "index-mismatch", "film[r]"),
]  # fmt: skip
"""The first fix of these gives a program that is clean."""
TOLD = [
    ("item_response", "ability[student[a]] - difficulty[item[a]]", "ability - difficulty", "axes-mismatch", "-"),
    ("hidden_markov", " from Categorical([0.4, 0.3, 0.3])", "", "missing-from", "t - 1"),
    ("hidden_markov", "[0.4, 0.3, 0.3]", "[0.5, 0.5]", "cannot-marginalize", "Categorical"),
    ("hidden_markov", "Ordered 3 <- Normal", "Ordered 2 <- Normal", "index-mismatch", "z[t]"),
    ("hidden_markov_subjects", "z[e, t - 1]", "z[e - 1, t]", "index-mismatch", "e - 1"),
    ("autoregression", "for j : Lag", "for j : Quarter", "index-mismatch", "j"),
    ("garch", "\n        from omega / (1 - persistence)", "", "missing-from", "t - 1"),
    ("local_linear_trend", " from Normal(10.0, 2.0)", "", "missing-from", "t - 1"),
    ("holt_winters", "from (level0, trend0, season0)", "from (level0, trend0)", "pattern-mismatch", "(level0, trend0)"),
    ("topic_model", "phi[z[i]]", "phi[i]", "index-mismatch", "i"),
    ("topic_model", "phi[z[i]]", "theta[z[i]]", "index-mismatch", "z[i]"),
    ("topic_model", "marginalize z[i : Token] : Topic", "marginalize z[i : Token]", "unsized-draw", "z"),
    ("topic_model", " [over=Word]", " [over=Document]", "data-mismatch", "word"),
    ("survival", "right_censored=censored", "censored=censored", "step-option", "censored"),
    ("missing_predictors", "[missing=impute]", "[missing=drop]", "step-option", "fed"),
    ("missing_predictors", "[missing=impute]", "[missing=imputed]", "step-option", "imputed"),
    ("capture_recapture", "[1.0, 0.0]", "[1.0, 0.0, 0.0]", "cannot-marginalize", "Categorical"),
    ("occupancy", "observe heard[i : Pond, j : Visit]", "observe heard[j : Visit, i : Pond]", "data-mismatch", "heard"),
    ("ordinal", "Ordered 4", "Ordered 5", "data-mismatch", "pain"),
    ("multinomial_choice", "data mode : Trip -> Mode", "data mode : Trip -> Person", "data-mismatch", "mode"),
    ("horseshoe", "HalfCauchy(0.1)", "HalfCauchy(0.0)", "family-arguments", "0.0"),
    ("icar", "ICAR(edges) [over=District]", "ICAR(edges) [over=Border]", "index-mismatch", "d"),
    ("ratings", "stars[r : Rating]", "stars[r : Film]", "index-mismatch", "r"),
]  # fmt: skip
"""What is right instead of these only their author knows."""


def told(snapshot: Snapshot) -> list[LocatedDiagnostic]:
    return [found for found in snapshot.diagnostics() if found.severity is not Severity.HINT]


def one(mistake: Mistake) -> tuple[str, LocatedDiagnostic]:
    """The text with the mistake, and all that is said of it."""
    text = (STATISTICS / f"{mistake.program}.qvr").read_text(encoding="utf-8")
    start = text.index("\nobject ")  # the comments above speak of the same things
    assert mistake.right in text[start:]
    text = text[:start] + text[start:].replace(mistake.right, mistake.wrong, 1)
    [found] = told(analyse(text))
    (line, start), (last, end) = found.range
    assert line == last
    assert (found.code.name, text.split("\n")[line][start:end]) == (mistake.code, mistake.blamed)
    return text, found


def called(mistake: Mistake) -> str:
    return f"{mistake.program}: {mistake.wrong.strip() or f'no {mistake.right.strip()}'}"[:70]


@pytest.mark.parametrize("mistake", [Mistake(*each) for each in MENDED], ids=called)
def test_a_mistake_is_one_error_whose_fix_mends_it(mistake: Mistake) -> None:
    text, found = one(mistake)
    assert told(analyse(applied(text, found.fixes[0].edits))) == []


@pytest.mark.parametrize("mistake", [Mistake(*each) for each in TOLD], ids=called)
def test_a_mistake_is_one_error(mistake: Mistake) -> None:
    one(mistake)
