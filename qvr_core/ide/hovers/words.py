"""What is said of a word of the language: what it does, and what it does on this line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from qvr_core.ide.completion.typing import space_of
from qvr_core.ide.descriptions import arrow_text, deduction_text, function_text, object_text
from qvr_core.ide.hovers.bound import binding_text, data_told, in_words, made_of, program_of
from qvr_core.ide.hovers.terms import data_type_text, decoder_text, encoder_text
from qvr_core.ide.hovers.transformations import transformation_text
from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.language_words import keyword_text
from qvr_core.ide.prose import Code, Heading, Listing, Prose, prose
from qvr_core.ide.symbols import Found, Symbol
from qvr_core.ide.target import Keyword
from qvr_core.ide.types_in_words import element_words, set_words
from qvr_core.ide.view import model_of
from qvr_core.semantics.language.options import OBJECT_KEYS, WORD_MEANINGS
from qvr_core.semantics.language.roles import ROLES
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.spaces import Real
from qvr_core.syntax.tree.arithmetic import Comprehension
from qvr_core.syntax.tree.arrows import ArrowRef
from qvr_core.syntax.tree.declarations import ExportDecl, ImportDecl, ObjectDecl
from qvr_core.syntax.tree.deductions import RuleItem
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import FinSetExpr, ObjectExpr, SpaceExpr
from qvr_core.syntax.tree.options import Number, Option, Word
from qvr_core.syntax.tree.steps import DataStep, ReturnStep, ScoreStep
from qvr_core.syntax.tree.units import Statement
from qvr_core.syntax.tree_to_text import to_text
from qvr_core.syntax.walk import walk

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

MOST_NAMES = 3
"""Names of one line that are explained, for who asks what its first word does."""
LONGEST = 90
"""Letters of a piece of a line that is shown within a sentence."""


def word_text(snapshot: Snapshot, keyword: Keyword) -> Prose:
    """A word of the language at its place."""
    word, node = keyword.text, keyword.placed.unit.node
    if isinstance(node, ImportDecl):
        return _of_import(word, node)
    if keyword.span.start == 0:
        here = _of_line(snapshot, keyword, node)
        return prose(_headed(keyword), here) if here else keyword_text(word)
    if word in ("for", "if") and (reduction := _reduction_at(node, keyword.span)) is not None:
        return _of_reduction(word, reduction)
    if word == "FinSet":
        return _of_space(snapshot, word, node, keyword.span)
    if word == "from" and keyword.statement.header.unit.keyword == "program":
        return prose(keyword_text("from")[:1], _beginnings(snapshot, keyword.statement, node))
    return keyword_text(word)


def space_here(snapshot: Snapshot, found: Found) -> Prose:
    """`Real`, `Simplex` and the like: what one element of the space is that is written here."""
    return _of_space(snapshot, found.symbol.name, found.placed.unit.node, found.occurrence.span)


def option_here(snapshot: Snapshot, found: Found) -> str:
    """What the value of an option makes of it, on this line."""
    key = found.symbol.name
    option = next((one for one in _options(found) if one.key.span == found.occurrence.span), None)
    value = option.value if option is not None else None
    if not isinstance(value, Word):
        return ""
    if key in OBJECT_KEYS and (program := program_of(snapshot, found.statement)) is not None:
        names = bound_names(found.placed.unit.node)
        rows = ((name, in_words(program, found.statement, name)) for name in names)
        return "".join(f"Here `{name}`: {words}." for name, words in rows if words)
    if key == "role" and value.text in ROLES:
        return f"Here `{value.text}`: {ROLES[value.text].summary}."
    return f"Here `{value.text}`: {meaning}" if (meaning := WORD_MEANINGS.get((key, value.text))) else ""


def _options(found: Found) -> list[Option]:
    return [node for node in walk(found.placed.unit.node) if isinstance(node, Option)]


# ---------------------------------------------------------------- the first word of a line


def _headed(keyword: Keyword) -> Heading:
    entry = KEYWORDS[keyword.text]
    inside = keyword.placed is not keyword.statement.header
    return Heading(entry.word, f": {entry.inside if inside and entry.inside else entry.summary}")


def _of_line(snapshot: Snapshot, keyword: Keyword, node: Any) -> Prose:
    """What the line makes of its names."""
    statement, unit = keyword.statement, keyword.placed.unit
    if isinstance(node, RuleItem):
        premises = " and ".join(f"`{to_text(each)}`" for each in node.premises)
        follows = f"follows `{to_text(node.conclusion)}`"
        says = f"from {premises} {follows}" if premises else f"without premises {follows}"
        return prose(Code(unit.text), f"Here, for all values of its variables, {says}.")
    if keyword.placed is not statement.header:
        program = program_of(snapshot, statement)
        return _of_step(program, statement, node) if program is not None else ()
    names = [name.text for name in unit.declares]
    if isinstance(node, ExportDecl) and isinstance(node.value, ArrowRef):
        names = [node.value.name.text]
    match unit.keyword:
        case "object":
            return prose(*(object_text(snapshot, Symbol("object", name)) for name in names[:MOST_NAMES]))
        case "morphism" | "let" | "define" | "program" | "export":
            return prose(*(arrow_text(snapshot, name) for name in names[:1]))
        case "deduction":
            return prose(*(deduction_text(snapshot, Symbol("deduction", name)) for name in names[:1]))
        case "transformation":
            return prose(*(transformation_text(snapshot, Symbol("transformation", name)) for name in names[:1]))
        case "data type":
            return prose(*(data_type_text(snapshot, Symbol("data type", name)) for name in names[:1]))
        case "encoder":
            return prose(*(encoder_text(snapshot, Symbol("encoder", name)) for name in names[:1]))
        case "decoder":
            return prose(*(decoder_text(snapshot, Symbol("decoder", name)) for name in names[:1]))
        case "def" | "family":
            return prose(*(function_text(snapshot, Symbol("", name)) for name in names[:1]))
        case _:
            return ()


def _of_step(program: Program, statement: Statement, node: Any) -> Prose:
    if isinstance(node, ReturnStep):
        returned = [item.name.text for item in node.items]
        rows = ((name, in_words(program, statement, name)) for name in returned)
        return prose(Listing(tuple(f"`{name}`" + (f": {words}" if words else "") for name, words in rows)))
    given, names = {item.name for item in program.data}, bound_names(node)
    if isinstance(node, ScoreStep):
        return prose(Code(f"score {node.name.text}"), made_of(statement, node.name.text, program))
    if isinstance(node, DataStep):
        return prose(*(data_told((program,), name) for name in names[:MOST_NAMES] if name in given))
    return prose(*(binding_text(program, statement, name) for name in names[:MOST_NAMES]))


# ---------------------------------------------------------------- words within a line


def _of_import(word: str, node: ImportDecl) -> Prose:
    """The words of an import, which have nothing to do with those of a step."""
    listed = ", ".join(f"`{item.name.text}`" for item in node.items or ())
    if node.items is None:
        return keyword_text(word)
    match word:
        case "from":
            says = f"The file that the names behind `import` come from, here {listed}. Nothing else of it is brought."
        case "import":
            says = f"What is brought from `{node.path.value}`: {listed}. Each stands here as if it were declared here."
        case _:
            return keyword_text(word)
    return prose(Heading(word, f": {says}"), Code(to_text(node)))


def _reduction_at(node: Any, span: Span) -> Comprehension | None:
    """The innermost `sum(… for …)` around a word."""
    around = [each for each in walk(node) if isinstance(each, Comprehension)]
    holding = [each for each in around if each.span.start <= span.start and span.end <= each.span.end]
    return holding[-1] if holding else None


def _of_reduction(word: str, reduction: Comprehension) -> Prose:
    condition = "" if reduction.condition is None else short(reduction.condition)
    if word == "if":
        return prose(
            keyword_text("if")[:1], f"Here only those count for which `{condition}` holds." if condition else ""
        )
    return prose(keyword_text("for")[:1], reduction_text(reduction))


def reduction_text(reduction: Comprehension) -> str:
    """`Here the sum of x over all elements of Row (each in turn is i) for which …`."""
    each = " and ".join(
        f"`{one.name.text}` stands for each element of `{to_text(one.space)}`" for one in reduction.binders
    )
    only = "" if reduction.condition is None else f", of those for which `{short(reduction.condition)}` holds"
    taken = _TAKEN.get(reduction.function.text, f"`{reduction.function.text}` of")
    return f"Here {each} in turn{only}; it gives {taken} `{short(reduction.body)}`."


_TAKEN = {
    "sum": "the sum of all",
    "prod": "the product of all",
    "mean": "the mean of all",
    "max": "the greatest",
    "min": "the least",
    "logsumexp": "the logarithm of the sum of the exponentials of all",
}


def short(node: Any) -> str:
    """A piece of a line as it is written, shortened where it is long."""
    text = " ".join(to_text(node).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _of_space(snapshot: Snapshot, word: str, node: Any, span: Span) -> Prose:
    """A space: what it is, and what the one is whose name begins at a span."""
    spaces = (each for each in walk(node) if isinstance(each, FinSetExpr | SpaceExpr))
    written: ObjectExpr | None = next((each for each in spaces if each.span.start == span.start), None)
    space = space_of(written, model_of(snapshot)) if written is not None else None
    hole = isinstance(written, FinSetExpr) and written.size.value is None
    if isinstance(space, Real) and isinstance(written, SpaceExpr) and written.options is not None:
        bounds = {item.key.text: item.value.value for item in written.options.items if isinstance(item.value, Number)}
        space = replace(space, low=bounds.get("low"), high=bounds.get("high"))
    words = (
        "a set whose elements come with the data"
        if hole
        else "" if space is None
        else set_words(space).rstrip(".") or element_words(space)
    )  # fmt: skip
    first = words[:1].lower() + words[1:]
    entry = KEYWORDS[word]
    names = ", ".join(f"`{name.text}`" for name in node.names) if isinstance(node, ObjectDecl) else ""
    here = f"Here {f'{names}: ' if names else ''}{first}."
    return prose(Heading(word, f": {entry.summary}"), here if first else Code(entry.example))


def _beginnings(snapshot: Snapshot, statement: Statement, node: Any) -> Prose:
    """What is said of the step whose first elements stand behind `from`."""
    program = program_of(snapshot, statement)
    names = bound_names(node)
    return binding_text(program, statement, names[0]) if program is not None and names else ()


def bound_names(node: Any) -> list[str]:
    """The names that a step binds."""
    pattern = getattr(node, "pattern", None)
    if pattern is not None:
        return [name.text for name in pattern.names]
    if hasattr(node, "names"):
        return [name.text for name in node.names]
    return [node.name.text] if hasattr(node, "name") else []
