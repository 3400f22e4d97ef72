"""Arrow expressions: names, calls, `>>`, `@`, and what follows a dot."""

from __future__ import annotations

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import Number, String


@immutable
class ArrowRef:
    """A name where an arrow is expected."""

    name: Name

    @property
    def span(self) -> Span:
        return self.name.span


@immutable
class ArrowArg:
    """An argument of a call: an arrow, a number or a string, perhaps by keyword."""

    key: Name | None
    value: ArrowExpr | Number | String
    span: Span


@immutable
class ArrowCall:
    """`fan(f, g)`, `scan(c, emit=all)`, `Normal(0.0, 1.0)`, `template(alpha=1.0)`."""

    func: Name
    args: tuple[ArrowArg, ...]
    span: Span


@immutable
class ComposeExpr:
    """`a >> b >> c`, flat; `operators[i]` stands between `stages[i]` and `stages[i + 1]`."""

    stages: tuple[ArrowExpr, ...]
    operators: tuple[Span, ...]
    span: Span


@immutable
class TensorExpr:
    """`a @ b @ c`, flat."""

    factors: tuple[ArrowExpr, ...]
    operators: tuple[Span, ...]
    span: Span


@immutable
class PostfixExpr:
    """`f.dagger`, `f.trace(X)`, `f.h`."""

    base: ArrowExpr
    attribute: Name
    args: tuple[ArrowArg, ...] | None
    span: Span


@immutable
class ParenArrow:
    """`( … )` around an arrow expression."""

    inner: ArrowExpr
    span: Span


ArrowExpr = ArrowRef | ArrowCall | ComposeExpr | TensorExpr | PostfixExpr | ParenArrow
