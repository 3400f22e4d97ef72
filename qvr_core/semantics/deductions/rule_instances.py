"""Instantiations of a deduction's rules: what the category variables of each rule can stand for.

They are found by closing the lexicon's categories under the rules, with positions and logical forms forgotten, so they
are all instantiations that any sentence can have.  A learnable rule has one weight for each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from qvr_core.semantics.deductions.closure import CATEGORY, ITEM, Rule, close
from qvr_core.semantics.deductions.terms import Term, depth, fill, from_model, variables
from qvr_core.semantics.types.model.deductions import Deduction, EntryModel, RuleModel
from qvr_core.syntax.immutable import immutable

MAX_ITEMS = 100_000
DEPTH_BEYOND_LEXICON = 2
"""How much deeper than what the text writes categories may grow where `depth=` is not given."""
ANY = "*"
"""Stands for a position or a logical form where they do not matter."""
MOST_SLOTS = 99
_EDITOR_PATIENCE = 20_000
"""Matches tried before an editor's question goes without an answer: about 20 ms."""

Slots = frozenset[tuple[Term, int]]
"""Slots of items: the constructor, and which of its arguments, from 1."""
Instances = tuple[dict[tuple[Term, ...], int], ...]
"""For each rule, its instantiations, numbered."""


@immutable
class System:
    """A deduction as patterns and ground terms; `arity` is the number of an item's slots, `deepest` the depth of the
    deepest category built, `forgotten` the slots that hold positions or logical forms."""

    rules: tuple[Rule, ...]
    categories: tuple[Term, ...]
    arity: int
    deepest: int
    forgotten: Slots


def system_of(deduction: Deduction, entries: Iterable[EntryModel]) -> System:
    """The system of a deduction with these entries of its lexicon."""
    terms = [_terms(rule, deduction.binders) for rule in deduction.rules]
    forgotten = _forgotten(terms)
    rules = tuple(_rule(rule.name, items, forgotten) for rule, items in zip(deduction.rules, terms, strict=True))
    categories = tuple(from_model(entry.category, deduction.binders) for entry in entries)
    written = [*categories, *(t for r in rules for t in (*r.premises, r.conclusion))]
    deepest = deduction.depth
    if deepest is None:
        deepest = DEPTH_BEYOND_LEXICON + max((depth(t) for t in written), default=0)
    return System(rules, tuple(dict.fromkeys(categories)), _item_arity(deduction), deepest, forgotten)


def instances_of(system: System) -> Instances:
    """All instantiations, however long that takes."""
    found = _instances(system, None)
    assert found is not None
    return found


def conclusions_of(system: System) -> tuple[dict[tuple[Term, ...], Term], ...]:
    """For each rule what its instantiations conclude, positions and logical forms left out."""
    found: tuple[dict[tuple[Term, ...], Term], ...] = tuple({} for _ in system.rules)
    for rule, table, own in zip(system.rules, instances_of(system), found, strict=True):
        pattern = _abstract(rule.conclusion, system.forgotten)
        own.update({instance: fill(pattern, dict(zip(rule.own, instance, strict=True))) for instance in table})
    return found


def conclusion_of_word(system: System, category: Term) -> Term:
    """The same of an entry of the lexicon."""
    return _abstract((ITEM, 0, 1, category, ANY)[: system.arity + 1], system.forgotten)


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
    def abstract(item: Term) -> Term:
        return _abstract(item, system.forgotten)

    axioms = [conclusion_of_word(system, category) for category in system.categories]
    rules = [Rule(r.name, tuple(map(abstract, r.premises)), abstract(r.conclusion), r.own) for r in system.rules]
    graph = close(axioms, rules, system.deepest, MAX_ITEMS, patience)
    if graph.stopped == "patience":
        return None
    tables: Instances = tuple({} for _ in rules)
    for edge in graph.edges:
        tables[edge.rule].setdefault(edge.instance, len(tables[edge.rule]))
    return tables


def _terms(rule: RuleModel, binders: Sequence[str]) -> tuple[Term, ...]:
    """The premises and the conclusion."""
    return tuple(from_model(term, binders) for term in (*rule.premises, rule.conclusion))


def _rule(name: str, items: Sequence[Term], forgotten: Slots) -> Rule:
    """A rule of these items; its own variables are those that stand for categories."""
    names = {name for premise in items[:-1] for name in variables(premise)}
    others = {name for item in items for name in _in_slots(item, forgotten)}
    return Rule(name, tuple(items[:-1]), items[-1], tuple(sorted(names - others)))


def _forgotten(rules: Sequence[Sequence[Term]]) -> Slots:
    """The slots of all items that hold positions or logical forms: those of `span`, and every slot that a rule fills
    from one of them."""
    found: set[tuple[Term, int]] = {(ITEM, slot) for slot in (1, 2, *range(CATEGORY + 1, MOST_SLOTS))}
    size = 0
    while len(found) > size:
        size = len(found)
        for items in rules:
            names = {name for item in items for name in _in_slots(item, found)}
            for item in items:
                if isinstance(item, tuple):
                    slots = enumerate(item[1:], start=1)
                    found |= {(item[0], slot) for slot, term in slots if variables(term) & names}
    return frozenset(found)


def _item_arity(deduction: Deduction) -> int:
    """Slots of an item: 3, or 4 where the rules' items carry a logical form."""
    for rule in deduction.rules:
        for term in (*rule.premises, rule.conclusion):
            if term.head == ITEM and term.kind == "constructor":
                return len(term.args)
    return CATEGORY


def _in_slots(item: Term, slots: Collection[tuple[Term, int]]) -> set[str]:
    """The variables of an item in these slots."""
    if not isinstance(item, tuple):
        return set()
    return {name for slot, term in enumerate(item[1:], start=1) if (item[0], slot) in slots for name in variables(term)}


def _abstract(item: Term, forgotten: Slots) -> Term:
    """An item with positions and forms forgotten."""
    if not isinstance(item, tuple):
        return item
    return (item[0], *(ANY if (item[0], at) in forgotten else term for at, term in enumerate(item[1:], start=1)))
