"""Damaged units: what was meant, how to say what is wrong, and the one small repair that makes sense of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from qvr_core.syntax.grammar import grammar
from qvr_core.syntax.lexer import CLOSERS, OPENERS, tokenize
from qvr_core.syntax.mistakes.expectations import JOINTS, after, literal_of, wanted
from qvr_core.syntax.mistakes.frequent import mistake_at
from qvr_core.syntax.mistakes.place import Place
from qvr_core.syntax.parser import Failure, accepted, parse
from qvr_core.syntax.problems import problem
from qvr_core.syntax.tokens import Token
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import SyntaxProblem

_CLOSING = {kind: text for text, kind in CLOSERS.items()}
_JOINING = frozenset({"COMPOSE", "AT", "PLUS", "MINUS", "STAR", "SLASH", "CARET", "COMPARISON", "TILDE", "LSQB"})


# ---------------------------------------------------------------- recovery inside a unit


def balanced(tokens: list[Token], problems: list[SyntaxProblem]) -> tuple[list[Token], bool]:
    """Tokens with every bracket closed: what is missing is put in, what closes nothing is left out, with a problem.

    Also says whether the tree of these tokens can be trusted: not where it is open how far a bracket was to reach.
    """
    sure = True
    open_: list[tuple[Token, int]] = []
    waiting: Counter[str] = Counter()
    result: list[Token] = []
    found: list[SyntaxProblem] = []
    joined = max((index for index, token in enumerate(tokens) if token.kind in _JOINING), default=-1)

    def closed() -> Token:
        opener, _ = open_.pop()
        waiting[OPENERS[opener.kind]] -= 1
        return opener

    def close_unclosed(place: int, obvious: bool = False) -> None:
        opener = closed()
        closing = OPENERS[opener.kind]
        message = f"this `{opener.text}` is never closed"
        fix = ("Close it at the end of the line", ((Span(place, place), closing),)) if obvious else None
        found.append(problem("unclosed-bracket", message, Span(opener.start, opener.end), fix))
        result.append(Token(CLOSERS[closing], closing, place, place))

    for index, token in enumerate(tokens):
        if token.kind in OPENERS:
            open_.append((token, index))
            waiting[OPENERS[token.kind]] += 1
        elif token.kind in _CLOSING:
            if not waiting[token.text]:
                stray = not open_ or _closes(islice(tokens, index + 1, None), open_)
                found.append(_unmatched(token, None if stray else open_[-1][0]))
                if stray:
                    sure = False
                    continue
                closing = OPENERS[closed().kind]
                result.append(Token(CLOSERS[closing], closing, token.start, token.end))
                continue
            while OPENERS[open_[-1][0].kind] != token.text:
                close_unclosed(token.start)
            closed()
        elif token.kind == "$END":
            while open_:
                sure = sure and joined < open_[-1][1]
                close_unclosed(token.start, sure and len(open_) == 1)
        result.append(token)
    problems.extend(_summed(found))
    return result, sure


def _closes(rest: Iterable[Token], open_: Sequence[tuple[Token, int]]) -> bool:
    """Whether what follows closes every open bracket by itself."""
    stack: list[str] = []
    outer = len(open_)
    for token in rest:
        if token.kind in OPENERS:
            stack.append(token.kind)
        elif token.kind in _CLOSING:
            if not stack:
                outer -= 1
            opener = stack.pop() if stack else open_[outer][0].kind if outer >= 0 else ""
            if OPENERS.get(opener) != token.text:
                return False
    return not stack and outer == 0


MOST_BRACKETS = 8
"""Brackets of one piece of text that are told one by one."""


def _summed(found: list[SyntaxProblem]) -> list[SyntaxProblem]:
    """The problems; of many brackets only the first, with their number."""
    told: list[SyntaxProblem] = []
    for code, fault in (("unclosed-bracket", "are never closed"), ("unmatched-bracket", "close nothing")):
        same = [one for one in found if one.code == code]
        if len(same) > MOST_BRACKETS:
            first = min(one.span for one in same)
            same = [problem(code, f"from here on, {len(same):,} brackets {fault}", first)]
        told += same
    return told


def _unmatched(token: Token, opener: Token | None) -> SyntaxProblem:
    span = Span(token.start, token.end)
    if opener is None:
        return problem("unmatched-bracket", f"this `{token.text}` closes nothing", span, ("Remove it", ((span, ""),)))
    meant = OPENERS[opener.kind]
    fix = (f"Replace it with `{meant}`", ((span, meant),))
    return problem("unmatched-bracket", f"`{token.text}` cannot close `{opener.text}`", span, fix)


def explained(text: str, failure: Failure) -> tuple[SyntaxProblem, Any]:
    """The problem at the offending token, and the node that the one small repair gives, if there is one."""
    tokens, at, start = list(failure.tokens), failure.position, failure.start
    token = tokens[at]
    reader = failure.reader()
    expected = accepted(reader)
    mistake = mistake_at(Place(tokens, at, expected, start))
    if mistake is not None:
        fix = (mistake.title, mistake.edits) if mistake.title else None
        # What a `return` of several values should be may be wrong in other ways as well; one thing at a time.
        node = _edited(text, mistake.read_as or mistake.edits, start) if tokens[0].kind != "RETURN" else None
        return problem("syntax-error", mistake.message, mistake.span, fix), node
    previous = tokens[at - 1] if at else None
    what, signs = wanted(reader, expected)
    place = after(reader, signs[-1] if signs else None, previous)
    at_end = token.kind == "$END"
    span = Span(previous.start, previous.end) if at_end and previous else Span(token.start, token.end)
    fix, node = _repaired(tokens, at, expected, signs, start)
    if what:
        found = "" if at_end else f", not {_shown(token)}"
        return problem("syntax-error", f"expected {what}{place}{found}", span, fix), node
    message = f"{_shown(token)} is not expected{place}"
    if "COMPOSE" in expected and not at_end:
        message += "; `>>` and `@` join arrows"
        fix, node = (fix, node) if _is_sign(token) else (None, None)
    return problem("syntax-error", message, span, fix), node


def _edited(text: str, edits: tuple[tuple[Span, str], ...], start: str) -> Any:
    """The node that a unit gives after edits; its spans count in the text as it is.  None where it gives none."""
    if not edits:
        return None
    fixed = text
    for span, new in sorted(edits, reverse=True):
        fixed = fixed[: span.start] + new + fixed[span.end :]
    tokens, problems = tokenize(fixed, start)
    if problems:
        return None
    return _quietly([_put_back(token, edits) for token in tokens], start)


def _put_back(token: Token, edits: tuple[tuple[Span, str], ...]) -> Token:
    """A token of the fixed text at its place in the text as it was."""

    def place(position: int) -> int:
        shift = 0
        for span, new in sorted(edits):
            if span.start + shift + len(new) > position:
                return min(position - shift, span.end) if span.start + shift <= position else position - shift
            shift += len(new) - (span.end - span.start)
        return position - shift

    begin = place(token.start)
    return token.placed(begin, max(place(token.end - 1) + 1, begin))


def _repaired(
    tokens: list[Token], at: int, expected: frozenset[str], signs: tuple[str, ...], start: str
) -> tuple[tuple[str, tuple[tuple[Span, str], ...]] | None, Any]:
    """The one repair of one token that makes sense of the unit: a sign put in its place or before it, or it removed."""
    literals = grammar().literals
    token = tokens[at]
    span = Span(token.start, token.end)
    found = _replacements(tokens, at, expected, start) if _is_sign(token) else []
    near = [r for r in found if r[0].startswith(token.text)] or [r for r in found if literals[r[0]] in signs]
    near = sorted(near or found, key=lambda r: literals[r[0]] not in JOINTS)
    if len(near) == 1 or (near and literals[near[0][0]] in JOINTS):
        literal, node = near[0]
        return (f"Replace it with `{literal}`", ((span, literal),)), node
    inserted = [
        (literal_of(kind), node) for kind in signs if at and (node := _with(tokens, at, at, kind, start)) is not None
    ]
    if len(inserted) == 1:
        literal, node = inserted[0]
        end = tokens[at - 1].end
        return (f"Insert `{literal}`", ((Span(end, end), literal if literal == "," else f" {literal}"),)), node
    if token.kind != "$END" and not signs:
        node = _quietly([*tokens[:at], *tokens[at + 1 :]], start)
        if node is not None:
            return ("Remove it", ((span, ""),)), node if _is_sign(token) else None
    return None, None


def _is_sign(token: Token) -> bool:
    return not token.text[:1].isalnum() and token.kind not in ("$END", "STRING", "UNDERSCORE", "COMMA")


def _replacements(tokens: list[Token], at: int, expected: frozenset[str], start: str) -> list[tuple[str, Any]]:
    """The signs that make sense of the unit in place of the token at `at`, each with the node it gives."""
    return [
        (literal, node)
        for kind in sorted(expected)
        if (literal := literal_of(kind)) and not literal.isalpha() and kind != "COMMA"
        if (node := _with(tokens, at, at + 1, kind, start)) is not None
    ]


def _with(tokens: list[Token], first: int, last: int, kind: str, start: str) -> Any:
    """The node of the unit with the tokens `first` … `last` replaced by one of that kind; None where there is none."""
    place = tokens[first].start
    end = tokens[last].start if last == first else tokens[last - 1].end
    token = Token(kind, literal_of(kind), place, end)
    return _quietly([*tokens[:first], token, *tokens[last:]], start)


def _quietly(tokens: list[Token], start: str) -> Any:
    result = parse(tokens, start)
    return None if isinstance(result, Failure) else result


def _shown(token: Token) -> str:
    if token.kind == "$END":
        return "the end of the line"
    return f"`{token.text}`" if len(token.text) < 40 else f"`{token.text[:37]}…`"
