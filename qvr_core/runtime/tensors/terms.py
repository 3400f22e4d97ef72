"""Ground terms as users write them at run time (`chart.weight("span(0, 2, S)")`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from qvr_core.runtime.values.errors import InputProblem
from qvr_core.semantics.deductions.terms import Term

_TOKEN = re.compile(r"\s*([A-Za-z_#][A-Za-z0-9_]*|[0-9]+|[(),])")


def read(text: str, binders: Collection[str]) -> Term:
    """A ground term from its text.  Raises `InputProblem` where it is none."""
    tokens: list[str] = []
    position = 0
    while position < len(text.rstrip()):
        found = _TOKEN.match(text, position)
        if found is None:
            raise InputProblem(f"`{text}` is not a term: unexpected `{text[position:].strip()[:1]}`")
        tokens.append(found.group(1))
        position = found.end()
    term, rest = _read(tokens, 0, binders, {}, text)
    if rest != len(tokens):
        raise InputProblem(f"`{text}` is not one term")
    return term


def _read(
    tokens: list[str], at: int, binders: Collection[str], bound: Mapping[str, str], text: str
) -> tuple[Term, int]:
    if at >= len(tokens) or tokens[at] in "(),":
        raise InputProblem(f"`{text}` is not a term")
    head = tokens[at]
    if at + 1 >= len(tokens) or tokens[at + 1] != "(":
        return (int(head) if head.isdigit() else bound.get(head, head)), at + 1
    at += 2
    if head in binders and at < len(tokens):
        bound = {**bound, tokens[at]: f"#{len(bound)}"}
    args: list[Term] = []
    while at < len(tokens) and tokens[at] != ")":
        if tokens[at] == ",":
            at += 1
            continue
        arg, at = _read(tokens, at, binders, bound, text)
        args.append(arg)
    if at >= len(tokens):
        raise InputProblem(f"`{text}` lacks a `)`")
    return (head, *args), at + 1
