"""Hover: what a name, an operator, an option or a word of the language is, here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from qvr_core.ide import arrows_in_words
from qvr_core.ide.answers import Hover
from qvr_core.ide.descriptions import (
    RULES_OF_FAMILIES,
    SORTS,
    arrow_text,
    deduction_text,
    documentation,
    function_text,
    object_text,
    scan_note,
)
from qvr_core.ide.hovers.bound import bound, data, label_text
from qvr_core.ide.hovers.calls import family_here, function_here, gives
from qvr_core.ide.hovers.terms import constructor_hover, data_type_text, decoder_text, encoder_text
from qvr_core.ide.hovers.transformations import builtin_transformation_text, transformation_text
from qvr_core.ide.hovers.words import option_here, space_here, word_text
from qvr_core.ide.imports.hover import import_text, imported_text
from qvr_core.ide.indices import index_text
from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.language_words import (
    combinator_text,
    family_text,
    form_text,
    keyword_text,
    option_text,
)
from qvr_core.ide.operators import arrow_of, operator_text, sign_text
from qvr_core.ide.prose import Code, Heading, Prose, prose
from qvr_core.ide.symbols import Found, Symbol
from qvr_core.ide.target import Keyword, Operator, Sign, Target, range_of, target_at
from qvr_core.ide.view import model_of
from qvr_core.semantics.language import equations
from qvr_core.semantics.language.combinators import COMBINATORS, POSTFIX
from qvr_core.semantics.language.compositions import BUILTIN_COMPOSITIONS
from qvr_core.semantics.language.options import MEANINGS, WORD_MEANINGS
from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.semantics.language.roles import ROLES
from qvr_core.semantics.language.transformations import KEEPS, TRANSFORMATIONS
from qvr_core.semantics.modules.paths import shown
from qvr_core.semantics.types.model.arrows import Arrow, Fan, Scan, TakeFactor
from qvr_core.semantics.types.type_text import structure
from qvr_core.semantics.types.walk import all_steps, parts, walk
from qvr_core.syntax.source import Cursor
from qvr_core.syntax.tree.declarations import ProgramHeader

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


Known = Mapping[str, Mapping[str, str | Prose]]


def hover(snapshot: Snapshot, cursor: Cursor, held: Sequence[Known] = (), blankets: bool = False) -> Hover | None:
    """What stands at the cursor; None where there is nothing to say.  `held` is what files hold and runs have found, by
    program and name.  With `blankets` a site says what shields it, which takes networkx."""
    target = target_at(snapshot, cursor)
    content = _content(snapshot, target) if target is not None else ()
    if content and isinstance(target, Found) and target.symbol.kind in ("data", "site", "binding"):
        header = snapshot.statement_at(cursor)
        node = None if header is None else header.header.unit.node
        program, name = node.name.text if isinstance(node, ProgramHeader) else "", target.symbol.name
        shield = _shield(snapshot, program, name) if blankets else ""
        content = prose(content, shield, *(known.get(program, {}).get(name, "") for known in held))
    return Hover(content, range_of(snapshot, target)) if target is not None and content else None


def _content(snapshot: Snapshot, target: Target) -> Prose:
    match target:
        case Found():
            return _symbol(snapshot, target)
        case Operator():
            return operator_text(snapshot, target)
        case Sign():
            return sign_text(snapshot, target)
        case Keyword():
            return word_text(snapshot, target)


# ---------------------------------------------------------------- names


def _symbol(snapshot: Snapshot, found: Found) -> Prose:
    symbol = found.symbol
    if symbol.target is not None and symbol.kind == "distribution" and symbol.name in snapshot.table.known:
        return prose(family_here(found), f"From `{shown(symbol.target[0])}`.")
    if symbol.target is not None:
        return imported_text(snapshot, found)
    if symbol.name in ("Bool", "Nat", "One") and symbol.name not in model_of(snapshot).objects:
        return keyword_text(symbol.name)
    match symbol.kind:
        case "path" | "prefix":
            return import_text(snapshot, found)
        case "object":
            return object_text(snapshot, symbol)
        case "morphism" | "let" | "program":
            return arrow_text(snapshot, found.occurrence.text if symbol.kind == "morphism" else symbol.name)
        case "composition":
            return prose(
                Code(f"composition {symbol.name}"), KEYWORDS["composition"].summary, documentation(snapshot, symbol)
            )
        case "deduction":
            return deduction_text(snapshot, symbol)
        case "transformation":
            return transformation_text(snapshot, symbol)
        case "data type":
            return data_type_text(snapshot, symbol)
        case "encoder":
            return encoder_text(snapshot, symbol)
        case "decoder":
            return decoder_text(snapshot, symbol)
        case "constructor":
            return constructor_hover(snapshot, symbol)
        case "function" | "distribution":
            return function_text(snapshot, symbol)
        case "site" | "binding" | "input" | "template":
            return bound(snapshot, found)
        case "data":
            return data(snapshot, found)
        case "family":
            return family_here(found)
        case "combinator":
            return _combinator(snapshot, found)
        case "builtin":
            return function_here(snapshot, found)
        case "form":
            return prose(form_text(), gives(snapshot, found))
        case "option":
            return prose(option_text(symbol.name, symbol.of, found.placed.unit.keyword), option_here(snapshot, found))
        case "word":
            return _option_word(found)
        case "keyword":
            return _keyword_argument(symbol)
        case "space":
            return space_here(snapshot, found)
        case "attribute":
            return _attribute(snapshot, found)
        case "size":
            return prose(f"`{symbol.name}`: a size, the same wherever the file names it", _size_value(snapshot, found))
        case "local":
            return index_text(snapshot, found) or prose(f"`{symbol.name}`: {_local_text(found)}")
        case "label":
            return prose(f"`{symbol.name}`: " + (label_text(snapshot, symbol) if symbol.of else "the name of a factor"))
        case "operation" if found.statement.header.unit.keyword == "family" and symbol.name in RULES_OF_FAMILIES:
            return prose(Heading(symbol.name, f": {RULES_OF_FAMILIES[symbol.name]}"))
        case "atom":
            return prose(f"`{symbol.name}`: an atom of this deduction, a category or a meaning that has no parts.")
        case "rule":
            return prose(f"`{symbol.name}`: a rule of this deduction.")
        case "kind" if symbol.name in KEYWORDS:
            return keyword_text(symbol.name)
        case _:
            return ()


def _local_text(found: Found) -> str:
    """A name that its line alone knows, and that is no index."""
    if found.placed.unit.keyword == "rule":
        return "a variable of this rule; it stands for the same wherever the rule names it."
    return "known in this line alone."


MOST_STEPS = 300
"""Steps of a program whose dependences are looked through while somebody waits."""


def _shield(snapshot: Snapshot, program: str, name: str) -> str:
    """The Markov blanket of a site."""
    model = model_of(snapshot)
    found = model.programs.get(program)
    if found is None or sum(1 for _ in all_steps(found.steps)) > MOST_STEPS:
        return ""
    from qvr_core.dependence import blanket, dependence_graph, is_site

    graph = dependence_graph(found, model)
    around = blanket(graph, name) if is_site(graph, name) else ()
    named = ", ".join(f"`{each}`" for each in around)
    return f"Markov blanket: {named} (given these, the rest tells nothing more about it)" if around else ""


# ---------------------------------------------------------------- the language


def _option_word(found: Found) -> Prose:
    symbol = found.symbol
    if symbol.of == "role" and symbol.name in ROLES:
        role = ROLES[symbol.name]
        joins = f"It joins: {role.between}."
        return prose(Heading(symbol.name, f" (a role): {role.summary}."), joins, SORTS.get(role.sort, ""))
    if symbol.of == "change_base" and symbol.name in TRANSFORMATIONS:
        return builtin_transformation_text(symbol.name)
    if symbol.of == "composition" and symbol.name in BUILTIN_COMPOSITIONS:
        return prose(Heading(symbol.name, f" (a composition): {BUILTIN_COMPOSITIONS[symbol.name]}."))
    if symbol.of == "transformation" and symbol.name in KEEPS:
        return prose(Heading(symbol.name, f" (what a transformation is): {KEEPS[symbol.name]}."))
    own = WORD_MEANINGS.get((symbol.of, symbol.name))
    if own is not None:
        return prose(Heading(symbol.name, f" (of `{symbol.of}`): {own}"))
    if symbol.of == "method" and symbol.name in equations.METHODS:
        return prose(Heading(symbol.name, f" (a method of `{equations.SOLVE}`): {equations.METHODS[symbol.name]}."))
    if symbol.of in MEANINGS:
        return option_text(symbol.of, "", found.placed.unit.keyword)
    return prose(f"`{symbol.name}`: value of `{symbol.of}`")


def _keyword_argument(symbol: Symbol) -> Prose:
    entry = COMBINATORS.get(symbol.of)
    if entry is not None:
        meaning = dict(entry.parameters).get(symbol.name, "")
        words = entry.words.get(symbol.name, ())
        return prose(
            Heading(symbol.name, f" (of `{symbol.of}`): {meaning}"), f"One of {', '.join(words)}" if words else ""
        )
    if symbol.of in EVERY_FAMILY:
        return family_text(symbol.of)
    if symbol.of == equations.SOLVE and symbol.name in equations.OPTIONS:
        return prose(Heading(symbol.name, f" (of `{equations.SOLVE}`): {equations.OPTIONS[symbol.name]}."))
    return ()


def _attribute(snapshot: Snapshot, found: Found) -> Prose:
    """What stands behind a dot: a method, or a factor of a product, with the others beside it."""
    name = found.symbol.name
    if name in POSTFIX:
        call, summary = POSTFIX[name]
        return prose(Code(call), summary)
    if name in METHODS:
        call, says = METHODS[name]
        return prose(Code(call), says)
    root = arrow_of(snapshot, found.statement)
    nodes = walk(root, parts) if root is not None else ()
    taking = next((each for each in nodes if isinstance(each, TakeFactor) and each.field == name), None)
    if taking is None:
        return prose(f"`.{name}`: a factor of the value, or a method")
    given = taking.base.codomain.written
    return prose(
        Code(f".{name}"),
        f"The part `{name}` of what stands before the dot, `{given}`; its other parts are left out.",
        f"Gives `{structure(taking.codomain.space)}`.",
    )


METHODS = {
    "goal_weight": ("chart.goal_weight()", "The weight of the start category over the sentence, all derivations "
                    "together: with the semiring `LogProb` the log of the sum of their weights."),
    "weight": ("chart.weight(item)", "The weight of one item of the chart: of all its derivations together."),
    "derivations": ("chart.derivations(item)", "The trees by which an item of the chart is derived."),
}  # fmt: skip
"""What a chart, the value of `parse`, can be asked for."""


def _size_value(snapshot: Snapshot, found: Found) -> str:
    names = found.placed.unit.declares
    held = model_of(snapshot).objects.get(names[0].text) if names else None
    return f"Here: {structure(held.space.space)}" if held is not None else ""


# ---------------------------------------------------------------- words


def _combinator(snapshot: Snapshot, found: Found) -> Prose:
    general = combinator_text(found.symbol.name)
    root = arrow_of(snapshot, found.statement)
    if root is None:
        return general
    here = _instance(root, found)
    if here is None:
        return general
    typed = Code(f"{found.symbol.name} : {here.domain.written} {here.sort.value} {here.codomain.written}")
    note = scan_note(here) if isinstance(here, Scan) else ""
    shapes = arrows_in_words.shapes_text(here.domain.space, here.codomain.space)
    return prose(typed, note, _branches(here) if isinstance(here, Fan) else "", shapes, general)


MOST_BRANCHES = 8


def _branches(fan: Fan) -> str:
    """What the branches read and give, in words."""
    if len(fan.branches) < 2:
        return ""
    gives = ", then ".join(f"`{branch.codomain.written}`" for branch in fan.branches[:MOST_BRANCHES])
    more = ", …" if len(fan.branches) > MOST_BRANCHES else ""
    reads = f"Each of its {len(fan.branches)} branches reads the same `{fan.domain.written}`."
    return f"{reads} The result has one part for each of them, in order: {gives}{more}."


def _instance(root: Arrow, found: Found) -> Arrow | None:
    """The node that a combinator's name begins."""
    kind = COMBINATORS[found.symbol.name].node if found.symbol.name in COMBINATORS else ()
    for arrow in walk(root, parts):
        begins = arrow.origin.unit == found.placed.uid and arrow.origin.span.start == found.occurrence.span.start
        if begins and isinstance(arrow, kind):
            return arrow
    return None
