"""What only a program as a whole can tell: names bound twice or too late, data, likely typos, what nothing uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from qvr_core.semantics.builtins import BUILTINS
from qvr_core.semantics.codes import RESERVED_NAME
from qvr_core.semantics.diagnostics import DeclarationSite, Edit, Fix, Related
from qvr_core.semantics.environment import WHOLE_INPUT, Binding, FreeName
from qvr_core.semantics.families import FAMILIES
from qvr_core.semantics.model import DataName, LetModel, SampleModel, ValueType
from qvr_core.semantics.program_codes import (
    BOUND_TWICE,
    HIDDEN_GLOBAL,
    POSSIBLE_TYPO,
    UNBOUND_ARGUMENT,
    UNOBSERVED_SITE,
    UNUSED_BINDING,
    USED_BEFORE_BOUND,
)
from qvr_core.semantics.scope import Scope
from qvr_core.semantics.spelling import closest, distance
from qvr_core.semantics.step_results import StepResult


@dataclass(slots=True)
class Bound:
    """All names of a program: inputs first, then what each step binds; `inner` are those of marginalize blocks."""

    names: dict[str, Binding]
    inner: dict[str, Binding]


def bind(name: str, binding: Binding, bindings: dict[str, Binding], scope: Scope) -> None:
    """Bind a name for the steps below; reports a second binding, a family's name, and a hidden declaration."""
    before = bindings.get(name)
    if before is not None:
        related = (Related(f"`{name}` is bound here", before.origin),)
        scope.report(BOUND_TWICE, f"`{name}` is bound already", binding.origin, related)
    bindings[name] = binding
    check_local_name(name, binding, scope)


def check_local_name(name: str, binding: Binding, scope: Scope) -> None:
    """A family's or a builtin's name cannot be bound; a declaration's may be, with a hint."""
    builtin = BUILTINS.get(name)
    if name in FAMILIES:
        scope.report(RESERVED_NAME, f"`{name}` is a family of distributions", binding.origin)
    elif builtin is not None and builtin.reserved:
        scope.report(RESERVED_NAME, f"`{name}` is a builtin function", binding.origin)
    elif scope.globals.entry(name) is not None and name not in scope.local:
        related = (Related(f"`{name}` is declared here", DeclarationSite(name)),)
        scope.report(HIDDEN_GLOBAL, f"`{name}` hides the declaration of that name", binding.origin, related)


# ---------------------------------------------------------------- names that no earlier step binds


def check_free(results: Iterable[StepResult], bound: Bound, scope: Scope) -> tuple[DataName, ...]:
    """Decide each unbound name: used too early, an argument that must be bound, or data; returns the data."""
    data: dict[str, DataName] = {}
    for result in results:
        if not result.free:
            continue
        known = dict(result.data)
        for free in result.free:
            later = bound.names.get(free.name) or bound.inner.get(free.name)
            if later is not None:
                _too_early(free, later, free.name not in bound.names, scope)
            elif free.argument:
                _unbound_argument(free, bound, scope)
            elif free.name not in data:
                kind, origin = known.get(free.name, (ValueType(None), free.origin))
                data[free.name] = DataName(name=free.name, type=kind, origin=origin)
            elif data[free.name].type.space is None and free.name in known:
                data[free.name] = DataName(name=free.name, type=known[free.name][0], origin=data[free.name].origin)
    for datum in data.values():
        _check_typo(datum, bound, scope)
    return tuple(data.values())


def _too_early(free: FreeName, later: Binding, inner: bool, scope: Scope) -> None:
    where = "only inside `marginalize`" if inner else "only further down"
    related = (Related(f"`{free.name}` is bound here", later.origin),)
    scope.report(USED_BEFORE_BOUND, f"`{free.name}` is bound {where}", free.origin, related)


def _unbound_argument(free: FreeName, bound: Bound, scope: Scope) -> None:
    near = closest(free.name, [name for name in bound.names if name])
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


def _check_typo(datum: DataName, bound: Bound, scope: Scope) -> None:
    for name in (*bound.names, *bound.inner):
        if name and looks_like(datum.name, name):
            binding = bound.names.get(name) or bound.inner[name]
            message = f"`{datum.name}` is data that the program must be given; did you mean `{name}`?"
            related = (Related(f"`{name}` is bound here", binding.origin),)
            fix = Fix(f"Change to `{name}`", (Edit(datum.origin, name),))
            scope.report(POSSIBLE_TYPO, message, datum.origin, related, (fix,))
            return


def looks_like(data: str, bound: str) -> bool:
    """True where a data name is probably a bound one misspelt: 4 letters or more at distance 1, 6 or more at 2; not
    pairs that differ only in digits or in one `_` part."""
    if abs(len(data) - len(bound)) > 2 or len(data) < 4:
        return False
    return _near(data, bound)


@lru_cache(maxsize=65536)
def _near(data: str, bound: str) -> bool:
    shorter = min(len(data), len(bound))
    limit = 2 if shorter >= 6 else 1
    if shorter < 4 or distance(data, bound, limit) > limit:
        return False
    without = ["".join(letter for letter in name if not letter.isdigit()) for name in (data, bound)]
    if without[0] == without[1]:
        return False
    left, right = data.split("_"), bound.split("_")
    if len(left) == len(right) > 1:
        return sum(a != b for a, b in zip(left, right, strict=True)) != 1
    return not (abs(len(left) - len(right)) == 1 and _one_part_more(left, right))


def _one_part_more(left: Sequence[str], right: Sequence[str]) -> bool:
    longer, shorter = (left, right) if len(left) > len(right) else (right, left)
    return any([*longer[:index], *longer[index + 1 :]] == [*shorter] for index in range(len(longer)))


# ---------------------------------------------------------------- what nothing uses


def check_unused(
    results: Sequence[StepResult], bindings: Mapping[str, Binding], returned: Iterable[str], scope: Scope
) -> None:
    """Lets and inputs that nothing reads, and draws that nothing observed depends on."""
    used: set[str] = set(returned)
    for result in results:
        for name, _ in result.reads:
            used.add(name)
    for result in results:
        _unused_lets(result, used, scope)
    if WHOLE_INPUT not in used:
        _unused_inputs(bindings, used, scope)


def _unused_lets(result: StepResult, used: set[str], scope: Scope) -> None:
    if isinstance(result.model, LetModel):
        for name, binding in result.binds:
            if name not in used and not name.startswith("_"):
                scope.report(UNUSED_BINDING, f"nothing uses `{name}`", binding.origin)


def _unused_inputs(bindings: Mapping[str, Binding], used: set[str], scope: Scope) -> None:
    for name, binding in bindings.items():
        if binding.kind in ("input", "parameter") and name and name not in used and not name.startswith("_"):
            scope.report(UNUSED_BINDING, f"nothing uses the input `{name}`", binding.origin)


def check_paths(results: Sequence[StepResult], returned: Iterable[str], scope: Scope) -> None:
    """Draws whose posterior is their prior: no observe or score depends on them."""
    if not any("Score" in result.effects for result in results):
        return
    needed: set[str] = set(returned)
    lonely: list[tuple[str, Binding]] = []
    for result in reversed(results):
        read = any(name in needed for name, _ in result.binds)
        if not read and isinstance(result.model, SampleModel):
            lonely.extend(result.binds[:1])
        if not read and isinstance(result.model, SampleModel | LetModel):
            continue
        needed.update(name for name, _ in result.reads)
    for name, binding in reversed(lonely):
        if not name.startswith("_"):
            message = f"nothing observed depends on `{name}`: its posterior is its prior"
            scope.report(UNOBSERVED_SITE, message, binding.origin)
