"""What a formula may be refused for, and what of it is left out."""

from __future__ import annotations


class WrongFormula(Exception):
    """A formula that cannot be read, or that the table does not fit; the message says what to write."""


class LeftOut(Exception):
    """A term that no program is written for yet; the message says why."""
