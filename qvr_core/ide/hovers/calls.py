"""What is said of a call: which argument is which, and what the function gives here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qvr_core.ide.hovers.bound import program_of
from qvr_core.ide.hovers.sites import value_text
from qvr_core.ide.hovers.words import reduction_text, short
from qvr_core.ide.language_words import builtin_text, constraint_words, family_text
from qvr_core.ide.prose import Code, Prose, prose
from qvr_core.ide.symbols import Found
from qvr_core.ide.types_in_words import let_words
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.walk import all_steps, operands, values
from qvr_core.semantics.types.walk import walk as walk_model
from qvr_core.syntax.tree.arithmetic import ArithCall, Comprehension
from qvr_core.syntax.tree.arrows import ArrowCall, ArrowRef
from qvr_core.syntax.tree.declarations import MorphismDecl
from qvr_core.syntax.tree.steps import Draw
from qvr_core.syntax.tree_to_text import to_text
from qvr_core.syntax.walk import walk

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

WIDEST = 72
"""Letters of a call that is shown as it is written."""


def family_here(found: Found) -> Prose:
    """A family: what it is, and which argument is which on this line, or what a network gives in their place."""
    name, here = found.symbol.name, _arguments(found)
    return family_text(name, here, of_network=here.startswith(NETWORK))


NETWORK = "Here the weights of the arrow give "


def _arguments(found: Found) -> str:
    """`Here loc is 0.0 and scale is tau.`; what a network gives behind `~`."""
    family = EVERY_FAMILY.get(found.symbol.name)
    if family is None:
        return ""
    for node in walk(found.placed.unit.node):
        match node:
            case Draw(name=name, args=args) | ArithCall(func=name, args=args) | ArrowCall(func=name, args=args) if (
                name.span == found.occurrence.span
            ):
                return _listed(family, args or ())
            case ArrowRef(name=name) if name.span == found.occurrence.span:
                return _given_by_network(family) if isinstance(found.placed.unit.node, MorphismDecl) else ""
            case _:
                pass
    return ""


def _listed(family: Family, args: tuple[Any, ...]) -> str:
    said: list[str] = []
    for at, argument in enumerate(args):
        own = family.parameters[at].name if at < len(family.parameters) else ""
        key = own if argument.key is None else argument.key.text
        if key:
            said.append(f"`{key}` is `{short(argument.value)}`")
    return f"Here {', '.join(said[:-1])}{' and ' if said[:-1] else ''}{said[-1]}." if said else ""


def _given_by_network(family: Family) -> str:
    names = [f"`{one.name}` ({constraint_words(one)})" for one in family.parameters if one.raw != "none"]
    listed = f"{', '.join(names[:-1])}{' and ' if names[:-1] else ''}{names[-1]}" if names else "its parameters"
    return f"{NETWORK}{listed} for each input: no arguments are written."


def function_here(snapshot: Snapshot, found: Found) -> Prose:
    """A builtin function: what it computes, and what it gives on this line."""
    general = builtin_text(found.symbol.name)
    for node in walk(found.placed.unit.node):
        if isinstance(node, Comprehension) and node.function.span == found.occurrence.span:
            written = to_text(node)
            head = Code(written) if len(written) <= WIDEST and "\n" not in written else general[:1]
            return prose(head, reduction_text(node))
        if isinstance(node, ArithCall) and node.func.span == found.occurrence.span:
            return prose(general, gives(snapshot, found))
    return general


def gives(snapshot: Snapshot, found: Found) -> str:
    """What the call whose name is found gives on this line."""
    calls = (node for node in walk(found.placed.unit.node) if isinstance(node, ArithCall))
    call = next((node for node in calls if node.func.span == found.occurrence.span), None)
    if call is None:
        return ""
    program: Program | None = program_of(snapshot, found.statement)
    origin = Origin(found.placed.uid, call.span)
    for step in all_steps(program.steps) if program is not None else ():
        for value in values(step):
            for each in walk_model(value, operands):
                if each.origin == origin and program is not None:
                    rows = program.uses_input
                    if each.type.space is None and not each.type.indexed:
                        return ""
                    words = "" if rows else let_words(each.type)
                    first = words[:1].lower() + words[1:]
                    shown = f"Gives {value_text(each.type, rows=rows)}." if rows else ""
                    return f"Here it gives {first}" if words else shown
    return ""
