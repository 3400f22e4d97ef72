"""Tokens of a unit, as lark's parser reads them."""

from __future__ import annotations

from typing import Self

import lark


class Token(lark.Token):
    """A terminal of the grammar with its text and its place in the unit, in code points.

    `kind` and `text` are lark's `type` and `value`.  Two tokens are the same where their places are, too.
    """

    __slots__ = ()
    # A unit is placed as a whole, so its tokens have no lines.
    line = column = end_line = end_column = None

    # other names of the same slots
    kind: str = lark.Token.type
    text: str = lark.Token.value
    start: int = lark.Token.start_pos  # pyright: ignore[reportAssignmentType]
    end: int = lark.Token.end_pos  # pyright: ignore[reportAssignmentType]

    def __new__(cls, kind: str, text: str, start: int, end: int) -> Self:
        token = str.__new__(cls, text)
        token.type, token.value, token.start_pos, token.end_pos = kind, text, start, end
        return token

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Token)
            and (self.kind, self.text, self.start, self.end) == (other.kind, other.text, other.start, other.end)
        )

    __hash__ = lark.Token.__hash__

    def read_as(self, kind: str, text: str | None = None) -> Token:
        """This place with another terminal, or another text."""
        return Token(kind, self.text if text is None else text, self.start, self.end)

    def placed(self, start: int, end: int) -> Token:
        """This token at another place."""
        return Token(self.kind, self.text, start, end)
