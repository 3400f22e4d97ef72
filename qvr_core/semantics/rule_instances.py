"""Instantiations of a deduction's rules: what the category variables of each rule can stand for.

They are found by closing the lexicon's categories under the rules, with positions and logical forms forgotten, so they
are all instantiations that any sentence can have.  A learnable rule has one weight for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from qvr_core.semantics.closure import CATEGORY, ITEM, Rule, close
from qvr_core.semantics.model import Deduction, EntryModel, RuleModel
from qvr_core.semantics.terms import Term, depth, from_model, variables

MAX_ITEMS = 100_000
DEPTH_BEYOND_LEXICON = 2
"""How much deeper than what the text writes categories may grow where `depth=` is not given."""
ANY = "*"
"""Stands for a logical form where forms do not matter."""
_EDITOR_PATIENCE = 20_000
"""Matches tried before an editor's question goes without an answer: about 20 ms."""

Instances = tuple[dict[tuple[Term, ...], int], ...]
"""For each rule, its instantiations, numbered."""


@dataclass(frozen=True, slots=True)
class System:
    """A deduction as patterns and ground terms; `arity` is the number of an item's slots, `deepest` the depth of the
    deepest category built."""

    rules: tuple[Rule, ...]
    categories: tuple[Term, ...]
    arity: int
    deepest: int


def system_of(deduction: Deduction, entries: Iterable[EntryModel]) -> System:
    """The system of a deduction with these entries of its lexicon."""
    rules = tuple(_rule(rule, deduction.binders) for rule in deduction.rules)
    categories = tuple(from_model(entry.category, deduction.binders) for entry in entries)
    written = [*categories, *(t for r in rules for t in (*r.premises, r.conclusion))]
    deepest = deduction.depth
    if deepest is None:
        deepest = DEPTH_BEYOND_LEXICON + max((depth(t) for t in written), default=0)
    return System(rules, tuple(dict.fromkeys(categories)), _item_arity(deduction), deepest)


def instances_of(system: System) -> Instances:
    """All instantiations, however long that takes."""
    found = _instances(system, None)
    assert found is not None
    return found


def weight_count(deduction: Deduction) -> int | None:
    """Learnable weights of a deduction: one per instantiation of each learnable rule, one per learnable entry.

    None where they cannot be told: the lexicon is in a file, or the rules build more than an editor can wait for.
    """
    learnable = [rule.learnable for rule in deduction.rules]
    if deduction.lexicon_files:
        return None
    entries = sum(entry.learnable for entry in deduction.lexicon)
    if not any(learnable):
        return entries
    found = _instances(system_of(deduction, deduction.lexicon), _EDITOR_PATIENCE)
    if found is None:
        return None
    return entries + sum(len(table) for table, learns in zip(found, learnable, strict=True) if learns)


@lru_cache(maxsize=32)
def _instances(system: System, patience: int | None) -> Instances | None:
    axioms = [_abstract((ITEM, 0, 1, c, ANY)[: system.arity + 1]) for c in system.categories]
    rules = [Rule(r.name, tuple(map(_abstract, r.premises)), _abstract(r.conclusion), r.own) for r in system.rules]
    graph = close(axioms, rules, system.deepest, MAX_ITEMS, patience)
    if graph.stopped == "patience":
        return None
    tables: Instances = tuple({} for _ in rules)
    for edge in graph.edges:
        tables[edge.rule].setdefault(edge.instance, len(tables[edge.rule]))
    return tables


def _rule(rule: RuleModel, binders: Sequence[str]) -> Rule:
    premises = tuple(from_model(premise, binders) for premise in rule.premises)
    conclusion = from_model(rule.conclusion, binders)
    positions = {name for t in (*premises, conclusion) for name in _in_slots(t, (1, 2))}
    forms = {name for t in (*premises, conclusion) for name in _in_slots(t, range(CATEGORY + 1, 99))}
    names = {name for premise in premises for name in variables(premise)}
    return Rule(rule.name, premises, conclusion, tuple(sorted(names - positions - forms)))


def _item_arity(deduction: Deduction) -> int:
    """Slots of an item: 3, or 4 where the rules' items carry a logical form."""
    for rule in deduction.rules:
        for term in (*rule.premises, rule.conclusion):
            if term.head == ITEM and term.kind == "constructor":
                return len(term.args)
    return CATEGORY


def _in_slots(term: Term, slots: Sequence[int]) -> set[str]:
    if not isinstance(term, tuple) or term[0] != ITEM:
        return set()
    return {name for slot in slots if slot < len(term) for name in variables(term[slot])}


def _abstract(item: Term) -> Term:
    """An item with positions and form forgotten."""
    if isinstance(item, tuple) and item[0] == ITEM:
        return (ITEM, 0, 0, *item[CATEGORY : CATEGORY + 1], *((ANY,) * (len(item) - CATEGORY - 1)))
    return item
