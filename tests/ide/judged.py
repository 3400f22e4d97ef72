"""Places in examples/ whose hovers and completions are read by people: `python -m tests.ide.judged` prints them all.

A hover is good when a newcomer learns from it, in words of statistics, what stands there in this program; a list is
good when what most people would write next is among its first five.
"""

from __future__ import annotations

import re
from pathlib import Path

from qvr_core.analysis import Analyzer, Snapshot
from qvr_core.disk import Disk, location_of_file
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.hover import hover
from qvr_core.ide.prose import plain
from qvr_core.syntax.source import Cursor
from qvr_core.workspace import Workspace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

HOVERS = [
    # (example, line that begins so, the word; or the word and which of them)
    ("statistics/radon", "data county", "county"),
    ("statistics/radon", "data log_radon", "log_radon"),
    ("statistics/radon", "sample mu", "mu"),
    ("statistics/radon", "sample mu", "Normal"),
    ("statistics/radon", "sample tau", "tau"),
    ("statistics/radon", "sample level", "level"),
    ("statistics/radon", "sample level", "County"),
    ("statistics/radon", "sample level", "noncentred"),
    ("statistics/radon", "observe log_radon", "floor"),
    ("statistics/radon", "observe log_radon", "county"),
    ("statistics/radon", "program radon", "radon"),
    ("statistics/radon", "object County", "House"),
    ("statistics/radon", "return level", "level"),
    ("statistics/item_response", "let logit", "logit"),
    ("statistics/item_response", "sample discrimination", "LogNormal"),
    ("statistics/item_response", "data correct", "Bool"),
    ("statistics/occupancy", "marginalize z", "z"),
    ("statistics/occupancy", "marginalize z", "marginalize"),
    ("statistics/occupancy", "let occupied", "sigmoid"),
    ("statistics/occupancy", "data temperature", "temperature"),
    ("statistics/ordinal", "sample cuts", "cuts"),
    ("statistics/ordinal", "sample cuts", "Ordered"),
    ("statistics/ordinal", "data pain", "Pain"),
    ("statistics/ordinal", "observe pain", "OrderedLogistic"),
    ("statistics/garch", "let variance", "variance"),
    ("statistics/garch", "from omega", "from"),
    ("statistics/missing_predictors", "observe fed", "fed"),
    ("statistics/missing_predictors", "observe fed", "missing"),
    ("statistics/hidden_markov", "marginalize z", "Categorical"),
    ("statistics/hidden_markov", "let P", "where"),
    ("statistics/varying_slopes", "sample L", "LKJCholesky"),
    ("statistics/varying_slopes", "let u", "k"),
    ("statistics/varying_slopes", "let expected", "slope"),
    ("statistics/survival", "observe months", "right_censored"),
    ("statistics/survival", "data x", "x"),
    ("survival", "score seen", "score"),
    ("topic_model", "sample topics_of", "over"),
    ("lstm_lm", "morphism tok_embed", "tok_embed"),
    ("bidirectional_rnn_lm", "let backbone", "fan"),
    ("variational_autoencoder", "let code", "e"),
]

COMPLETIONS = [
    # (example, line that begins so, what stands before the cursor on it, what may well be written next)
    ("statistics/radon", "sample mu", "    sample mu <- ", ("Normal", "HalfNormal", "StudentT")),
    ("statistics/radon", "sample tau", "    sample tau <- ", ("HalfNormal", "Exponential", "Normal")),
    ("statistics/radon", "sample level", "    sample level[c : ", ("County", "House")),
    ("statistics/radon", "sample level", "    sample level[c : County] <- Normal(", ("mu", "gamma", "tau")),
    ("statistics/radon", "sample level", "    sample level[c : County] <- Normal(gamma * ", ("log_uranium[c]",)),
    ("statistics/radon", "sample level", "    sample level[c : County] <- Normal(mu, tau) [", ("noncentred",)),
    ("statistics/radon", "observe log_radon", "    observe log_radon[i : House] <- Normal(", ("level[county[i]]",)),
    ("statistics/radon", "observe log_radon", "    observe log_radon[i : House] <- Normal(level[", ("county[i]",)),
    ("statistics/radon", "observe log_radon", "    observe ", ("log_radon",)),
    ("statistics/radon", "return level", "    return ", ("level", "mu")),
    ("statistics/radon", "data floor", "    data floor : ", ("House", "County")),
    ("statistics/radon", "sample sigma", "    ", ("sample", "observe", "let")),
    ("statistics/item_response", "let logit", "    let logit[a : Answer] = ", ("ability[student[a]]",)),
    ("statistics/item_response", "observe correct", "    observe correct[a : Answer] <- ", ("Bernoulli",)),
    ("statistics/occupancy", "marginalize z", "    marginalize z[i : Pond] : FinSet 2 <- ", ("Bernoulli",)),
    ("statistics/missing_predictors", "observe fed", "    observe fed[c : Child] <- Gamma(shape, 1.0) [", ("missing",)),
    ("statistics/garch", "observe change", "    observe change[t : Day] <- Normal(mu, sqrt(", ("variance[t]",)),
    ("statistics/ordinal", "sample cuts", "    sample cuts : ", ("Ordered", "Real")),
    ("lstm_lm", "let states", "let states = tok_embed >> ", ("scan",)),
    ("lstm_lm", "morphism lm_head", "morphism lm_head : Hidden -> Token [role=kernel] ~ ", ("Categorical",)),
]  # fmt: skip


def line_of(text: str, begins: str) -> int:
    return next(at for at, line in enumerate(text.splitlines()) if line.strip().startswith(begins))


def snapshot_of(example: str, text: str) -> Snapshot:
    """A text in place of an example's, with what it imports."""
    return Analyzer(text, None, location_of_file(EXAMPLES / f"{example}.qvr"), Workspace(Disk())).snapshot()


def hovered(example: str, begins: str, word: str) -> str:
    """What a hover on a word of a line says, as plain text."""
    text = (EXAMPLES / f"{example}.qvr").read_text(encoding="utf-8")
    at = line_of(text, begins)
    places = [match.start() for match in re.finditer(rf"\b{word}\b", text.splitlines()[at])]
    found = hover(snapshot_of(example, text), Cursor(at, places[-1]), blankets=True)
    return "" if found is None else plain(found.content)


def offered(example: str, begins: str, before: str) -> list[str]:
    """What is offered where a line has been written up to here, best first."""
    text = (EXAMPLES / f"{example}.qvr").read_text(encoding="utf-8")
    lines = text.splitlines()
    at = line_of(text, begins)
    lines[at] = before
    return [item.label for item in complete(snapshot_of(example, "\n".join(lines)), Cursor(at, len(before)))]


def main() -> None:
    for number, (example, begins, word) in enumerate(HOVERS, 1):
        print(f"--- {number}. {example}: `{begins} …`, on `{word}`\n{hovered(example, begins, word)}\n")
    for number, (example, begins, before, wanted) in enumerate(COMPLETIONS, 1):
        labels = offered(example, begins, before)
        print(f"--- {number}. {example}: `{before}`\n{', '.join(labels[:12])} … ({len(labels)})\n  likely: {wanted}\n")


if __name__ == "__main__":
    main()
