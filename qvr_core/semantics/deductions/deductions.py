"""Deductions: atoms, rules and a lexicon, checked (docs/reference.md#deductions)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.deductions.closure import CATEGORY, ITEM
from qvr_core.semantics.language.options import DEDUCTION_KEYS, RULE_ATTRIBUTES, RULE_FLAGS, SEMIRINGS
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin, Related
from qvr_core.semantics.types.model.deductions import Deduction, EntryModel, RuleModel, TermModel
from qvr_core.semantics.types.program_codes import (
    DEDUCTION_OPTION,
    DUPLICATE_ATOM,
    DUPLICATE_RULE,
    ITEM_ARITY,
    LEXICON_TERM,
    POSSIBLE_TYPO,
    RULE_ATTRIBUTE,
    UNBOUND_VARIABLE,
    UNKNOWN_START,
)
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tree.declarations import DeductionHeader, Item
from qvr_core.syntax.tree.deductions import AtomsItem, Attributes, LexiconEntry, LexiconItem, RuleItem, Term
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.options import Number, Option, String, Word
from qvr_core.syntax.tree.units import Placed, Statement


@dataclass(slots=True)
class _Reading:
    """What the items read so far say."""

    scope: Scope
    atoms: dict[str, Name] = field(default_factory=dict[str, Name])
    binders: dict[str, Name] = field(default_factory=dict[str, Name])
    rules: dict[str, Origin] = field(default_factory=dict[str, Origin])
    arities: dict[str, tuple[int, Origin]] = field(default_factory=dict[str, tuple[int, Origin]])


def check_deduction(statement: Statement, scope: Scope) -> Deduction:
    """The typed deduction; atoms and binders may stand below the rules that use them."""
    header = statement.header.unit.node
    assert isinstance(header, DeductionHeader)
    domain, codomain = check_object_expr(header.domain, scope), check_object_expr(header.codomain, scope)
    reading = _Reading(scope)
    children = statement.header.children
    for child in children:
        if isinstance(child.unit.node, AtomsItem):
            scope.unit = child.uid
            _read_atoms(child.unit.node, reading)
    rules: list[RuleModel] = []
    entries: list[EntryModel] = []
    files: list[str] = []
    for child in children:
        scope.unit = child.uid
        node = child.unit.node
        if isinstance(node, RuleItem):
            rules.append(_rule(node, reading))
        elif isinstance(node, LexiconItem):
            files.extend(() if node.source is None else (node.source.value,))
            entries.extend(_entries(child, reading))
        elif isinstance(node, LexiconEntry):
            entries.append(_entry(node, reading))
    scope.unit = statement.uid
    settings = _Settings(header, reading)
    normalised = settings.normalised()
    if normalised:
        _check_unbounded([child for child in children if isinstance(child.unit.node, RuleItem)], scope)
    return Deduction(
        name=header.name.text,
        domain=domain,
        codomain=codomain,
        atoms=tuple(reading.atoms),
        binders=tuple(reading.binders),
        rules=tuple(rules),
        lexicon=tuple(entries),
        lexicon_files=tuple(files),
        semiring=settings.word("semiring", "LogProb"),
        start=settings.start(),
        normalised=normalised,
        depth=settings.count("depth"),
        tolerance=settings.positive("tolerance", 1e-6),
        max_iterations=settings.count("max_iterations") or 1000,
        damaged=any(placed.unit.broken for placed in units_of(statement)),
        origin=scope.origin(header.name.span),
    )


def _read_atoms(item: AtomsItem, reading: _Reading) -> None:
    listed = reading.binders if item.keyword == "binders" else reading.atoms
    for name in item.names:
        if name.text in listed:
            reading.scope.report(DUPLICATE_ATOM, f"`{name.text}` is listed already", name.span)
        listed.setdefault(name.text, name)


# ---------------------------------------------------------------- rules


def _rule(rule: RuleItem, reading: _Reading) -> RuleModel:
    scope = reading.scope
    origin = scope.origin(rule.name.span)
    before = reading.rules.setdefault(rule.name.text, origin)
    if before is not origin:
        related = (Related(f"`{rule.name.text}` is here", before),)
        scope.report(DUPLICATE_RULE, f"there are two rules called `{rule.name.text}`", origin, related)
    regular = all([_check_arity(item, reading) for item in (*rule.premises, rule.conclusion)])
    bound = {name.text for premise in rule.premises for name in _variables(premise, frozenset(), reading)}
    for name in _variables(rule.conclusion, frozenset(), reading):
        if regular and name.text not in bound:
            _unbound(name, bound, reading)
            bound.add(name.text)
    _check_spelling(rule, reading)
    attributes = _attributes(rule.attributes, reading)
    return RuleModel(
        name=rule.name.text,
        premises=tuple(_term(premise, frozenset(), reading) for premise in rule.premises),
        conclusion=_term(rule.conclusion, frozenset(), reading),
        learnable="learnable" in dict(attributes),
        attributes=attributes,
        origin=origin,
    )


def _variables(term: Term, inside: frozenset[str], reading: _Reading) -> Iterator[Name]:
    """The variables of a term that no binder in it binds."""
    if isinstance(term.head, Number):
        return
    if term.args is None:
        if term.head.text not in reading.atoms and term.head.text not in inside:
            yield term.head
        return
    if term.head.text in reading.binders and term.args and isinstance(term.args[0].head, Name):
        inside = inside | {term.args[0].head.text}
    for arg in term.args:
        yield from _variables(arg, inside, reading)


def _unbound(name: Name, bound: set[str], reading: _Reading) -> None:
    near = closest(name.text, sorted(bound | reading.atoms.keys()))
    message = f"no premise binds `{name.text}`, and it is not an atom"
    message += f"; did you mean `{near}`?" if near else ""
    place = reading.scope.origin(name.span)
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(place, near),)),)
    reading.scope.report(UNBOUND_VARIABLE, message, place, fixes=fixes)


def _check_spelling(rule: RuleItem, reading: _Reading) -> None:
    """Warn of a category that stands once in a rule and looks like an atom: as a variable it means any category."""
    terms = (*rule.premises, rule.conclusion)
    often = Counter(name.text for term in terms for name in _variables(term, frozenset(), reading))
    for premise in rule.premises:
        if not isinstance(premise.head, Name) or premise.head.text != ITEM or len(premise.args or ()) < CATEGORY:
            continue
        assert premise.args is not None
        for name in _variables(premise.args[CATEGORY - 1], frozenset(), reading):
            # variables of one letter, and those with a number, are names that people give them
            near = closest(name.text, reading.atoms) if name.text.isalpha() and len(name.text) > 1 else None
            if near is None or often[name.text] > 1:
                continue
            message = f"`{name.text}` is no atom, so it means any category here; did you mean `{near}`?"
            place = reading.scope.origin(name.span)
            reading.scope.report(
                POSSIBLE_TYPO, message, place, fixes=(Fix(f"Change to `{near}`", (Edit(place, near),)),)
            )


def _check_arity(item: Term, reading: _Reading) -> bool:
    if not isinstance(item.head, Name) or item.args is None:
        return True
    count, origin = len(item.args), reading.scope.origin(item.span)
    known = reading.arities.setdefault(item.head.text, (count, origin))
    if known[0] != count:
        have = f"{count} slot" if count == 1 else f"{count} slots"
        message = f"`{item.head.text}` has {have} here, but {known[0]} elsewhere"
        reading.scope.report(ITEM_ARITY, message, item.head.span, (Related("as here", known[1]),))
    return known[0] == count


def _term(term: Term, inside: frozenset[str], reading: _Reading) -> TermModel:
    if isinstance(term.head, Number):
        return TermModel("integer", term.head.text)
    name = term.head.text
    if term.args is None:
        atom = name in reading.atoms and name not in inside
        return TermModel("atom" if atom else "variable", name)
    if name in reading.binders and term.args and isinstance(term.args[0].head, Name):
        inside = inside | {term.args[0].head.text}
    return TermModel("constructor", name, tuple(_term(arg, inside, reading) for arg in term.args))


# ---------------------------------------------------------------- the lexicon


def _entries(placed: Placed[Item], reading: _Reading) -> Iterator[EntryModel]:
    for child in placed.children:
        if isinstance(child.unit.node, LexiconEntry):
            reading.scope.unit = child.uid
            yield _entry(child.unit.node, reading)


def _entry(entry: LexiconEntry, reading: _Reading) -> EntryModel:
    for term, what in ((entry.category, "category"), (entry.form, "logical form")):
        for name in _variables(term, frozenset(), reading):
            _unknown_word(name, what, reading)
    attributes = _attributes(entry.attributes, reading)
    return EntryModel(
        word=entry.word.value,
        category=_term(entry.category, frozenset(), reading),
        form=_term(entry.form, frozenset(), reading),
        learnable="learnable" in dict(attributes),
        attributes=attributes,
        origin=reading.scope.origin(entry.word.span),
    )


def _unknown_word(name: Name, what: str, reading: _Reading) -> None:
    near = closest(name.text, reading.atoms)
    message = f"`{name.text}` in this {what} is neither an atom nor bound"
    message += f"; did you mean `{near}`?" if near else "; list it under `atoms`"
    place = reading.scope.origin(name.span)
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(place, near),)),)
    reading.scope.report(LEXICON_TERM, message, place, fixes=fixes)


# ---------------------------------------------------------------- attributes and options


def _attributes(attributes: Attributes | None, reading: _Reading) -> tuple[tuple[str, object], ...]:
    found: dict[str, object] = {}
    for item in attributes.items if attributes is not None else ():
        key = item.key
        if key.text not in RULE_ATTRIBUTES:
            near = closest(key.text, RULE_ATTRIBUTES)
            message = f"there is no attribute `{key.text}`"
            message += f"; did you mean `{near}`?" if near else f"; there are {', '.join(RULE_ATTRIBUTES)}"
            place = reading.scope.origin(key.span)
            fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(place, near),), True),)
            reading.scope.report(RULE_ATTRIBUTE, message, place, fixes=fixes)
        elif key.text in RULE_FLAGS:
            if item.value is None or (isinstance(item.value, Word) and item.value.text == "true"):
                found[key.text] = True
            elif not isinstance(item.value, Word) or item.value.text != "false":
                reading.scope.report(RULE_ATTRIBUTE, f"`{key.text}` stands alone, without a value", item.value.span)
        elif isinstance(item.value, Number):
            found[key.text] = item.value.value
        else:
            place = key.span if item.value is None else item.value.span
            reading.scope.report(RULE_ATTRIBUTE, f"`{key.text}` takes a number: `{key.text}=-0.5`", place)
    return tuple(found.items())


def _check_unbounded(rules: list[Placed[Item]], scope: Scope) -> None:
    """Report `bounded` where the weights are probabilities: their logs are negative already."""
    for placed in rules:
        node = placed.unit.node
        for item in node.attributes.items if isinstance(node, RuleItem) and node.attributes is not None else ():
            if item.key.text == "bounded":
                unit, scope.unit = scope.unit, placed.uid
                message = "`bounded` changes nothing in a `normalised` deduction: a log probability is negative"
                scope.report(RULE_ATTRIBUTE, message, item.key.span)
                scope.unit = unit


class _Settings:
    """The options of the header."""

    def __init__(self, header: DeductionHeader, reading: _Reading) -> None:
        self.reading = reading
        self.options: dict[str, Option] = {}
        for option in header.options.items if header.options is not None else ():
            key = option.key
            if key.text in DEDUCTION_KEYS:
                self.options[key.text] = option
                continue
            near = closest(key.text, DEDUCTION_KEYS)
            message = f"deductions have no option `{key.text}`"
            message += (
                f"; did you mean `{near}`?" if near else f"; they have {', '.join(f'`{k}`' for k in DEDUCTION_KEYS)}"
            )
            place = reading.scope.origin(key.span)
            fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(place, near),), True),)
            reading.scope.report(DEDUCTION_OPTION, message, place, fixes=fixes)

    def word(self, key: str, default: str) -> str:
        """`semiring=`: one of the known ones."""
        option = self.options.get(key)
        if option is None:
            return default
        value = option.value
        text = value.text if isinstance(value, Word) else value.value if isinstance(value, String) else ""
        if text in SEMIRINGS:
            return text
        place = option.span if value is None else value.span
        near = closest(text, SEMIRINGS)
        message = f"there is no semiring `{text}`" if text else "`semiring` names a semiring"
        message += f"; did you mean `{near}`?" if near else f"; there are {', '.join(SEMIRINGS)}"
        origin = self.reading.scope.origin(place)
        fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(origin, near),), True),)
        self.reading.scope.report(DEDUCTION_OPTION, message, origin, fixes=fixes)
        return default

    def start(self) -> str | None:
        """`start=`: an atom."""
        option = self.options.get("start")
        if option is None:
            return None
        value = option.value
        text = value.text if isinstance(value, Word) else value.value if isinstance(value, String) else ""
        if text not in self.reading.atoms:
            place = self.reading.scope.origin(option.span if value is None else value.span)
            near = closest(text, self.reading.atoms)
            message = f"`{text}` is not an atom of this deduction" if text else "`start` names an atom"
            message += f"; did you mean `{near}`?" if near else ""
            fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(place, near),), True),)
            self.reading.scope.report(UNKNOWN_START, message, place, fixes=fixes)
            return None
        return text

    def normalised(self) -> bool:
        """`normalised=`: true or false, and true only where weights are summed or compared, and none is bounded."""
        option = self.options.get("normalised")
        if option is None:
            return False
        text = option.value.text if isinstance(option.value, Word) else None
        if text not in ("true", "false"):
            self._refuse("normalised", "`true` or `false`")
            return False
        semiring = self.options.get("semiring")
        named = semiring.value.text if semiring is not None and isinstance(semiring.value, Word) else ""
        if text == "true" and named in ("Boolean", "Counting"):
            place = self.reading.scope.origin(option.span)
            message = f"`normalised` changes nothing: `{named}` takes no weights"
            self.reading.scope.report(DEDUCTION_OPTION, message, place)
            return False
        return text == "true"

    def count(self, key: str) -> int | None:
        """A whole number from 1, or None where it is not given."""
        value = self._number(key, "a whole number from 1")
        if value is None:
            return None
        if value != int(value) or value < 1:
            return self._refuse(key, "a whole number from 1")
        return int(value)

    def positive(self, key: str, default: float) -> float:
        """A number above 0."""
        value = self._number(key, "a number above 0")
        if value is not None and value <= 0:
            self._refuse(key, "a number above 0")
            return default
        return default if value is None else float(value)

    def _number(self, key: str, wanted: str) -> int | float | None:
        option = self.options.get(key)
        if option is None:
            return None
        if not isinstance(option.value, Number):
            return self._refuse(key, wanted)
        return option.value.value

    def _refuse(self, key: str, wanted: str) -> None:
        option = self.options[key]
        place = option.span if option.value is None else option.value.span
        self.reading.scope.report(DEDUCTION_OPTION, f"`{key}` takes {wanted}", place)
