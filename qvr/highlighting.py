"""Colours by Pygments: `pygmentize -l qvr`, Sphinx, MkDocs, notebooks turned to pages.

Its words are those of the checker's own tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups, words  # pyright: ignore[reportUnknownVariableType]
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.semantics.language.options import RULE_ATTRIBUTES
from qvr_core.semantics.language.prelude import EVERY_FAMILY, PRELUDE
from qvr_core.syntax.layout import ITEM_WORDS, STATEMENT_WORDS, STEP_WORDS, UNRESERVED
from qvr_core.syntax.lexer import SPACES
from qvr_core.syntax.units import KINDS

_TEMPLATES = tuple(name for name, one in PRELUDE.items() if one.facts is None)
_RESERVED = tuple(word for word in dict.fromkeys((*STATEMENT_WORDS, *STEP_WORDS)) if word not in UNRESERVED)
_OPENING = "|".join([*UNRESERVED, *ITEM_WORDS])
_NAME = r"[A-Za-z_]\w*"


class QvrLexer(RegexLexer):
    """Tokens of a `.qvr` text.  Each pattern stays within its line, so the work grows with the text."""

    name = "QVR"
    aliases: ClassVar[Sequence[str]] = ("qvr",)
    filenames: ClassVar[Sequence[str]] = ("*.qvr",)
    mimetypes: ClassVar[Sequence[str]] = ("text/x-qvr",)
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"^([ \t]*)(#!.*)", bygroups(Whitespace, Comment.Special)),
            (r"^(data type)\b", bygroups(Keyword.Declaration)),
            # words that are names elsewhere: only where a line begins with them and a name or a text follows
            (
                rf'^([ \t]*)({_OPENING})\b(?=[ \t]+["A-Za-z_]|[ \t]*:?[ \t]*$)',
                bygroups(Whitespace, Keyword.Declaration),
            ),
            (r"\n+|[^\S\n]+", Whitespace),
            (
                words(RULE_ATTRIBUTES, prefix=r"(#\[)([ \t]*)(", suffix=r")\b"),
                bygroups(Punctuation, Whitespace, Name.Attribute),
            ),
            (r"#.*", Comment.Single),
            (r'"(?:\\.|[^"\\\n])*"', String.Double),
            (r'"[^\n]*', String.Double),
            (r"(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+", Number.Float),
            (r"\d+", Number.Integer),
            (words(_RESERVED, prefix=r"\b", suffix=r"\b"), Keyword.Declaration),
            (words(("FinSet", "Seq", *SPACES, *KINDS), prefix=r"\b", suffix=r"\b"), Keyword.Type),
            (r"\b(?:for|if|in|factor|import|as|from)\b(?=[ \t]+\S)", Keyword),
            (rf"(\.)({_NAME})", bygroups(Punctuation, Name.Attribute)),
            (words(tuple(EVERY_FAMILY), prefix=r"\b", suffix=r"\b"), Name.Class),
            (words((*BUILTINS, *_TEMPLATES), prefix=r"\b", suffix=r"\b(?=[ \t]*\()"), Name.Builtin),
            (words(tuple(COMBINATORS), prefix=r"\b", suffix=r"\b"), Name.Builtin),
            (rf"{_NAME}(?=[ \t]*=(?!=))", Name.Variable),
            (rf"{_NAME}(?=[ \t]*\()", Name.Function),
            (_NAME, Name),
            (r"->|<-|>>|\|-|⊢|[<>=!]=|[@+\-*/^<>=~|]", Operator),
            (r"#\[|[()\[\]{},:.]", Punctuation),
            (r".", Text),
        ]
    }
