"""Spaces: what an object denotes, how wide it is, and which space fits where (LANGUAGE.md 3)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Linear:
    """A size that is not (yet) one number: `constant + Σ coefficient · unknown` over the naturals.

    An unknown is named by a string that is unique in the file: a hole (`Embedded.0`), a `Nat` parameter, or a name
    shared by the whole file (`Real d`).
    """

    constant: int
    terms: tuple[tuple[str, int], ...]


Dim = int | Linear


@dataclass(frozen=True, slots=True)
class Finite:
    """A finite set.  `nominal` is the declared name that makes it this set; None for an anonymous one, which fits any
    set of its size.  `labels` for an enumeration; `parts` for a coproduct."""

    size: Dim
    nominal: str | None = None
    labels: tuple[str, ...] | None = None
    parts: tuple[Space, ...] | None = None


@dataclass(frozen=True, slots=True)
class Real:
    """Real vectors.  `shape` keeps `Real 28 28`; only the product counts.  Bounds make it a box; `None` is unbounded."""

    shape: tuple[Dim, ...]
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Constrained:
    """`kind` is 'Simplex', 'CholeskyFactor', 'Covariance' or 'Correlation' of size `size`."""

    kind: str
    size: Dim


@dataclass(frozen=True, slots=True)
class Product:
    """A product, flat.  `names[i]` is how factor i is called in messages and after `.` (None: anonymous)."""

    factors: tuple[Space, ...]
    names: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Seq:
    """Sequences of `item` along a length axis."""

    item: Space


@dataclass(frozen=True, slots=True)
class Unknown:
    """The space of something that could not be typed.  It fits everywhere, so that one mistake stays one error."""


Space = Finite | Real | Constrained | Product | Seq | Unknown


@dataclass(frozen=True, slots=True)
class Named:
    """A space together with the way the user wrote it (`Embedded`, `FwdHidden * BwdHidden`), for messages and hovers.

    Comparison looks at the space only.
    """

    space: Space
    written: str = field(compare=False)
