"""The grammars of the examples, fitted: against EM over all trees, which this file enumerates by itself."""

from __future__ import annotations

import csv
import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.dsl import load
from qvr_core.runs import load_run
from qvr_core.runtime.tensors.terms import read
from qvr_core.runtime.values.precision import computing_in

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Category = Any
"""A name, or a slash with what it gives and what it wants."""
Event = tuple[Category, str]
"""A choice: what is derived, and what becomes of it."""
Uses = Counter[Event]
Corpus = list[tuple[str, int]]
Table = list[tuple[int, list[Uses]]]
"""For each sentence how often it was told, and its derivations."""


def corpus(name: str) -> Corpus:
    with open(EXAMPLES / "data" / f"{name}.csv", encoding="utf-8") as file:
        return [(row["told"], int(row["times"])) for row in csv.DictReader(file)]


# ---------------------------------------------------------------- all trees


def trees(
    words: Sequence[str],
    lexicon: Mapping[str, Sequence[Category]],
    joined: Callable[[Category, Category], Iterator[tuple[Category, str]]],
) -> list[Uses]:
    """What is chosen in every binary tree over some words whose root is S: each tree by itself."""

    @cache
    def over(i: int, j: int) -> tuple[tuple[Category, Uses], ...]:
        found: list[tuple[Category, Uses]] = []
        if j - i == 1:
            found += [(category, Counter([(category, words[i])])) for category in lexicon[words[i]]]
        for k in range(i + 1, j):
            for left, one in over(i, k):
                for right, other in over(k, j):
                    for category, rule in joined(left, right):
                        found.append((category, one + other + Counter([(category, rule)])))
        return tuple(found)

    return [uses for category, uses in over(0, len(words)) if category == "S"]


CONTEXT_FREE = {
    ("NP", "VP"): ("S", "sentence"),
    ("Det", "N"): ("NP", "phrase"),
    ("NP", "PP"): ("NP", "to_noun"),
    ("V", "NP"): ("VP", "object"),
    ("VP", "PP"): ("VP", "to_verb"),
    ("P", "NP"): ("PP", "preposition"),
}
ENGLISH = {
    "she": ["NP"], "slept": ["VP"], "the": ["Det"], "a": ["Det"], "man": ["N"], "telescope": ["N"], "park": ["N"],
    "saw": ["V"], "painted": ["V"], "with": ["P"], "in": ["P"],
}  # fmt: skip
VERB = ("\\", "S", "NP")
TRANSITIVE = ("/", VERB, "NP")
GAP = ("gap", "S", "NP")
CATEGORIES: dict[str, list[Category]] = {
    "they": ["NP"],
    "the": [("/", "NP", "N")],
    "old": [("/", "N", "N"), "N"],
    "big": [("/", "N", "N")],
    "man": ["N", TRANSITIVE],
    "boats": ["N"],
    "fish": ["N", VERB, TRANSITIVE],
    "sleep": [VERB],
    "see": [TRANSITIVE],
    "often": [("\\", VERB, VERB)],
    "that": [("/", ("\\", "N", "N"), GAP)],
}


def attached(left: Category, right: Category) -> Iterator[tuple[Category, str]]:
    """The context-free rules."""
    if (left, right) in CONTEXT_FREE:
        yield CONTEXT_FREE[left, right]


def combined(left: Category, right: Category) -> Iterator[tuple[Category, str]]:
    """Forward and backward application, X/Y and X\\Y of a Y, and a subject raised and composed with its verb."""
    if left[0] == "/" and left[2] == right:
        yield left[1], f"forward {right}"
    if right[0] == "\\" and right[2] == left:
        yield right[1], f"backward {left}"
    if (left, right) == ("NP", TRANSITIVE):
        yield GAP, "extract"


def clause(words: Sequence[str]) -> Uses:
    """The one derivation of a clause: its i-th object goes with its i-th verb."""
    count = len(words) // 3
    uses: Uses = Counter()
    for at in range(count):
        article, name, verb = words[2 * at], words[2 * at + 1], words[2 * count + at]
        case = {"em": "Dative", "de": "Accusative"}[article]
        uses.update([("two", case), ("Name", name), (f"Verb({case})", verb), ("chain", "more" if at else "one")])
    return uses


# ---------------------------------------------------------------- EM


def fitted(table: Table, rounds: int = 3000) -> tuple[dict[Event, float], float]:
    """The maximum of the likelihood over the probabilities of choices, by EM, and the log likelihood there."""
    events = dict.fromkeys(event for _, derivations in table for uses in derivations for event in uses)
    kinds = Counter(left for left, _ in events)
    share = {event: 1.0 / kinds[event[0]] for event in events}
    before = -math.inf
    for _ in range(rounds):
        expected: dict[Event, float] = dict.fromkeys(events, 0.0)
        likelihood = 0.0
        for times, derivations in table:
            logs = [sum(n * math.log(share[event]) for event, n in uses.items()) for uses in derivations]
            top = max(logs)
            whole = sum(math.exp(log - top) for log in logs)
            likelihood += times * (top + math.log(whole))
            for log, uses in zip(logs, derivations, strict=True):
                for event, n in uses.items():
                    expected[event] += times * math.exp(log - top) / whole * n
        totals: Counter[str] = Counter()
        for (left, _), count in expected.items():
            totals[left] += count  # pyright: ignore[reportArgumentType]
        share = {event: max(count, 1e-300) / totals[event[0]] for event, count in expected.items()}
        if likelihood - before < 1e-10:
            break
        before = likelihood
    return share, before


# ---------------------------------------------------------------- the examples


def enumerated(name: str) -> Table:
    match name:
        case "attachment":
            return [(times, trees(told.split(), ENGLISH, attached)) for told, times in corpus("attachments")]
        case "categories":
            return [(times, trees(told.split(), CATEGORIES, combined)) for told, times in corpus("categories")]
        case _:
            return [(times, [clause(told.split())]) for told, times in corpus("clauses")]


OVER = {"Over": "/", "Under": "\\", "Gap": "gap"}


def category_of(text: str) -> Category:
    """A category as the examples write it, `Over(X, Y)`."""
    term: Any = read(text, ())

    def translated(one: Any) -> Category:
        return (OVER.get(one[0], one[0]), *map(translated, one[1:])) if isinstance(one, tuple) else one

    found = translated(term)
    return f"Verb({found[1]})" if found[0] == "Verb" else found


def probabilities(deduction: Any) -> dict[Event, float]:
    """Those of all choices, called as this file calls them."""
    found: dict[Event, float] = {
        (category_of(category), word): math.exp(weight)
        for (word, category), weight in deduction.entry_weights().items()
    }
    for (rule, *instance), weight in deduction.rule_weights().items():
        parts = [category_of(one) for one in instance]
        match rule:
            case "forward" | "backward":
                event: Event = (parts[0], f"{rule} {parts[1]}")
            case "extract":
                event = (GAP, rule)
            case "pair":
                event = ("two", instance[0])
            case "one" | "cross":
                event = ("chain", "more" if rule == "cross" else "one")
            case _:
                event = next((left for left, called in CONTEXT_FREE.values() if called == rule), rule), rule
        found[event] = math.exp(weight)
    return found


def climbed(model: Any) -> float:
    """The greatest log joint density that L-BFGS finds."""
    optimiser = torch.optim.LBFGS(
        model.parameters(), max_iter=200, line_search_fn="strong_wolfe", tolerance_change=1e-12
    )

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        value = -model.log_joint(None, {}).sum()
        value.backward()
        return value

    optimiser.step(loss)
    return -float(loss().detach())


@pytest.mark.parametrize(
    ("name", "ambiguous", "most"), [("attachment", 104, 14), ("categories", 42, 10), ("cross_serial", 0, 1)]
)
def test_the_probabilities_of_an_example_are_those_that_em_comes_to(name: str, ambiguous: int, most: int) -> None:
    table = enumerated(name)
    assert sum(times for times, derivations in table if len(derivations) > 1) == ambiguous
    assert max(len(derivations) for _, derivations in table) == most
    wanted, likelihood = fitted(table)
    told = {"attachment": "attachments", "categories": "categories", "cross_serial": "clauses"}[name]
    sentences, times = zip(*corpus(told), strict=True)
    with computing_in(torch.float64):
        program = load(EXAMPLES / f"{name}.qvr", data={"told": list(sentences), "times": list(times)})
        model: Any = program.morphism.double()
        found = climbed(model)
        (deduction,) = program.deductions.values()
        shares = probabilities(deduction)
    assert found == pytest.approx(likelihood, abs=1e-5)
    assert {event: shares[event] for event in wanted} == pytest.approx(wanted, abs=1e-4)


def test_choices_of_a_normalised_deduction_add_up_to_one() -> None:
    """At any weights: over what concludes the same, words included."""
    program = load(EXAMPLES / "categories.qvr", data={"told": ["they sleep"], "times": [1]})
    (deduction,) = program.deductions.values()
    with torch.no_grad():
        for parameter in deduction.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(3))
    totals: Counter[Category] = Counter()
    for (left, _), share in probabilities(deduction).items():
        totals[left] += share  # pyright: ignore[reportArgumentType]
    assert dict(totals) == pytest.approx(dict.fromkeys(totals, 1.0), abs=1e-6)
    assert len(totals) == 11


def test_a_clause_whose_verbs_stand_the_other_way_has_no_derivation() -> None:
    program = load(EXAMPLES / "cross_serial.qvr", data={"told": ["em hans folge"], "times": [1]})
    (deduction,) = program.deductions.values()
    crossed, nested = "em hans de peter hälfe laa", "em hans de peter laa hälfe"
    assert len(deduction.parse(crossed).derivations("span(0, 6, S)")) == 1
    assert deduction.parse(nested).derivations("span(0, 6, S)") == []


def test_chains_of_probabilities_without_a_prior_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(EXAMPLES / "cross_serial.qvr", tmp_path)
    shutil.copy(EXAMPLES / "data" / "clauses.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["run", "nuts", "cross_serial.qvr", "--data", "csv:clauses.csv"])
    assert done.exit_code == 1
    assert "the weights of `swiss` have no prior" in done.output + done.stderr


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["attachment", "categories", "cross_serial"])
def test_a_run_of_the_command_line_comes_to_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, likelihood = fitted(enumerated(name))
    shutil.copytree(EXAMPLES / "data", tmp_path / "examples" / "data")
    shutil.copy(EXAMPLES / f"{name}.qvr", tmp_path / "examples")
    shutil.copy(EXAMPLES.parent / "qvr.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["run", "svi", f"examples/{name}.qvr", "--steps", "800"])
    assert done.exit_code == 0, done.output
    run = load_run("last")
    assert float(run.model.log_joint(run.x, run.observations).sum().detach()) == pytest.approx(likelihood, abs=0.02)
    (deduction,) = run.model.deductions.values()
    shares = probabilities(deduction)
    assert {event: shares[event] for event in wanted} == pytest.approx(wanted, abs=5e-3)
