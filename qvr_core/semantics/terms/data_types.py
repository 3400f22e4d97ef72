"""Data types, checked: finite trees over sets and spaces (docs/reference.md#terms)."""

from __future__ import annotations

from qvr_core.semantics.arrows.objects import check_object_expr, written
from qvr_core.semantics.scope.scope import UNKNOWN, DataTypeEntry, Scope
from qvr_core.semantics.types.codes import UNSUPPORTED
from qvr_core.semantics.types.diagnostics import Edit, Fix, Related
from qvr_core.semantics.types.model.terms import Constructor, DataType
from qvr_core.semantics.types.program_codes import DATA_TYPE
from qvr_core.semantics.types.spaces import Finite, Linear, Named, Product, Seq, is_unknown, sizes
from qvr_core.syntax.tree.declarations import DataTypeDecl
from qvr_core.syntax.tree.objects import ObjectExpr, ObjectRef, ParenObject, ProductExpr
from qvr_core.syntax.tree.units import Statement


def check_data_type(statement: Statement, scope: Scope) -> DataType:
    """The declared type.  Reports a constructor that stands twice, an argument that no term can have, and a type
    without a finite term."""
    node = statement.header.unit.node
    assert isinstance(node, DataTypeDecl)
    found: dict[str, Constructor] = {}
    for tree in node.constructors:
        arguments = tuple(_argument(argument, node, scope) for argument in tree.arguments)
        name = tree.name.text
        if name in found:
            message = f"`{name}` stands twice in `{node.name.text}`: each constructor has a name of its own"
            related = (Related(f"the first `{name}` stands here", found[name].origin),)
            scope.report(DATA_TYPE, message, tree.name.span, related)
            continue
        found[name] = Constructor(name=name, arguments=arguments, origin=scope.origin(tree.name.span))
    if all(None in one.arguments for one in found.values()):
        _endless(node, scope)
    return DataType(name=node.name.text, constructors=tuple(found.values()), origin=scope.origin(node.name.span))


def _endless(node: DataTypeDecl, scope: Scope) -> None:
    own = node.name.text
    message = (
        f"`{own}` has no finite term: each of its constructors wants a `{own}` before it can make one; one that wants "
        f"none, such as `| leaf`, is where a term ends"
    )
    scope.report(DATA_TYPE, message, node.name.span)


def _argument(expr: ObjectExpr, node: DataTypeDecl, scope: Scope) -> Named | None:
    """What stands at one place of a constructor; None for a term of the type itself, `UNKNOWN` (reported) for what
    cannot stand there."""
    inner = expr
    while isinstance(inner, ParenObject):
        inner = inner.inner
    if isinstance(inner, ObjectRef):
        if inner.name.text == node.name.text:
            return None
        if isinstance(scope.lookup(inner.name.text), DataTypeEntry):
            message = f"`{inner.name.text}` is another data type, and terms of one type cannot stand in another's yet"
            scope.report(UNSUPPORTED, message, inner.span)
            return UNKNOWN
    if isinstance(inner, ProductExpr) and any(
        isinstance(factor, ObjectRef) and factor.name.text == node.name.text for factor in inner.factors
    ):
        _apart(inner, expr, scope)
        return UNKNOWN
    named = check_object_expr(expr, scope)
    space = named.space
    if is_unknown(space):
        return UNKNOWN
    if isinstance(space, Seq):
        message = f"a term holds one element at a place, and `{named.written}` are sequences"
        scope.report(DATA_TYPE, message, expr.span)
    elif isinstance(space, Product):
        _apart(inner, expr, scope)
    elif isinstance(space, Finite) and isinstance(space.size, Linear) and space.nominal is not None:
        message = f"the elements of `{named.written}` come with the data, and those of a term must be known before"
        scope.report(UNSUPPORTED, message, expr.span)
    elif any(isinstance(size, Linear) for size in sizes(space)):
        scope.report(DATA_TYPE, f"the size of `{named.written}` is left open, and a term needs one", expr.span)
    else:
        return named
    return UNKNOWN


def _apart(inner: ObjectExpr, expr: ObjectExpr, scope: Scope) -> None:
    """A product where arguments are wanted."""
    fixes: tuple[Fix, ...] = ()
    if isinstance(inner, ProductExpr):
        apart = ", ".join(written(factor) for factor in inner.factors)
        fixes = (Fix(f"Write `{apart}`", (Edit(scope.origin(expr.span), apart),)),)
    scope.report(DATA_TYPE, "a constructor has a place for each factor: commas, and no product", expr.span, fixes=fixes)
