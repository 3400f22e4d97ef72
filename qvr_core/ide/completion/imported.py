"""What completion offers of other files: the names that imports bring, and what an import may name."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import replace
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.context import Context, before_prefix
from qvr_core.ide.completion.offers import BEST, GOOD, MANY, OTHER, PLAIN, Items, used_elsewhere
from qvr_core.ide.imports.homes import Home, home_of
from qvr_core.ide.imports.hover import written
from qvr_core.ide.prose import Comment, prose
from qvr_core.ide.symbols import KINDS
from qvr_core.ide.view import arrow_of, model_of
from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.semantics.language.prelude import PreludeName, visible_from
from qvr_core.semantics.modules.module import Module
from qvr_core.semantics.modules.paths import STD, WrongPath, location_of
from qvr_core.semantics.types.spaces import Space
from qvr_core.syntax.source import Cursor
from qvr_core.syntax.tree.declarations import ProgramHeader
from qvr_core.syntax.tree.objects import ObjectExpr, ProductExpr
from qvr_core.syntax.tree.units import Unit
from qvr_core.syntax.tree_to_text import to_text

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

OBJECTS = frozenset(("object",))
ARROWS = frozenset(("morphism", "let", "encoder", "decoder", "program"))
VALUES = ARROWS | {"function"}
DRAWN = ARROWS | {"distribution"}
TRANSFORMED = frozenset(("transformation",))

ITEM_KINDS = {
    **{"distribution": "class", "data type": "enum"},
    **dict.fromkeys(("transformation", "encoder", "decoder"), "function"),
}
"""What completion calls the kinds of declarations that it calls otherwise."""

OF_PATH = re.compile(r'(?:import|from)\s+"([^"]*)\Z')


def path_before(snapshot: Snapshot, cursor: Cursor) -> str | None:
    """What of the path of an import stands before the cursor; None where it is in no such path."""
    found = OF_PATH.match(snapshot.lines[cursor.line][: cursor.column])
    return None if found is None else found[1]


def import_completions(snapshot: Snapshot, place: Context) -> list[Completion] | None:
    """What may stand in an import statement; None in any other one."""
    if place.keyword not in ("from", "import") or place.start != "statement":
        return None
    tokens = place.tokens
    if tokens[-1].kind == "STRING" and "IMPORT" in (place.accepted or ()):
        return [Completion("import", "keyword", rank=PLAIN)]
    if place.keyword == "import" or len(tokens) < 3 or tokens[-1].kind not in ("IMPORT", "COMMA"):
        return [Completion("as", "keyword", rank=PLAIN)] if "AS" in (place.accepted or ()) else []
    module = _file(snapshot, tokens[1].text.strip('"'))
    if module is None:
        return []
    given = {token.text for token in tokens[2:]}
    homes = (home_of_module(module, name) for name in module.public if name not in given)
    return [_item(snapshot, home.name, home, BEST) for home in homes if home is not None]


def home_of_module(module: Module, name: str) -> Home | None:
    """A declaration of a file; None for a copy of a replicated arrow, which has no line of its own."""
    uid = module.own(name)
    if uid is None or module.written_name(name) != name:
        return None
    return Home(module, name, module.layout.statement_of(uid))


def _file(snapshot: Snapshot, path: str) -> Module | None:
    """The file that a path names, if it can be imported here."""
    location = location_of(path, snapshot.location)
    if isinstance(location, WrongPath) or location == snapshot.location:
        return None
    library, own = snapshot.library, snapshot.location
    if library.refusal(location, own, path) is not None or library.cycle(location, own) is not None:
        return None
    found = library.find(location, own, path)
    return None if isinstance(found, str) else found


# ---------------------------------------------------------------- names


def behind_prefix(snapshot: Snapshot, place: Context) -> list[Completion] | None:
    """What stands behind `l.`; None where no prefix stands before the cursor."""
    tokens = place.tokens
    if len(tokens) < 2 or tokens[-1].kind != "DOT" or (len(tokens) > 2 and tokens[-3].kind == "DOT"):
        return None
    prefix = tokens[-2].text
    if prefix not in snapshot.table.prefixes:
        return None
    return list(_named(snapshot, prefix, kinds_wanted(before_prefix(place)), BEST, _call(place)))


def from_imports(snapshot: Snapshot, place: Context) -> list[Completion] | None:
    """What imports alone offer: behind a prefix, and in their own statements; None elsewhere."""
    found = behind_prefix(snapshot, place)
    return import_completions(snapshot, place) if found is None else found


def imported_offered(snapshot: Snapshot, place: Context) -> Items:
    """The names that imports bring without a prefix, and the prefixes."""
    if place.begins or not place.expects_operand() or (place.last is not None and place.last.kind == "DOT"):
        return
    kinds = kinds_wanted(place)
    bracket, call = place.brackets[-1] if place.brackets else None, _call(place)
    # behind the arrow of a combinator its words follow, but in a fan
    words = bracket is not None and bracket.position > 0 and call in COMBINATORS and call != "fan"
    argument = place.start == "step" and bracket is not None and arrow_of(snapshot, call) is not None
    if not kinds or words or argument:
        return
    # what is imported and not used yet was brought for the line that is being written
    used = used_elsewhere(snapshot, "") if place.start == "statement" and kinds != OBJECTS else None
    rank = BEST if kinds == OBJECTS else GOOD if place.start == "statement" else OTHER
    for item in _named(snapshot, "", kinds, rank, call):
        fresh = used is not None and item.label not in used and place.last is not None and place.last.text != ">>"
        yield replace(item, rank=BEST, order=-3) if fresh else item
    for each in snapshot.table.imports:
        if each.decl.prefix is not None and each.module is not None:
            prefix = each.decl.prefix.text
            fresh = used is not None and prefix not in used and place.last is not None and place.last.text != ">>"
            detail = f"names of {each.decl.path.value}"
            yield Completion(prefix, "module", detail, rank=BEST if fresh else GOOD, order=-3 * fresh)


def library_offered(snapshot: Snapshot, place: Context) -> Items:
    """The templates and functions of the library that no import has to bring; its families stand among the others."""
    if place.begins or not place.expects_operand() or (place.last is not None and place.last.kind == "DOT"):
        return
    kinds, call = kinds_wanted(place), _call(place)
    words = bool(place.brackets) and place.brackets[-1].position > 0 and call in COMBINATORS and call != "fan"
    in_step = place.start == "step"
    # what a template gives is neither observed nor summed out
    if not kinds or words or (in_step and (place.brackets or place.keyword not in ("sample", "let"))):
        return
    table = snapshot.table
    file = snapshot.location.removeprefix(STD) if snapshot.location.startswith(STD) else None
    for name, one in visible_from(file).items():
        hidden = name in table.own or name in table.offered or name in snapshot.owners
        if not hidden and one.facts is None and KINDS.get(one.keyword) in kinds and _fits_call(call, one):
            kind = KINDS[one.keyword]
            described = prose(Comment(one.summary), f"From `std/{one.file}`.")
            yield Completion(name, ITEM_KINDS.get(kind, kind), one.header, described, rank=PLAIN, order=MANY)


def _fits_call(call: str, one: PreludeName) -> bool:
    """Whether a combinator may take a template: as `_takes` says, by the table."""
    if call in COMBINATORS and COMBINATORS[call].endomorphism:
        return one.reads == one.gives
    return call != "scan" or one.is_cell


def imported_scans(snapshot: Snapshot, given: Space | None) -> Items:
    """`scan(lstm(…))` for every template of a cell that is imported: what it gives is the end of what it reads."""
    for local, target in snapshot.table.offered.items() if given is not None else ():
        home = home_of(snapshot, target)
        node = home.statement.header.unit.node if home is not None else None
        if not isinstance(node, ProgramHeader) or not _is_cell(node):
            continue
        spaces = [
            each.name.text for each in (node.parameters or ()) if each.kind is not None and each.kind.text == "Object"
        ]
        reads = _factors(node.domain)[0]
        own = next((name for name, held in model_of(snapshot).objects.items() if held.space.space == given), reads)
        words = [own if space == reads else space for space in spaces]
        arguments = ", ".join(f"${{{number}:{word}}}" for number, word in enumerate(words, 1))
        call = f"{local}({arguments})" if spaces else local
        yield Completion(
            f"scan({local})", "function", _detail(home.statement.header.unit) if home is not None else "",
            insert=f"scan({call})", snippet=True, rank=BEST, order=-1,
        )  # fmt: skip


def _is_cell(header: ProgramHeader) -> bool:
    reads, gives = _factors(header.domain), _factors(header.codomain)
    return len(reads) > len(gives) and reads[-len(gives) :] == gives


def _factors(space: ObjectExpr) -> list[str]:
    return [to_text(part) for part in space.factors] if isinstance(space, ProductExpr) else [to_text(space)]


def _call(place: Context) -> str:
    """What is called around a cursor."""
    bracket = place.brackets[-1] if place.brackets else None
    return bracket.before.text if bracket is not None and bracket.before is not None else ""


def _takes(call: str, node: object) -> bool:
    """Whether a combinator may take a program: `scan` wants a cell, `repeat` what gives the space that it reads."""
    if not isinstance(node, ProgramHeader):
        return True
    if call in COMBINATORS and COMBINATORS[call].endomorphism:
        return _factors(node.domain) == _factors(node.codomain)
    return call != "scan" or _is_cell(node)


def _named(snapshot: Snapshot, prefix: str, kinds: Set[str], rank: int, call: str) -> Items:
    """The names behind a prefix, of these kinds, that `call` takes."""
    for local, target in snapshot.table.offered.items():
        before, _, last = local.rpartition(".")
        home = home_of(snapshot, target) if before == prefix else None
        unit = home.statement.header.unit if home is not None else None
        if home is not None and unit is not None and KINDS.get(unit.keyword) in kinds and _takes(call, unit.node):
            yield _item(snapshot, last, home, rank)


def _item(snapshot: Snapshot, label: str, home: Home, rank: int) -> Completion:
    unit = home.statement.header.unit
    kind = KINDS.get(unit.keyword, "module")
    described = prose(Comment(home.statement.doc), f"From `{written(snapshot, home.module)}`.")
    return Completion(label, ITEM_KINDS.get(kind, kind), _detail(unit), described, rank=rank)


def _detail(unit: Unit[object]) -> str:
    """What is written behind the name where it is declared."""
    behind = unit.text[max((name.span.end for name in unit.declares), default=0) :]
    return " ".join(behind.partition("\n")[0].lstrip(" :=").split())


def kinds_wanted(place: Context) -> Set[str]:
    """Which kinds of declarations may stand at a cursor."""
    bracket = place.brackets[-1] if place.brackets else None
    seen = {token.kind for token in place.tokens}
    if place.start == "statement":
        return _of_statement(place, seen, "" if bracket is None else bracket.kind)
    if place.start == "composition_rule":
        return VALUES if "EQUAL" in seen else frozenset()
    if place.start != "step" or place.keyword == "return":
        return frozenset()
    if bracket is not None and bracket.since and bracket.since[-1].kind == "COLON":
        return OBJECTS
    drawn, last = not seen.isdisjoint(("DRAW", "DRAW_EXPR")), "" if place.last is None else place.last.kind
    if bracket is not None and bracket.kind in ("LSQB", "OPTIONS") and len(place.brackets) == 1 and drawn:
        return frozenset()
    if place.keyword in ("let", "score"):
        return VALUES if "EQUAL" in seen else OBJECTS
    if last == "DRAW":
        return DRAWN
    if drawn:
        return VALUES | {"distribution"} if last == "FROM" else VALUES
    return OBJECTS if "COLON" in seen else frozenset()


def _of_statement(place: Context, seen: Set[str], bracket: str) -> Set[str]:
    if bracket in ("LSQB", "BOUNDS") and place.keyword != "let":
        return frozenset()
    match place.keyword:
        case "object" | "morphism" | "program" | "deduction" | "family":
            return OBJECTS if "COLON" in seen and "TILDE" not in seen else frozenset()
        case "let" | "define" if "EQUAL" in seen:
            return _of_expression(place)
        case "export":
            return _of_expression(place)
        case "def" if "EQUAL" in seen:
            return VALUES
        case _:
            return frozenset()


def _of_expression(place: Context) -> Set[str]:
    inner = place.brackets[-1] if place.brackets else None
    if inner is not None and inner.since and inner.since[-1].kind == "EQUAL":
        return frozenset()
    call = "" if inner is None or inner.before is None else inner.before.text
    return OBJECTS if call == "identity" else TRANSFORMED if call == "change_base" else ARROWS
