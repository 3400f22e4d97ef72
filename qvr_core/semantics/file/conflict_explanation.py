"""Which declared size alone would fix equations that contradict (docs/reference.md#one-wrong-width-one-error)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from qvr_core.semantics.scope.scope import Equation, show
from qvr_core.semantics.types.codes import IMPOSSIBLE_SIZE, WRONG_SIZE
from qvr_core.semantics.types.diagnostics import DeclarationSite, Diagnostic, Edit, Fix, Place, Related
from qvr_core.semantics.types.dimensions import Row, System
from qvr_core.semantics.types.spaces import Linear
from qvr_core.syntax.immutable import immutable

Key = tuple[int, int]

REPLICATE = "replicate "
"""Before the name of a replicated arrow: the number of its copies, as a size to blame."""

MOST_BLAMED = 24
"""Violated equations for which sizes to blame are looked for; the others are told where they stand, unless the same
size is to blame for them."""

MOST_CANDIDATES = 48
"""Sizes that are tried for one violated equation."""


@immutable
class File:
    """What an explanation asks of the file."""

    system: System
    equation: Callable[[Key], Equation]
    position: Callable[[Key], tuple[int, int]]
    size_place: Callable[[str], Place | None]
    objects_in: Callable[[Equation], Sequence[Related]]
    impossible: Mapping[Key, tuple[str, Fraction]]
    """Equations whose unknown would have a value that is no size."""
    replicas: Mapping[str, set[Key]]
    """Equations by the replicated arrow that is fanned out there."""
    copies: Callable[[str], int]
    foreign: Callable[[str], bool]
    """Whether another file declares a name: its sizes are what they are there."""


@immutable
class Repair:
    """Giving `variable` this value fixes the violated equations `cover` and breaks none."""

    variable: str
    value: int
    cover: frozenset[Key]


def explain(violated: Iterable[Key], file: File) -> list[Diagnostic]:
    """As few diagnostics as explain all violated equations."""
    left = sorted(violated, key=file.position)
    repairs = _repairs(left, file)
    found: list[Diagnostic] = []
    remaining = set(left)
    while remaining:
        useful = [(len(repair.cover & remaining), repair) for repair in repairs if repair.cover & remaining]
        if not useful:
            break
        most = max(count for count, _ in useful)
        first = next(key for key in left if any(key in r.cover & remaining for n, r in useful if n == most))
        best = [repair for count, repair in useful if count == most and first in repair.cover]
        covered = sorted(best[0].cover & remaining, key=file.position)
        if len(best) == 1:
            found.append(_on_declaration(best[0], covered, file))
        else:
            found.append(_on_operator(first, best, covered[1:], file))
        for repair in best:
            remaining -= repair.cover
    found.extend(_on_operator(key, (), (), file) for key in left if key in remaining)
    return found


# ---------------------------------------------------------------- repairs


def _repairs(violated: Sequence[Key], file: File) -> list[Repair]:
    everything = frozenset(violated)
    tried: dict[str, Repair | None] = {}
    for key in violated[:MOST_BLAMED]:
        for variable in _candidates(key, file):
            if variable not in tried:
                tried[variable] = _repair(variable, key, everything, file)
        replica = file.equation(key).replica
        if replica is not None and REPLICATE + replica[0] not in tried and not file.foreign(replica[0]):
            tried[REPLICATE + replica[0]] = _recount(replica[0], everything, file)
    return [repair for repair in tried.values() if repair is not None]


def _candidates(key: Key, file: File) -> list[str]:
    """Declared sizes that a violated equation depends on, perhaps through holes."""
    system = file.system
    keys = _tied(key, system)
    known = {name for other in keys for name in system.variables(other) if name in system.known}
    return sorted(name for name in known if not file.foreign(_owner(name) or ""))[:MOST_CANDIDATES]


def _tied(key: Key, system: System) -> set[Key]:
    holes = [name for name in system.variables(key) if name not in system.known]
    return {key, *system.region(holes)[1]}


def _repair(variable: str, key: Key, violated: frozenset[Key], file: File) -> Repair | None:
    system = file.system
    keys = _tied(key, system)
    for other in system.by_variable.get(variable, ()):
        keys |= _tied(other, system)
    solution = system.solve(sorted(keys, key=file.position), freed=variable)
    value = solution.values.get(variable)
    if solution.failed or value is None or value == system.known[variable]:
        return None
    return Repair(variable, value, frozenset(keys) & violated)


def _recount(family: str, violated: frozenset[Key], file: File) -> Repair | None:
    """Another number of copies of a replicated arrow that makes all fans over it fit."""
    count = file.copies(family)
    keys = file.replicas.get(family, set())
    counts: set[Fraction] = set()
    for key in keys:
        replica, rows = file.equation(key).replica, file.system.rows[key]
        gaps = {gap for item in rows if (gap := _gap(item, file.system.known)) is not None}
        if replica is None or len(gaps) != 1 or len(rows) != 1:
            return None
        counts.add(count - Fraction(gaps.pop(), replica[1]))
    if len(counts) != 1 or (found := counts.pop()).denominator != 1 or found < 1 or found == count:
        return None
    return Repair(REPLICATE + family, int(found), frozenset(keys) & violated)


def _gap(item: Row, known: Mapping[str, int]) -> int | None:
    """By how much the given width exceeds the wanted one; None where a hole is in it."""
    if any(name not in known for name, _ in item.terms):
        return None
    return item.constant + sum(count * known[name] for name, count in item.terms)


# ---------------------------------------------------------------- words


def _owner(variable: str) -> str | None:
    """The declaration that writes a size; None for a size inside a program."""
    return None if variable.startswith("@") else variable.rpartition(".")[0]


def _place_of(repair: Repair, file: File) -> Place | None:
    if repair.variable.startswith(REPLICATE):
        return DeclarationSite(repair.variable.removeprefix(REPLICATE), "option:replicate")
    return file.size_place(repair.variable)


def _fix(repair: Repair, file: File) -> Fix | None:
    if repair.variable.startswith(REPLICATE):
        place = DeclarationSite(repair.variable.removeprefix(REPLICATE), "option:replicate")
        return Fix(f"Change to `replicate={repair.value}`", (Edit(place, f"replicate={repair.value}"),))
    place = file.size_place(repair.variable)
    if place is None:
        return None
    owner = _owner(repair.variable)
    old = file.system.known[repair.variable]
    title = f"Change `{owner}` to {repair.value}" if owner else f"Change {old} to {repair.value}"
    if owner and isinstance(place, DeclarationSite) and not _is_only_size(repair.variable):
        title = f"Change {old} to {repair.value} in `{owner}`"
    return Fix(title, (Edit(place, str(repair.value)),))


def _is_only_size(variable: str) -> bool:
    return variable.endswith(".0")


def sentence(equation: Equation) -> str:
    """'`f` gives A (64 + 32 = 96), but `g` wants B (128)'."""
    return f"{equation.gives} {show(equation.given)}, but {equation.wants} {show(equation.wanted)}"


def _on_declaration(repair: Repair, covered: Sequence[Key], file: File) -> Diagnostic:
    place = _place_of(repair, file)
    fix = _fix(repair, file)
    first = file.equation(covered[0])
    # a scalar that meets a wide space was not meant for it: nobody would make the space one wide
    scalar = all(given == Linear(1, ()) for given, _ in first.pairs)
    if place is None or fix is None or first.local or scalar:
        return _on_operator(covered[0], (repair,), covered[1:], file)
    owner = _owner(repair.variable)
    if repair.variable.startswith(REPLICATE):
        family = repair.variable.removeprefix(REPLICATE)
        subject = f"`{family}` has {file.copies(family)} copies"
    else:
        old = file.system.known[repair.variable]
        subject = f"`{owner}` is {old}" if owner else f"this size is {old}"
    verb = "are" if repair.variable.startswith(REPLICATE) and repair.value > 1 else "is"
    message = f"{subject}, but {repair.value} {verb} wanted: {sentence(first)}"
    related = [Related(sentence(file.equation(key)), file.equation(key).place) for key in covered]
    related += dict.fromkeys(each for key in covered for each in _foreign_sizes(key, file))
    return Diagnostic(WRONG_SIZE, message, place, tuple(related), (fix,))


def _on_operator(key: Key, repairs: Sequence[Repair], others: Sequence[Key], file: File) -> Diagnostic:
    equation = file.equation(key)
    message, code = sentence(equation), equation.code
    if key in file.impossible:
        hole, value = file.impossible[key]
        owner = _owner(hole)
        name = f"the size `_` of `{owner}`" if owner and "." in hole else "this size"
        message = f"{message}: {name} would have to be {_number(value)}, and that is no size"
        code = IMPOSSIBLE_SIZE
    related = [*equation.related, *file.objects_in(equation), *_foreign_sizes(key, file)]
    related = list(dict.fromkeys(related))
    related += [Related(sentence(file.equation(other)), file.equation(other).place) for other in others]
    fixes = [fix for repair in sorted(repairs, key=lambda r: r.variable) if (fix := _fix(repair, file)) is not None]
    return Diagnostic(code, message, equation.place, tuple(related), tuple(fixes))


def _foreign_sizes(key: Key, file: File) -> list[Related]:
    """Where other files fix the widths that do not fit."""
    owners = dict.fromkeys(_owner(name) or "" for name in file.system.variables(key))
    return [Related(f"`{name}` is declared here", DeclarationSite(name)) for name in owners if file.foreign(name)]


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):g}"
