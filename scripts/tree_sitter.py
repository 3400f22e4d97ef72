"""Make the tree-sitter grammar from `grammar.lark` and the tables of words: `python -m scripts.tree_sitter`.

Writes tree-sitter-qvr/rules.js, src/words.h and the marked lists of queries/highlights.scm.  Where the program
`tree-sitter` is on the path, or named by TREE_SITTER, the parser is generated too.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import lark
from lark import Lark, Token, Tree

from qvr_core.semantics.language.options import FLAGS
from qvr_core.syntax.cutter import BLOCKS, MISPLACED
from qvr_core.syntax.grammar import GRAMMAR
from qvr_core.syntax.layout import ITEM_WORDS, NEVER_CHAINED, STATEMENT_WORDS, STEP_WORDS, UNRESERVED
from qvr_core.syntax.lexer import COMBINATORS, CONTEXTUAL, METHODS, SPACES, keyword_kinds
from qvr_core.syntax.mistakes.openers import ELSEWHERE_CALLED, LOOPS
from scripts.vocabulary import VOCABULARY, between

FOLDER = Path(__file__).resolve().parents[1] / "tree-sitter-qvr"
RULES = FOLDER / "rules.js"
WORDS = FOLDER / "src" / "words.h"
HIGHLIGHTS = FOLDER / "queries" / "highlights.scm"
DIGEST = FOLDER / "src" / "made_from.sha256"

# ---------------------------------------------------------------- the rules

TOKENS = {
    "NAME": "$.name",
    "INT": "$.integer",
    "FLOAT": "$.float",
    "STRING": "$.string",
    "UNDERSCORE": '"_"',
    "SPACE": "$.space_name",
    "COMPARISON": 'choice("<", "<=", ">", ">=", "==", "!=")',
    "TURNSTILE": 'choice("|-", "⊢")',
    "BOUNDS": 'alias($._bounds_bracket, "[")',
    "DRAW_EXPR": 'alias($._expression_arrow, "<-")',
    "OPTIONS": 'alias($._options_bracket, "[")',
    "NAT": "$.name",
    "DATA_TYPE": 'seq("data", "type")',
    "ATTRIBUTES": 'alias($._attributes_bracket, "#[")',
}
"""What `lexer.py` makes of a text; the other terminals are their own text."""

SOFT = {"primary": ("factor",), "arith_arg": ("factor",), "return_item": ("factor", "in")}
"""Words that are names too where these rules ask for one, though their place could make them special."""
FREE = ("term", "rule_item", "atoms_item", "free_names")
"""Rules whose names may be any words, as all are in a deduction; `free_names` are the `names` in them."""
GREEDY = ("arith", "sum", "product_", "unary", "power", "apply", "primary", "factor_body")
"""Rules that take as much as they can, as LALR tables do: the value of `x -> x + 1` is all that follows."""
NAMED = ("_decl", "_header", "_step", "_rule", "_item", "parameter")
"""Ends of the names of rules whose first name is the field `name`."""


class Rules:
    """The rules of `grammar.lark` in the words of tree-sitter.

    A rule `?r`, or one with aliases, becomes the hidden rule `_r`: each alternative with an alias is a node of that
    name, and one without is a node `r`, or none in `?r`.
    """

    def __init__(self, text: str) -> None:
        reader = Lark.open(str(Path(lark.__file__).parent / "grammars" / "lark.lark"), parser="lalr")
        self.literals: dict[str, str] = {}
        self.rules: dict[str, tuple[bool, list[Tree[Token]]]] = {}
        for item in reader.parse(text).children:
            assert isinstance(item, Tree)
            names = [str(child) for child in item.children if isinstance(child, Token)]
            if item.data == "token":
                self.literals[names[0]] = str(next(iter(item.find_data("literal"))).children[0])
            elif item.data == "rule":
                self.rules[names[-1].lstrip("?")] = (names[0].startswith("?"), list(_alternatives(item.children[-1])))
        aliases = [_alias(one) for _, alternatives in self.rules.values() for one in alternatives]
        self.shared = {alias for alias, count in Counter(aliases).items() if alias and count > 1}
        self.hidden = {
            name
            for name, (inlined, alternatives) in self.rules.items()
            if inlined or any(_alias(one) for one in alternatives)
        }

    def made(self) -> Iterator[tuple[str, str]]:
        """Each rule with its body."""
        yield "_free_names", self.choice([self.expansion(one, "free_names") for one in self.rules["names"][1]])
        for name, rule, body in self.bodies():
            yield name, f"prec.right({body})" if rule in GREEDY else body

    def bodies(self) -> Iterator[tuple[str, str, str]]:
        """Each rule with the rule of `grammar.lark` that it comes from, and its body."""
        for name, (inlined, alternatives) in self.rules.items():
            if name not in self.hidden:
                yield name, name, self.choice([self.expansion(one, name) for one in alternatives])
                continue
            bodies: list[str] = []
            plain: list[str] = []
            for one in alternatives:
                alias = _alias(one)
                if not alias:
                    plain.append(self.expansion(one, name))
                elif self.expansion(one, name) == f"$.{alias}":
                    bodies.append(f"$.{alias}")
                elif alias in self.shared:
                    yield f"_{name}_{alias}", name, self.expansion(one, name)
                    bodies.append(f"alias($._{name}_{alias}, $.{alias})")
                else:
                    yield alias, name, self.expansion(one, name)
                    bodies.append(f"$.{alias}")
            if plain and not inlined:
                yield name, name, self.choice(plain)
                plain = [f"$.{name}"]
            yield f"_{name}", name, self.choice(plain + bodies)

    def choice(self, bodies: list[str]) -> str:
        return bodies[0] if len(bodies) == 1 else f"choice({', '.join(bodies)})"

    def expansion(self, alternative: Tree[Token], rule: str) -> str:
        """One alternative; the first name of a declaration is its field `name`."""
        inner: Any = alternative.children[0]
        parts = [self.item(part, rule) for part in (inner.children if inner.data == "expansion" else [inner])]
        name = self.symbol("NAME", rule)
        if rule.endswith(NAMED) and name in parts:
            parts[parts.index(name)] = f'field("name", {name})'
        return parts[0] if len(parts) == 1 else f"seq({', '.join(parts)})"

    def item(self, node: Any, rule: str) -> str:
        kind, operator = node.children[0], next((str(c) for c in node.children[1:] if c is not None), "")
        if kind.data == "name":
            body = self.symbol(str(kind.children[0]), rule)
        elif kind.data == "literal":
            body = json.dumps(json.loads(str(kind.children[0])))
        else:
            body = self.choice([self.expansion(one, rule) for one in _alternatives(kind)])
        wrapper = {"*": "repeat", "+": "repeat1", "?": "optional", "": ""}[operator]
        return f"{wrapper}({body})" if wrapper else body

    def symbol(self, name: str, rule: str) -> str:
        if name == "NAME" and rule in FREE:
            return 'reserved("free", $.name)'
        if name == "names" and rule in FREE:
            return "alias($._free_names, $.names)"
        if name == "NAME" and rule in SOFT:
            return f"choice($.name, {', '.join(f'alias({json.dumps(word)}, $.name)' for word in SOFT[rule])})"
        if name in TOKENS:
            return TOKENS[name]
        if name in self.literals:
            return str(self.literals[name])
        return f"$._{name}" if name in self.hidden else f"$.{name}"


def _alternatives(node: Any) -> Iterator[Tree[Token]]:
    """The alternatives of an expansion, each an `alias` node of lark."""
    if node.data == "alias":
        yield node
    else:
        for child in node.children:
            yield from _alternatives(child)


def _alias(node: Tree[Token]) -> str:
    return str(node.children[1] or "").rstrip("_") if len(node.children) > 1 else ""


def rules(_: str = "") -> str:
    """The text of rules.js."""
    reserved = sorted([*keyword_kinds(), "_"])
    lines = [
        "// Made from qvr_core/syntax/grammar.lark by `python -m scripts.tree_sitter`.",
        "/** Words that are never names. */",
        f"const words = {json.dumps(reserved)};",
        "/** Words that are keywords where their place makes them so. */",
        f"const contextual = {json.dumps(sorted(CONTEXTUAL))};",
        "",
        "/** What a line may say. */",
        "const rules = {",
        f"  space_name: $ => choice({', '.join(map(json.dumps, SPACES))}),",
    ]
    lines += [f"  {name}: $ => {body}," for name, body in Rules(GRAMMAR.read_text(encoding="utf-8")).made()]
    return "\n".join([*lines, "};", "", "module.exports = {words, contextual, rules};", ""])


# ---------------------------------------------------------------- the words of the scanner

FOLLOWS = {
    "data": "A_NAME_AND_LIST",
    "param": "A_NAME_AND_LIST",
    "predict": "A_NAME_AND_DRAW",
    "def": "A_NAME_AND_PARENTHESIS",
    "family": "A_NAME_AND_PARENTHESIS",
    "transformation": "A_NAME_AND_LIST",
    "encoder": "A_NAME_AND_LIST",
    "decoder": "A_NAME_AND_LIST",
    "import": "A_STRING",
    "from": "A_STRING_AND_IMPORT",
}
"""The patterns of `UNRESERVED` in layout.py, by the names that scanner.c gives them."""

CLASSES: Mapping[str, Iterable[str]] = {
    "STATEMENT": STATEMENT_WORDS,
    "STEP": STEP_WORDS,
    "ITEM": ITEM_WORDS,
    "UNRESERVED": UNRESERVED,
    "NEVER_CHAINED": NEVER_CHAINED,
    "MISPLACED": MISPLACED,
}
KINDS = ("NO_STATEMENT", "STATEMENT_ONLY", "PROGRAM", "DEDUCTION", "COMPOSITION", "FAMILY", "UNKNOWN")
LISTS: Mapping[str, Iterable[str]] = {
    "COMBINATORS": sorted(COMBINATORS),
    "METHODS": sorted(METHODS),
    "STEP_KEYS": FLAGS,
    "BOUND_WORDS": ("low", "high"),
    "LOOPS": LOOPS,
}


def words(_: str = "") -> str:
    """The text of src/words.h."""
    lines = [
        "/* The words of the language that layout depends on.  Made by `python -m scripts.tree_sitter`. */",
        f"enum {{ {', '.join(f'{name} = {1 << i}' for i, name in enumerate(CLASSES))} }};",
        f"enum {{ NOTHING_SPECIAL, {', '.join(dict.fromkeys(FOLLOWS.values()))} }};",
        f"enum {{ {', '.join(KINDS)} }};",
        "",
        "/* A keyword: where it may stand, the kind of statement that it opens, what makes it special. */",
        "typedef struct {",
        "  const char *text;",
        "  uint8_t is, opens, follows;",
        "} Word;",
        "",
        "static const Word WORDS[] = {",
    ]
    for word in dict.fromkeys((*STATEMENT_WORDS, *STEP_WORDS, *ITEM_WORDS)):
        classes = " | ".join(name for name, members in CLASSES.items() if word in members)
        opens = BLOCKS.get(word, "statement_only").upper()
        lines.append(f'  {{"{word}", {classes}, {opens}, {FOLLOWS.get(word, "NOTHING_SPECIAL")}}},')
    lines += ["};", ""]
    lines += ["/* Words of other languages, and the keyword that each means. */"]
    lines += ["static const struct { const char *text, *meant; } ELSEWHERE_CALLED[] = {"]
    lines += [f'  {{"{word}", "{meant}"}},' for word, meant in ELSEWHERE_CALLED.items()]
    lines += ["};", ""]
    for name, members in LISTS.items():
        listed = ", ".join([*[json.dumps(word) for word in members], "NULL"])
        lines.append(f"static const char *const {name}[] = {{{listed}}};")
    return "\n".join([*lines, ""])


# ---------------------------------------------------------------- the words of the queries

LISTED = {
    "families": "families",
    "built-in functions": "builtins",
    "combinators": "combinators",
    "values of options": "values",
    "roles": "roles",
    "kinds of parameters": "spaces",
}


def highlights(text: str) -> str:
    """The query for colours, its marked lists made anew."""
    for title, kind in LISTED.items():
        listed = " ".join(f'"{word}"' for word in VOCABULARY[kind])
        text = between(f"; words: {title}\n", "\n; end", [f"  {listed}"], text)
    return text


def keywords() -> tuple[str, ...]:
    """Words that the grammar knows as such: the reserved ones, and those that their place makes special."""
    return tuple(sorted(dict.fromkeys([*keyword_kinds(), *CONTEXTUAL])))


# ---------------------------------------------------------------- files

FILES: Mapping[Path, Callable[[str], str]] = {RULES: rules, WORDS: words, HIGHLIGHTS: highlights}


def fresh(path: Path) -> str:
    """A file as it should be."""
    return FILES[path](path.read_text(encoding="utf-8") if path.exists() else "")


def digest() -> str:
    """What the generated parser was made from."""
    inputs = [(FOLDER / "grammar.js").read_bytes(), RULES.read_bytes()]
    return hashlib.sha256(b"\0".join(inputs)).hexdigest() + "\n"


def generate(program: str) -> None:
    """Make src/parser.c."""
    subprocess.run([program, "generate"], cwd=FOLDER, check=True)
    DIGEST.write_text(digest(), encoding="utf-8")


if __name__ == "__main__":
    for file in FILES:
        file.write_text(fresh(file), encoding="utf-8")
    tool = os.environ.get("TREE_SITTER") or shutil.which("tree-sitter")
    if tool:
        generate(tool)
    else:
        print("The program `tree-sitter` is missing: src/parser.c is left as it is.")
