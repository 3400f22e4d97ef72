"""Object expressions: sets, spaces, sequences, products."""

from __future__ import annotations

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import Options


@immutable
class Size:
    """A size: an integer, a name, or `None` for the hole `_`."""

    value: int | str | None
    span: Span


@immutable
class FinSetExpr:
    """`FinSet n`."""

    size: Size
    span: Span


@immutable
class EnumExpr:
    """`{red, "dark green"}`."""

    labels: tuple[Name, ...]
    span: Span


@immutable
class SpaceExpr:
    """`Real 28 28 [low=0.0]`, `Simplex k`, `Covariance d`, …"""

    kind: Name
    sizes: tuple[Size, ...]
    options: Options | None
    span: Span


@immutable
class SeqExpr:
    """`Seq A`."""

    item: ObjectExpr
    span: Span


@immutable
class ObjectRef:
    """A name where an object is expected."""

    name: Name

    @property
    def span(self) -> Span:
        return self.name.span


@immutable
class ParenObject:
    """`( … )` around an object expression."""

    inner: ObjectExpr
    span: Span


@immutable
class ProductExpr:
    """`A * B * …`, flat; `operators` are the spans of the `*`."""

    factors: tuple[ObjectExpr, ...]
    operators: tuple[Span, ...]
    span: Span


@immutable
class CoproductExpr:
    """`A + B + …`, flat."""

    parts: tuple[ObjectExpr, ...]
    operators: tuple[Span, ...]
    span: Span


ObjectExpr = FinSetExpr | EnumExpr | SpaceExpr | SeqExpr | ObjectRef | ParenObject | ProductExpr | CoproductExpr
