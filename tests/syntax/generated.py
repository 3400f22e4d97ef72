"""Random sentences of the grammar: every production of `grammar.lark` is walked by the tests that use them."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from qvr_core.syntax.grammar import compiled_grammar

WORDS = ("a", "b", "f", "g", "h2", "theta", "x_1", "Token", "Hidden", "K", "probs")
TEXTS = {
    "NAME": WORDS,
    "UNDERSCORE": ("_",),
    "INT": ("0", "1", "3", "64"),
    "FLOAT": ("0.5", ".5", "5.", "1e-3", "2.5E+10"),
    "STRING": ('"words"', '""', '"a \\"b\\" # c"', '"é"'),
    "SPACE": ("Real", "Simplex", "Ordered", "CholeskyFactor", "Covariance", "Correlation"),
    "COMPARISON": ("<", "<=", ">", ">=", "==", "!="),
    "DRAW_EXPR": ("<-",),
    "ATTRIBUTES": ("#[",),
    "OPTIONS": ("[",),
    "NAT": ("Nat",),
    "TURNSTILE": ("|-", "⊢"),
}


@cache
def _rules() -> tuple[dict[str, list[list[Any]]], dict[str, str]]:
    compiled = compiled_grammar()
    rules: dict[str, list[list[Any]]] = {}
    for rule in compiled.rules:
        rules.setdefault(rule.origin.name, []).append(rule.expansion)
    for expansions in rules.values():
        expansions.sort(key=len)
    return rules, {t.name: t.pattern.value for t in compiled.terminals if t.pattern.type == "str"}


def sentence(source: random.Random, start: str, budget: int = 40) -> str:
    """A random text that the grammar derives from `start`, with random blanks."""
    rules, literals = _rules()
    words: list[str] = []

    def expand(rule: str, depth: int) -> None:
        if rule == "bounds":
            words.append(
                source.choice(("[low=0.0]", "[low = -1, high=2.5]", "[high=1.0,]", "[low=a[i] + 1, high= f(b,c)]"))
            )
            return
        if rule == "start_options":
            words.append(source.choice(("[noncentred=true]", "[keep = [a, b], c]", "[a=N(0.0, s=1),]")))
            return
        if rule == "kind":
            words.append(source.choice(("FinSet", "Real", "Nat", "Object", "Mor[A, B,]")))
            return
        options = rules[rule]
        # Deep down only the shallowest productions, so that every sentence ends.
        if depth > 12 or len(words) > budget:
            least = min(map(_depth, options))
            options = [option for option in options if _depth(option) == least]
        for part in source.choice(options):
            if part.is_term:
                choices = TEXTS.get(part.name)
                words.append(source.choice(choices) if choices else literals[part.name])
            else:
                expand(part.name, depth + 1)

    expand(start, 0)
    return _joined(source, words)


@cache
def _depths() -> dict[str, int]:
    """How deep the shallowest derivation of each rule is."""
    rules, _ = _rules()
    depths = dict.fromkeys(rules, 99)
    for _ in rules:
        for rule, expansions in rules.items():
            depths[rule] = min(1 + max([depths[s.name] for s in e if not s.is_term], default=0) for e in expansions)
    return depths


def _depth(expansion: list[Any]) -> int:
    return max([_depths()[s.name] for s in expansion if not s.is_term], default=0)


def _joined(source: random.Random, words: list[str]) -> str:
    text = ""
    for word in words:
        touching = text[-1:].isalnum() or text[-1:] in "_." or word[0] in "._" or word[0].isalnum()
        glue = " " if touching or source.random() < 0.7 else ""
        # Signs that would melt into another sign keep their distance.
        if text[-1:] in "-<>|=!#" or word[0] in "-<>|=[":
            glue = " "
        text += glue + word if text else word
    return text
