"""What only a program as a whole can tell: names bound twice or too late, data, likely typos, what nothing uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from qvr_core.semantics.arithmetic.data_uses import check_uses
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.spelling import candidates, closest, distance, letters
from qvr_core.semantics.programs import step_cycles
from qvr_core.semantics.programs.step_results import Block, StepResult
from qvr_core.semantics.programs.undeclared.index_names import (
    Lines,
    check_index_of_others,
    check_label_of_others,
    label_owners,
)
from qvr_core.semantics.scope.environment import MISTAKEN, WHOLE_INPUT, Binding, FreeName
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.codes import HIDDEN_BUILTIN
from qvr_core.semantics.types.diagnostics import DeclarationSite, Diagnostic, Edit, Fix, Origin, Place, Related
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.programs import DataName
from qvr_core.semantics.types.model.steps import LetModel, SampleModel
from qvr_core.semantics.types.program_codes import (
    BOUND_TWICE,
    HIDDEN_GLOBAL,
    INDEX_MISMATCH,
    POSSIBLE_TYPO,
    UNBOUND_ARGUMENT,
    UNOBSERVED_SITE,
    UNUSED_BINDING,
    UNUSED_PLATE,
    USED_BEFORE_BOUND,
)
from qvr_core.semantics.types.spaces import Finite
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Placed


@dataclass(slots=True)
class Bound:
    """All names of a program: inputs first, then what each step binds; `inner` are those of marginalize blocks."""

    names: dict[str, Binding]
    inner: dict[str, Binding]


def bind_all(
    blocks: Sequence[Block], inputs: Mapping[str, Binding], scope: Scope
) -> tuple[dict[str, Binding], dict[str, Binding]]:
    """All names that the steps bind, and those bound inside blocks; reports what cannot be bound."""
    bindings = dict(inputs)
    inner: dict[str, Binding] = {}
    expected = len(bindings)
    distinct = True
    for block in blocks:
        bindings.update(block.binds)
        expected += len(block.binds)
        distinct = distinct and block.distinct
        for result in block.nested:
            inner.update(result.nested)
    if not distinct or len(bindings) < expected or not inner.keys().isdisjoint(bindings):
        _report_twice(blocks, inputs, scope)
    else:
        _report_nested_twice(blocks, scope)
    entry = scope.globals.entry
    suspects = (bindings.keys() | inner.keys()) & _RESERVED
    suspects |= {name for name in chain(bindings, inner) if entry(name) is not None}
    for name in sorted(suspects):
        binding = bindings.get(name) or inner[name]
        if binding.kind != "input":
            check_local_name(name, binding, scope)
    return bindings, inner


_RESERVED = FAMILIES.keys() | {name for name, builtin in BUILTINS.items() if builtin.reserved}


def _report_twice(blocks: Sequence[Block], inputs: Mapping[str, Binding], scope: Scope) -> None:
    seen = dict(inputs)
    for block in blocks:
        for result in block.results:
            for name, binding in result.binds.items():
                _bind(name, binding, seen, scope)
            inside = dict(seen) if result.nested else seen
            for name, binding in result.nested:
                _bind(name, binding, inside, scope)


def _report_nested_twice(blocks: Sequence[Block], scope: Scope) -> None:
    for block in blocks:
        for result in block.nested:
            inside: dict[str, Binding] = {}
            for name, binding in result.nested:
                _bind(name, binding, inside, scope)


def _bind(name: str, binding: Binding, seen: dict[str, Binding], scope: Scope) -> None:
    before = seen.get(name)
    if before is not None and not (before.kind == "data" and binding.kind in ("observe", "damaged")):
        related = (Related(f"`{name}` is bound here", before.origin),)
        scope.report(BOUND_TWICE, f"`{name}` is bound already", binding.origin, related)
    seen[name] = binding


def check_local_name(name: str, binding: Binding, scope: Scope) -> None:
    """A hint where a name is also a declaration's, a family's or a builtin's, which still is what is called."""
    builtin = BUILTINS.get(name)
    if name in FAMILIES and scope.lookup(name) is None:
        message = f"`{name}` is a value here; behind `<-`, `{name}(…)` is still the language's family"
        scope.report(HIDDEN_BUILTIN, message, binding.origin)
    elif builtin is not None and builtin.reserved and scope.lookup(name) is None:
        called = "this function" if binding.kind == "function" else "still the language's function"
        scope.report(HIDDEN_BUILTIN, f"`{name}` is a value here; called, `{name}(…)` is {called}", binding.origin)
    elif scope.globals.entry(name) is not None and name not in scope.local:
        related = (Related(f"`{name}` is declared here", DeclarationSite(name)),)
        scope.report(HIDDEN_GLOBAL, f"`{name}` hides the declaration of that name", binding.origin, related)


MOST_OBSERVED = 200
"""Observed names without a declaration that unused data are compared with."""


def tell_once(scope: Scope) -> None:
    """Of the indices that do not fit a declaration of data, which may itself be wrong, the first alone is told."""
    seen: set[Place] = set()
    kept: list[Diagnostic] = []
    for found in scope.diagnostics:
        declared = {one.place for one in found.related} if found.code is INDEX_MISMATCH else set[Place]()
        if not declared or declared.isdisjoint(seen):
            kept.append(found)
        seen |= declared
    scope.diagnostics[:] = kept


# ---------------------------------------------------------------- names that no earlier step binds


def check_free(
    blocks: Sequence[Block],
    bound: Bound,
    steps: Sequence[Placed[Item]],
    scope: Scope,
    lengths: DataName | None = None,
) -> tuple[DataName, ...]:
    """Decide each unbound name: used too early, an argument that must be bound, or data; returns the data.

    `lengths` is the data name that the header mentions, `steps` are the lines of the program.
    """
    early: set[str] = set()
    contradicted: set[str] = set()
    data = _declared(blocks)
    owners: dict[str, str] | None = None
    lines = Lines(steps)
    if lengths is not None:
        data.setdefault(lengths.name, lengths)
    data.update({item.name: item for item in _inherited(blocks) if item.name not in data})
    for result in chain.from_iterable(block.free for block in blocks):
        known = result.data
        for free in result.free:
            later = bound.names.get(free.name) or bound.inner.get(free.name)
            if later is not None and later.kind == "observe" and not free.argument:
                continue  # what is observed is data, for the steps above it too
            if later is not None:
                inner = free.name not in bound.names
                if free.name not in early and not (inner and _without_body(free.name, blocks)):
                    _too_early(free, later, inner, lines, scope)
                early.add(free.name)
            elif free.argument:
                _unbound_argument(free, bound, scope)
            elif free.name not in data:
                kind, origin = known.get(free.name, (ValueType(None), free.origin))
                check_index_of_others(free, bound.names, lines, scope)
                owners = label_owners(blocks, bound.names, scope) if owners is None else owners
                if free.name in owners:
                    check_label_of_others(free, owners[free.name], bound.names, lines, scope)
                data[free.name] = _inferred(free.name, kind, origin)
            elif data[free.name].type.space is None and free.name in known:
                data[free.name] = _inferred(free.name, known[free.name][0], data[free.name].origin)
            elif free.name in known and not data[free.name].declared and free.name not in contradicted:
                one, (now, origin) = data[free.name], known[free.name]
                if not check_uses(free.name, one.type, one.origin, now, origin, scope):
                    contradicted.add(free.name)
    undeclared = [datum for datum in data.values() if not datum.declared and "." not in datum.name]
    _check_typos(undeclared, bound, any(datum.declared for datum in data.values()), scope)
    return tuple(data.values())


def _inferred(name: str, kind: ValueType, origin: Origin) -> DataName:
    """An undeclared name with what its uses say of it."""
    pairs = zip(kind.sizes, kind.indexed, strict=True)
    over = tuple(Finite(size, nominal) for size, nominal in pairs if size is not None and nominal is not None)
    return DataName(name=name, type=kind, origin=origin, over=over if len(over) == len(kind.indexed) else ())


def _declared(blocks: Sequence[Block]) -> dict[str, DataName]:
    """What `data` steps declare, in their order."""
    found = chain.from_iterable(block.declared.items() for block in blocks)
    return {
        name: DataName(
            name=name,
            type=one.type,
            origin=one.origin,
            declared=True,
            numbers=one.numbers,
            over=one.over,
            lengths="" if one.lengths == MISTAKEN else one.lengths,
        )
        for name, one in found
    }


def _inherited(blocks: Sequence[Block]) -> Iterator[DataName]:
    """What the templates that steps draw from read."""
    return (item for block in blocks for item in block.inherited)


def _without_body(name: str, blocks: Sequence[Block]) -> bool:
    """Whether a `marginalize` binds the name for a body that is missing, which is an error already."""
    nested = chain.from_iterable(block.nested for block in blocks)
    return any(len(result.units) == 1 and name in dict(result.nested) for result in nested)


def _too_early(free: FreeName, later: Binding, inner: bool, lines: Lines, scope: Scope) -> None:
    related = (Related(f"`{free.name}` is bound here", later.origin),)
    if inner:
        where, fixes = "only inside `marginalize`", ()
    elif free.origin.unit == later.origin.unit:
        where, fixes = "only by this step", ()
    else:
        where, fixes = "only further down", _move_up(free, later, lines)
        if (circle := _circle(free, later, lines)) is not None:
            where, fixes = f"{where}: {step_cycles.advice(circle)}", step_cycles.fixes(circle)
    scope.report(USED_BEFORE_BOUND, f"`{free.name}` is bound {where}", free.origin, related, fixes)


def _circle(free: FreeName, later: Binding, lines: Lines) -> step_cycles.Circle | None:
    """The steps that read one another, where moving one above the other would only turn the mistake round."""
    user, binder = lines.holding(free.origin.unit), lines.holding(later.origin.unit)
    return None if user is None or binder is None else lines.reads.circle(user, binder)


def _move_up(free: FreeName, later: Binding, lines: Lines) -> tuple[Fix, ...]:
    """The step that binds a name, moved above the one that uses it."""
    user, binder = lines.holding(free.origin.unit), lines.holding(later.origin.unit)
    if user is None or binder is None or binder.uid != later.origin.unit or binder.children:
        return ()
    text = binder.unit.text
    edits = (
        Edit(Origin(user.uid, Span(0, 0)), f"{text}\n{' ' * user.column}", "before"),
        Edit(Origin(binder.uid, Span(-binder.column, len(text) + 1)), ""),
    )
    return (Fix(f"Move the step that binds `{free.name}` above this one", edits, True),)


def _unbound_argument(free: FreeName, bound: Bound, scope: Scope) -> None:
    near = closest(free.name, [name for name in candidates(bound.names) if name])
    message = f"`{free.name}` is not bound in this program"
    fixes: tuple[Fix, ...] = ()
    related: tuple[Related, ...] = ()
    if near is not None:
        message += f"; did you mean `{near}`?"
        fixes = (Fix(f"Change to `{near}`", (Edit(free.origin, near),), True),)
        related = (Related(f"`{near}` is bound here", bound.names[near].origin),)
    else:
        message += "; an arrow's arguments must be: bind it above, `let … = …`"
    scope.report(UNBOUND_ARGUMENT, message, free.origin, related, fixes)


MOST_COMPARED = 400_000
"""Pairs of a data and a bound name; a program with more gets no spellings."""


def _check_typos(data: Sequence[DataName], bound: Bound, stray: bool, scope: Scope) -> None:
    """Data names that look like bound ones; `stray` ones are not declared where others are."""
    names = [(name, letters(name)) for name in (*bound.names, *bound.inner) if name]
    for datum in data if len(data) * len(names) <= MOST_COMPARED else ():
        own = letters(datum.name)
        # one edit changes at most two letters
        near = [name for name, its in names if (its ^ own).bit_count() <= 4]
        _check_typo(datum, near, bound, stray, scope)


def _check_typo(datum: DataName, names: Sequence[str], bound: Bound, stray: bool, scope: Scope) -> None:
    for name in names:
        if looks_like(datum.name, name, stray=stray):
            binding = bound.names.get(name) or bound.inner[name]
            message = f"`{datum.name}` is data that the program must be given; did you mean `{name}`?"
            related = (Related(f"`{name}` is bound here", binding.origin),)
            fix = Fix(f"Change to `{name}`", (Edit(datum.origin, name),))
            scope.report(POSSIBLE_TYPO, message, datum.origin, related, (fix,))
            return


def looks_like(data: str, bound: str, *, stray: bool = False) -> bool:
    """True where a data name is probably a bound one misspelt: 4 letters or more at distance 1, 6 or more at 2, 3 where
    neighbours have changed places; not pairs that differ only in digits or in one `_` part, unless the name is a
    `stray` one, not declared where others are, and that part is a long one or has a letter more."""
    if len(data) == len(bound) == 3:
        return sorted(data) == sorted(bound) and data.isalpha() and distance(data, bound, 1) == 1
    if abs(len(data) - len(bound)) > 2 or len(data) < 4:
        return False
    return _near(data, bound, stray)


@lru_cache(maxsize=65536)
def _near(data: str, bound: str, stray: bool) -> bool:
    shorter = min(len(data), len(bound))
    limit = 2 if shorter >= 6 else 1
    if shorter < 4 or distance(data, bound, limit) > limit:
        return False
    without = ["".join(letter for letter in name if not letter.isdigit()) for name in (data, bound)]
    if without[0] == without[1]:
        return False
    left, right = data.split("_"), bound.split("_")
    if len(left) == len(right) > 1:
        apart = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
        return len(apart) != 1 or (stray and _misspelt_part(*apart[0]))
    return not (abs(len(left) - len(right)) == 1 and _one_part_more(left, right))


def _misspelt_part(one: str, other: str) -> bool:
    """Whether two parts of names are one word: `age` and `sex`, `a` and `b` are not."""
    least = min(len(one), len(other))
    return distance(one, other, 1) == 1 and (least >= 4 or (least >= 2 and len(one) != len(other)))


def _one_part_more(left: Sequence[str], right: Sequence[str]) -> bool:
    longer, shorter = (left, right) if len(left) > len(right) else (right, left)
    return any([*longer[:index], *longer[index + 1 :]] == [*shorter] for index in range(len(longer)))


# ---------------------------------------------------------------- what nothing uses


def check_unused(
    blocks: Sequence[Block],
    inputs: Mapping[str, Binding],
    returned: Sequence[str],
    scored: bool,
    kept: Callable[[], Collection[str]],
    scope: Scope,
) -> None:
    """Lets and inputs that nothing reads, and draws that nothing observed or returned depends on; `kept` are lets that
    are stored with the draws."""
    readers = Counter(chain.from_iterable(block.reads for block in blocks))
    readers.update(returned)
    idle = [name for block in blocks for name in block.optional if name not in readers]
    optional = _optional(blocks) if idle else {}
    lets = [name for name in idle if isinstance(optional[name].model, LetModel) and not optional[name].inlined]
    stored = kept() if lets else ()
    for name in lets:
        if name not in stored and not name.startswith("_"):
            scope.report(UNUSED_BINDING, f"nothing uses `{name}`", optional[name].binds[name].origin)
    declared = dict(chain.from_iterable(block.declared.items() for block in blocks))
    undeclared = [
        (name, binding)
        for result in chain.from_iterable(block.results for block in blocks)
        for name, binding in (*result.binds.items(), *result.nested)
        if binding.kind == "observe" and name not in declared
    ][:MOST_OBSERVED]
    for name, binding in declared.items():
        if name in readers or name.startswith("_"):
            continue
        if not _observed_instead(name, binding, undeclared, scope):
            scope.report(UNUSED_BINDING, f"nothing uses the data `{name}`", binding.origin)
    if scored:
        _report_lonely(idle, optional, readers, scope)
    if WHOLE_INPUT not in readers:
        _unused_inputs(inputs, readers, scope)


def _observed_instead(name: str, declared: Binding, undeclared: Sequence[tuple[str, Binding]], scope: Scope) -> bool:
    """Data that nothing uses, and a name that is observed, is not declared and looks like theirs."""
    for observed, binding in undeclared:
        if closest(observed, [name]):
            message = f"`{observed}` is not declared, and nothing uses the data `{name}`; did you mean `{name}`?"
            related = (Related(f"`{name}` is declared here", declared.origin),)
            fix = Fix(f"Change to `{name}`", (Edit(binding.origin, name),))
            scope.report(POSSIBLE_TYPO, message, binding.origin, related, (fix,))
            return True
    return False


def _optional(blocks: Sequence[Block]) -> dict[str, StepResult]:
    found: dict[str, StepResult] = {}
    for block in blocks:
        found.update(block.optional)
    return found


def _unused_inputs(inputs: Mapping[str, Binding], readers: Mapping[str, int], scope: Scope) -> None:
    for name, binding in inputs.items():
        if name and name not in readers and not name.startswith("_") and binding.kind != "data":
            word = "input" if binding.kind == "input" else "parameter"
            scope.report(UNUSED_BINDING, f"nothing uses the {word} `{name}`", binding.origin)


def _report_lonely(
    idle: Sequence[str], optional: Mapping[str, StepResult], readers: Counter[str], scope: Scope
) -> None:
    """Draws whose posterior is their prior; what only they and unused lets read is lonely too."""
    pending = [optional[name] for name in idle]
    seen: set[int] = set()
    while pending:
        result = pending.pop()
        if id(result) in seen or "Score" in result.effects or any(readers[name] for name in result.binds):
            continue
        seen.add(id(result))
        name, binding = next(iter(result.binds.items()))
        if isinstance(result.model, SampleModel) and not result.inlined and not name.startswith("_"):
            message = f"nothing observed depends on `{name}`: its posterior is its prior"
            scope.report(UNOBSERVED_SITE, message, binding.origin)
        for read in result.reads:
            readers[read] -= 1
            if readers[read] <= 0 and read in optional:
                pending.append(optional[read])


def check_plates(
    blocks: Sequence[Block], bindings: Mapping[str, Binding], returned: Sequence[str], scope: Scope
) -> None:
    """Plates of values that nothing runs over or picks from."""
    used = frozenset[str]().union(*(block.plates for block in blocks))
    used |= {plate for name in returned if name in bindings for plate in bindings[name].type.indexed if plate}
    for block in blocks:
        for name, result in block.optional.items():
            site = result.model.site if isinstance(result.model, SampleModel) and not result.inlined else None
            if site is None or site.elementwise is None:
                continue
            plates = [plate for plate in result.binds[name].type.indexed if plate is not None]
            if plates and used.isdisjoint(plates):
                over = site.elementwise.written
                message = f"`{name}` has a value for each `{over}`, but nothing picks one or runs over them"
                scope.report(UNUSED_PLATE, message, result.binds[name].origin)
