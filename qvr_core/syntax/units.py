"""One unit of text -> a `Unit`: a tree node, or located problems in words.

`parse_unit` is cached by text: the same line is parsed once, wherever it stands and however often it moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, cast

from qvr_core.syntax import tree
from qvr_core.syntax.builder import ACTIONS
from qvr_core.syntax.expectations import JOINTS, after, literal_of, wanted
from qvr_core.syntax.lalr import Failure, Token, acceptable, reductions, run
from qvr_core.syntax.layout import ITEM_WORDS, STATEMENT_WORDS, STEP_WORDS
from qvr_core.syntax.lexer import CLOSERS, COMBINATORS, OPENERS, keyword_kinds, tokenize
from qvr_core.syntax.problems import problem
from qvr_core.syntax.tables import table
from qvr_core.syntax.tree import Name, Span, SyntaxProblem, Unit

KEYWORDS = {"statement": STATEMENT_WORDS, "step": STEP_WORDS, "deduction_item": ITEM_WORDS}
# Every layer walks the tree by recursion; deeper trees would break Python's stack.
DEEPEST = 100
NOUNS = {"statement": "statement", "step": "step", "deduction_item": "line of a deduction"}

_CLOSING = {kind: text for text, kind in CLOSERS.items()}


@lru_cache(maxsize=65536)
def parse_unit(start: str, text: str) -> Unit[Any]:
    """Parse a unit from a start symbol of the grammar.  Never raises, whatever the text."""
    tokens, problems = tokenize(text, start)
    first = tokens[0]
    keyword = first.text if first.kind != "STRING" else ""
    node: Any = None
    if start in KEYWORDS and keyword not in KEYWORDS[start]:
        found, keyword = _opener(tokens, start)
        if not problems:
            problems.append(found)
        if not keyword:
            return Unit(text, None, tuple(problems), first.text, ())
    # the string that runs to the end of the line has taken the closing brackets along
    unclosed = any(p.code == "unclosed-string" for p in problems)
    tokens = _balanced(tokens, [] if unclosed else problems)
    node, failure = _parse(tokens, start, problems)
    if failure is not None and not any(p.severity == "error" for p in problems):
        found, node = _explained(tokens, failure, start)
        problems.append(found)
    if len(tokens) > DEEPEST and _depth(node) > DEEPEST:
        problems.append(problem("too-deep", "this is nested too deeply; name parts of it", node.span))
        node = None
    problems += _warnings(tokens, node)
    names = _declared(node) if node is not None else _guessed(tokens, keyword)
    problems += _clashes(names, problems)
    problems.sort(key=lambda p: p.span)
    return Unit(text, node, tuple(problems), keyword, names)


def near_word(word: str, words: Sequence[str]) -> str:
    """The one of `words` that a misspelt word means, '' if it is like none."""
    near = get_close_matches(word, words, n=1, cutoff=0.7) if word not in words else [word]
    return near[0] if near else ""


# ---------------------------------------------------------------- recovery inside a unit


def _opener(tokens: list[Token], start: str) -> tuple[SyntaxProblem, str]:
    """The problem of a unit that starts with no keyword, and the keyword that was meant ('' if none is near)."""
    first = tokens[0]
    span = Span(first.start, first.end)
    meant = near_word(first.text, KEYWORDS[start])
    if meant:
        tokens[0] = first._replace(kind=table().literals[meant], text=meant)
        fix = (f"Replace it with `{meant}`", ((span, meant),))
        message = f"`{first.text}` is no {NOUNS[start]}; did you mean `{meant}`?"
        return problem("unknown-statement", message, span, fix), meant
    if start == "step" and first.kind == "NAME" and tokens[1].kind in ("EQUAL", "DRAW", "DRAW_EXPR", "TILDE"):
        meant = "let" if tokens[1].kind == "EQUAL" else "sample"
        at = first.start
        tokens.insert(0, Token(meant.upper(), meant, at, at))
        fix = (f"Write `{meant} {first.text}`", ((Span(at, at), f"{meant} "),))
        message = f"a step starts with a word that says what it does, such as `{meant}`"
        return problem("unknown-statement", message, span, fix), meant
    if start == "statement" and first.text in STEP_WORDS:
        message = f"`{first.text}` is a step and stands in the body of a program"
        return problem("misplaced-step", message, span), ""
    listed = ", ".join([f"`{word}`" for word in KEYWORDS[start]])
    return problem("unknown-statement", f"a {NOUNS[start]} starts with one of {listed}", span), ""


def _balanced(tokens: list[Token], problems: list[SyntaxProblem]) -> list[Token]:
    """Tokens with every bracket closed: what is missing is put in, what closes nothing is left out, with a problem."""
    open_: list[Token] = []
    result: list[Token] = []

    def close_unclosed(place: int) -> None:
        opener = open_.pop()
        closing = OPENERS[opener.kind]
        message = f"this `{opener.text}` is never closed"
        problems.append(problem("unclosed-bracket", message, Span(opener.start, opener.end)))
        result.append(Token(CLOSERS[closing], closing, place, place))

    for token in tokens:
        if token.kind in OPENERS:
            open_.append(token)
        elif token.kind in _CLOSING:
            if not any(OPENERS[opener.kind] == token.text for opener in open_):
                problems.append(_unmatched(token, open_[-1] if open_ else None))
                if not open_:
                    continue
                closing = OPENERS[open_.pop().kind]
                result.append(Token(CLOSERS[closing], closing, token.start, token.end))
                continue
            while OPENERS[open_[-1].kind] != token.text:
                close_unclosed(token.start)
            open_.pop()
        elif token.kind == "$END":
            while open_:
                close_unclosed(token.start)
        result.append(token)
    return result


def _unmatched(token: Token, opener: Token | None) -> SyntaxProblem:
    span = Span(token.start, token.end)
    if opener is None:
        return problem("unmatched-bracket", f"this `{token.text}` closes nothing", span, ("Remove it", ((span, ""),)))
    meant = OPENERS[opener.kind]
    fix = (f"Replace it with `{meant}`", ((span, meant),))
    return problem("unmatched-bracket", f"`{token.text}` cannot close `{opener.text}`", span, fix)


def _parse(tokens: list[Token], start: str, problems: list[SyntaxProblem]) -> tuple[Any, Failure | None]:
    """Run the parser; a keyword where only a name fits is read as that name, with a problem."""
    clashes: list[SyntaxProblem] = []
    keywords = keyword_kinds()
    while True:
        result = run(table(), ACTIONS, tokens, start)
        if not isinstance(result, Failure):
            problems += clashes
            return result, None
        token = tokens[result.position]
        if token.text not in keywords or reductions(table(), result.states, "NAME") is None:
            if clashes:
                problems.append(clashes[0])
            return None, result
        message = f"`{token.text}` is a reserved word and cannot be used as a name"
        clashes.append(problem("reserved-name", message, Span(token.start, token.end)))
        tokens[result.position] = token._replace(kind="NAME")


def _explained(tokens: list[Token], failure: Failure, start: str) -> tuple[SyntaxProblem, Any]:
    """The problem at the offending token, and the node that the repair of one token gives, if there is just one."""
    grammar = table()
    at = failure.position
    token = tokens[at]
    previous = tokens[at - 1] if at else None
    what, signs = wanted(grammar, failure.states)
    place = after(grammar, failure.states, signs[-1] if signs else None, previous)
    at_end = token.kind == "$END"
    span = Span(previous.start, previous.end) if at_end and previous else Span(token.start, token.end)
    fix, node = _repaired(tokens, failure, signs, start)
    if token.kind == "UNDERSCORE":
        return problem("syntax-error", "`_` stands for an open size or a dropped name, nothing else", span), node
    rest = Span(token.start, tokens[-1].start)
    if _looks_like_option(tokens, failure):
        return problem("syntax-error", "options stand in brackets: `[key=value]`", span, _wrapped(rest, "[]")), node
    if tokens[0].kind == "RETURN" and at > 1 and tokens[1].kind != "LPAR":
        if token.kind == "COMMA":
            fix = _wrapped(Span(tokens[1].start, rest.end), "()")
            return problem("syntax-error", "several values are returned in parentheses", span, fix), None
        return problem("syntax-error", "`return` takes a name: give the expression one with `let`", span), None
    if start == "lexicon_entry" and at == 0 and token.kind == "NAME":
        quoted = [Token("STRING", f'"{token.text}"', *span), *tokens[1:]]
        fix = _wrapped(span, '""')
        return problem("syntax-error", "a word of a lexicon stands in quotes", span, fix), _quietly(quoted, start)
    if what:
        found = "" if at_end else f", not {_shown(token)}"
        return problem("syntax-error", f"expected {what}{place}{found}", span, fix), node
    message = f"{_shown(token)} is not expected{place}"
    if token.kind == "NAME" and "COMPOSE" in acceptable(grammar, failure.states):
        return problem("syntax-error", f"{message}; `>>` and `@` join arrows", span), None
    return problem("syntax-error", message, span, fix), node


def _wrapped(span: Span, brackets: str) -> tuple[str, tuple[tuple[Span, str], ...]]:
    """The fix that puts signs around a span."""
    before, after_it = brackets
    named = {"[": "brackets", "(": "parentheses", '"': "quotes"}[before]
    around = ((Span(span.start, span.start), before), (Span(span.end, span.end), after_it))
    return f"Put it in {named}", around


def _looks_like_option(tokens: list[Token], failure: Failure) -> bool:
    at = failure.position
    follows = at + 1 < len(tokens) and tokens[at].kind == "NAME" and tokens[at + 1].kind == "EQUAL"
    return follows and "LSQB" in acceptable(table(), failure.states) and "$END" in acceptable(table(), failure.states)


def _repaired(
    tokens: list[Token], failure: Failure, signs: tuple[str, ...], start: str
) -> tuple[tuple[str, tuple[tuple[Span, str], ...]] | None, Any]:
    """The one repair of one token that makes sense of the unit: a sign put in its place or before it, or it removed."""
    grammar = table()
    at = failure.position
    token = tokens[at]
    span = Span(token.start, token.end)
    found = _replacements(tokens, at, failure, start) if _is_sign(token) else []
    near = [r for r in found if r[0].startswith(token.text)] or [r for r in found if grammar.literals[r[0]] in signs]
    near = sorted(near or found, key=lambda r: grammar.literals[r[0]] not in JOINTS)
    if len(near) == 1 or (near and grammar.literals[near[0][0]] in JOINTS):
        literal, node = near[0]
        return (f"Replace it with `{literal}`", ((span, literal),)), node
    inserted = [
        (literal_of(grammar, kind), node)
        for kind in signs
        if at and (node := _with(tokens, at, at, kind, start)) is not None
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
    return not token.text[:1].isalnum() and token.kind not in ("$END", "STRING", "UNDERSCORE")


def _replacements(tokens: list[Token], at: int, failure: Failure, start: str) -> list[tuple[str, Any]]:
    """The signs that make sense of the unit in place of the token at `at`, each with the node it gives."""
    grammar = table()
    return [
        (literal, node)
        for kind in sorted(acceptable(grammar, failure.states))
        if (literal := literal_of(grammar, kind)) and not literal.isalpha()
        if (node := _with(tokens, at, at + 1, kind, start)) is not None
    ]


def _with(tokens: list[Token], first: int, last: int, kind: str, start: str) -> Any:
    """The node of the unit with the tokens `first` … `last` replaced by one of that kind; None where there is none."""
    place = tokens[first].start
    end = tokens[last].start if last == first else tokens[last - 1].end
    token = Token(kind, literal_of(table(), kind), place, end)
    return _quietly([*tokens[:first], token, *tokens[last:]], start)


def _quietly(tokens: list[Token], start: str) -> Any:
    result = run(table(), ACTIONS, tokens, start)
    return None if isinstance(result, Failure) else result


def _shown(token: Token) -> str:
    if token.kind == "$END":
        return "the end of the line"
    return f"`{token.text}`" if len(token.text) < 40 else f"`{token.text[:37]}…`"


def _depth(node: Any) -> int:
    """How many nodes stand inside each other."""
    deepest = 0
    pending: list[tuple[Any, int]] = [(node, 0)]
    while pending:
        found, depth = pending.pop()
        deepest = max(deepest, depth)
        if isinstance(found, tuple):
            pending += [(item, depth) for item in cast(tuple[Any, ...], found)]
        elif is_dataclass(found):
            pending += [(getattr(found, field.name), depth + 1) for field in fields(found)]
    return deepest


# ---------------------------------------------------------------- what a unit declares


def _declared(node: Any) -> tuple[Name, ...]:
    """The names that a node binds."""
    match node:
        case tree.ObjectDecl(names=names) | tree.MorphismDecl(names=names) | tree.AtomsItem(names=names):
            return names
        case tree.SampleStep(pattern=pattern) | tree.LetStep(pattern=pattern):
            return tuple([name for name in pattern.names if name.text != "_"])
        case (
            tree.LetDecl(name=name)
            | tree.ProgramHeader(name=name)
            | tree.CompositionHeader(name=name)
            | tree.DeductionHeader(name=name)
            | tree.ObserveStep(name=name)
            | tree.MarginalizeStep(name=name)
            | tree.ScoreStep(name=name)
            | tree.RuleItem(name=name)
            | tree.CompositionRule(name=name)
        ):
            return (name,)
        case _:
            return ()


def _guessed(tokens: list[Token], keyword: str) -> tuple[Name, ...]:
    """The names that a damaged line seems to declare: those between its keyword and the first sign of another part."""
    if keyword in ("export", "return", "lexicon", "") or len(tokens) < 2:
        return ()
    found: list[Name] = []
    many = keyword in ("object", "morphism", "atoms", "binders") or tokens[1].kind in ("LPAR", "LSQB")
    for token in tokens[1:]:
        if token.kind == "NAME":
            if found and tokens[tokens.index(token) - 1].kind == "NAME":
                break
            found.append(Name(token.text, Span(token.start, token.end)))
            if not many:
                break
        elif token.kind not in ("COMMA", "LPAR", "LSQB", "UNDERSCORE"):
            break
    return tuple(found)


def _clashes(names: tuple[Name, ...], problems: list[SyntaxProblem]) -> list[SyntaxProblem]:
    """Declared names that combinators have taken."""
    seen = {p.span for p in problems}
    return [
        problem("reserved-name", f"`{name.text}` is a combinator and cannot be used as a name", name.span)
        for name in names
        if name.text in COMBINATORS and name.span not in seen
    ]


def _warnings(tokens: list[Token], node: Any) -> list[SyntaxProblem]:
    """The hint at a colon that ends a header."""
    if node is None or len(tokens) < 3 or tokens[-2].kind != "COLON":
        return []
    span = Span(tokens[-2].start, tokens[-2].end)
    fix = ("Remove the colon", ((span, ""),))
    return [problem("header-colon", "a header needs no colon at its end", span, fix)]
