"""Names and places in the syntax tree.

All nodes are frozen dataclasses, each with a span, which counts code points from the start of the *unit* that the node
was parsed from (`units.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from qvr_core.syntax.immutable import immutable


class Span(NamedTuple):
    """Half-open range of code points inside a unit."""

    start: int
    end: int


@immutable
class Name:
    """An identifier as written.

    A label of an enumeration may be `quoted`: `text` is then what stands between the quotes, escapes resolved, and the
    span includes the quotes.
    """

    text: str
    span: Span
    quoted: bool = False
