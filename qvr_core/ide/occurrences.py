"""A name at a place in a unit, and the names that only imports bring: paths, prefixes, what stands behind a dot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qvr_core.syntax.tree.arrows import ArrowExpr, ArrowRef, PostfixExpr
from qvr_core.syntax.tree.declarations import ImportDecl
from qvr_core.syntax.tree.names import Name, Span


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a place in a unit.

    part: 'declare' (a top-level name), 'bind' (a name of a program; `of` is the step's keyword), 'parameter' (an input
    or typed parameter), 'object', 'size', 'arrow', 'value', 'callee', 'family', 'combinator', 'option', 'word',
    'keyword' (of an argument), 'attribute' (after a dot), 'space' (`Real`), 'label', 'element' (a label in quotes),
    'returned', 'local' / 'local-bind' (a lambda's or a factor's name, an index; `scope` is where it holds), 'data' (in
    quotes), 'kind', 'operation', 'rule', 'atom', 'term'; of imports 'path', 'prefix' / 'prefix-bind', 'imported' and
    'alias'.  `of` is what the name belongs to: the call of a keyword, the option of a word, what stands in front of the
    dot, the imported name of an alias.
    """

    text: str
    span: Span
    part: str
    of: str = ""
    scope: Span | None = None


def at(name: Name, part: str, of: str = "") -> Occurrence:
    return Occurrence(name.text, name.span, part, of)


def owner_of(base: ArrowExpr) -> str:
    """The plain name in front of a dot, which may be the prefix of an import; '' where something else stands there."""
    return base.name.text if isinstance(base, ArrowRef) else ""


def behind(attribute: Occurrence) -> str:
    """What stands behind a dot, with the name in front of it."""
    return f"{attribute.of}.{attribute.text}" if attribute.of else attribute.text


def qualified(drawn: ArrowExpr) -> str:
    """The name that `l.F(…)` draws from."""
    return f"{owner_of(drawn.base)}.{drawn.attribute.text}" if isinstance(drawn, PostfixExpr) else ""


def object_names(name: Name) -> Iterator[Occurrence]:
    """An object, or a prefix and the object behind it."""
    prefix, dot, last = name.text.partition(".")
    if not dot:
        yield at(name, "object")
        return
    start, end = name.span
    yield Occurrence(prefix, Span(start, start + len(prefix)), "prefix")
    yield Occurrence(last.strip(), Span(end - len(last.strip()), end), "object", prefix.strip())


def import_names(decl: ImportDecl) -> Iterator[Occurrence]:
    """The path, the prefix, the imported names and what they are called here."""
    start, end = decl.path.span
    yield Occurrence(decl.path.value, Span(start + 1, max(start + 1, end - 1)), "path")
    if decl.prefix is not None:
        yield at(decl.prefix, "prefix-bind")
    for item in decl.items or ():
        yield at(item.name, "imported")
        if item.alias is not None:
            yield at(item.alias, "alias", item.name.text)
