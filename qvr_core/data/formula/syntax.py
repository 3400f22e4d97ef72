"""The text of a formula as a tree: R's operators, `~`, `|`, calls with keywords, names between backticks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from qvr_core.data.formula.problems import WrongFormula


@dataclass(frozen=True)
class Name:
    """A column, or `.` for all others."""

    text: str


@dataclass(frozen=True)
class Number:
    """A number: 0 and 1 are about the intercept where they stand alone."""

    value: float


@dataclass(frozen=True)
class Text:
    """A text in quotes: a level, the name of a coding."""

    value: str


@dataclass(frozen=True)
class Call:
    """`log(x)`, `s(x, k = 5)`: a function with arguments by place and by name."""

    name: str
    arguments: tuple[Node, ...]
    keywords: tuple[tuple[str, Node], ...] = ()

    def keyword(self, name: str) -> Node | None:
        """The argument of that name, None where there is none."""
        return dict(self.keywords).get(name)


@dataclass(frozen=True)
class Binary:
    """Two parts and R's operator between them."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Minus:
    """A part with a minus in front of it."""

    operand: Node


Node = Name | Number | Text | Call | Binary | Minus

WORD = r"(?:[^\W\d][\w.]*|\.(?![\d\w]))"
_TOKEN = re.compile(
    rf"""\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|`(?P<tick>[^`]*)`
    |(?P<text>"[^"]*"|'[^']*')|(?P<name>{WORD})|(?P<op>\|\||\*\*|==|!=|<=|>=|[-+*/^:|~(),;=<>]))""",
    re.VERBOSE,
)
# R's precedence; `^` binds to the right of all.
_STRENGTH = {
    **dict.fromkeys(("|", "||"), 1),
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), 2),
    **dict.fromkeys(("+", "-"), 3),
    **dict.fromkeys(("*", "/"), 4),
    ":": 5,
    **dict.fromkeys(("^", "**"), 7),
}
_MINUS = 6


def formulas(text: str, columns: Iterable[str]) -> list[tuple[Node, Node]]:
    """The sides of `outcome ~ predictors`, and of the formulas behind it: `y ~ x, sigma ~ z`.

    A column whose name is no word may stand there as it is, or between backticks.  Raises `WrongFormula`.
    """
    body = re.sub(r"^\s*(?:bf|brmsformula)\s*\((.*)\)\s*$", r"\1", text, flags=re.DOTALL)
    reader = _Reader(_tokens(_ticked(body, columns), text), text)
    found = [reader.formula()]
    while reader.take("op", ",") or reader.take("op", ";"):
        if reader.ended:
            break
        found.append(reader.formula())
    if not reader.ended:
        raise reader.wrong()
    return found


def _ticked(text: str, columns: Iterable[str]) -> str:
    """Backticks around the names of columns that are no words."""
    for column in sorted(columns, key=len, reverse=True):
        if not re.fullmatch(WORD, column) and re.search(r"\w\W|\W\w", column):
            parts = re.split(r"(`[^`]*`)", text)
            text = "".join(part if part.startswith("`") else part.replace(column, f"`{column}`") for part in parts)
    return text


def _tokens(text: str, whole: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise WrongFormula(f"`{text[at:].strip()[:1]}` in `{whole}` is no part of a formula")
        kind = match.lastgroup or ""
        found.append((kind, match[kind]))
        at = match.end()
    return found


@dataclass
class _Reader:
    tokens: list[tuple[str, str]]
    text: str
    at: int = field(default=0)

    @property
    def ended(self) -> bool:
        return self.at >= len(self.tokens)

    def wrong(self) -> WrongFormula:
        return WrongFormula(f"`{self.text}` is no formula: write `outcome ~ predictor + (1 | group)`")

    def take(self, kind: str, text: str) -> bool:
        if not self.ended and self.tokens[self.at] == (kind, text):
            self.at += 1
            return True
        return False

    def formula(self) -> tuple[Node, Node]:
        left = self.expression(0)
        if not self.take("op", "~"):
            raise self.wrong()
        return left, self.expression(0)

    def expression(self, least: int) -> Node:
        left = self.primary()
        while not self.ended and self.tokens[self.at][0] == "op":
            operator = self.tokens[self.at][1]
            strength = _STRENGTH.get(operator, 0)
            if not strength or strength < least:
                break
            self.at += 1
            right = self.expression(strength if strength == 7 else strength + 1)
            left = Binary("^" if operator == "**" else operator, left, right)
        return left

    def primary(self) -> Node:
        if self.ended:
            raise self.wrong()
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return Number(float(text))
        if kind == "text":
            return Text(text[1:-1])
        if kind in ("name", "tick"):
            return self.call(text) if kind == "name" and self.take("op", "(") else Name(text)
        if text == "(":
            inner = self.expression(0)
            if not self.take("op", ")"):
                raise self.wrong()
            return inner
        if text in "+-":
            operand = self.expression(_MINUS)
            return Minus(operand) if text == "-" else operand
        raise self.wrong()

    def call(self, name: str) -> Call:
        arguments, keywords = list[Node](), list[tuple[str, Node]]()
        while not self.take("op", ")"):
            if self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] == ("op", "="):
                key = self.tokens[self.at][1]
                self.at += 2
                keywords.append((key, self.expression(0)))
            else:
                arguments.append(self.expression(0))
            if not self.take("op", ",") and (self.ended or self.tokens[self.at] != ("op", ")")):
                raise self.wrong()
        return Call(name, tuple(arguments), tuple(keywords))


def written(node: Node) -> str:
    """A tree as it is written."""
    match node:
        case Name(text):
            return text if re.fullmatch(WORD, text) else f"`{text}`"
        case Number(value):
            return f"{value:g}"
        case Text(value):
            return f'"{value}"'
        case Minus(operand):
            return f"-{written(operand)}"
        case Binary(operator, left, right):
            tight = operator in ("^", ":", "/", "*")
            sides = [
                f"({written(side)})" if tight and _looser(side, operator) else written(side) for side in (left, right)
            ]
            shown = f"{sides[0]}{operator}{sides[1]}" if operator in ("^", ":", "/") else f" {operator} ".join(sides)
            return f"({shown})" if operator in ("|", "||") else shown
        case Call(name, arguments, keywords):
            inner = [*map(written, arguments), *(f"{key}={written(value)}" for key, value in keywords)]
            return f"{name}({', '.join(inner)})"


def _looser(side: Node, operator: str) -> bool:
    return isinstance(side, Binary) and _STRENGTH[side.operator] <= _STRENGTH[operator]


def names(node: Node) -> list[str]:
    """The columns that a tree speaks of, in their order."""
    match node:
        case Name(text):
            return [text] if text != "." else []
        case Minus(operand):
            return names(operand)
        case Binary(_, left, right):
            return [*names(left), *names(right)]
        case Call("C" | "factor" | "poly", (first, *_)):
            return names(first)
        case Call(_, arguments, keywords):
            spoken = [value for key, value in keywords if key in ("time", "gr", "by")]
            return [one for part in (*arguments, *spoken) for one in names(part)]
        case _:
            return []


def number(node: Node | None, default: float) -> float:
    """The number that an argument says."""
    match node:
        case Number(value):
            return value
        case Minus(Number(value)):
            return -value
        case _:
            return default
