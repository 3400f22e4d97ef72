"""What an answer says, in parts; and the parts as Markdown or as plain text.

Prose marks code by backticks and breaks lines where it holds a line feed; it has no other marks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qvr_core.syntax.printable import harmless_markdown, printable


@dataclass(frozen=True, slots=True)
class Heading:
    """The name of what is explained, and how the sentence goes on behind it."""

    name: str
    prose: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Lines of a program."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    prose: str


@dataclass(frozen=True, slots=True)
class Listing:
    """One line of prose for each item."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comment:
    """What a user wrote above a declaration, without the comment signs: Markdown, if they like."""

    text: str


Part = Heading | Code | Paragraph | Listing | Comment
Prose = tuple[Part, ...]


_SILENT = (Comment(""), Listing(()))


def prose(*parts: Part | Prose | str) -> Prose:
    """An answer of these parts; a text is a paragraph, and what says nothing is left out."""
    made: list[Part] = []
    for part in parts:
        if isinstance(part, str):
            made += [Paragraph(part)] if part else []
        elif isinstance(part, tuple):
            made += part
        elif part not in _SILENT:
            made.append(part)
    return tuple(made)


def markdown(answer: Prose) -> str:
    return "\n\n".join(map(_markdown, answer))


def plain(answer: Prose) -> str:
    return "\n\n".join(map(_plain, answer))


RENDERERS: Mapping[str, Callable[[Prose], str]] = {"markdown": markdown, "plaintext": plain}
"""By the protocol's names of the formats."""


def _markdown(part: Part) -> str:
    match part:
        case Heading(name=name, prose=text):
            return f"**{name}**{text}"
        case Code(text=text):
            return f"```qvr\n{text}\n```"
        case Paragraph(prose=text):
            return text.replace("\n", "  \n")
        case Listing(items=items):
            return "\n".join(f"- {item}" for item in items)
        case Comment(text=text):
            return harmless_markdown(text)


def _plain(part: Part) -> str:
    match part:
        case Heading(name=name, prose=text):
            return name + _unmarked(text)
        case Code(text=text):
            return text
        case Paragraph(prose=text):
            return _unmarked(text)
        case Listing(items=items):
            return "\n".join(f"• {_unmarked(item)}" for item in items)
        case Comment(text=text):
            return printable(text)


def _unmarked(text: str) -> str:
    return text.replace("`", "")
