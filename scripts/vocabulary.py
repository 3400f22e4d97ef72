"""Write the words of the language where they are listed: `python -m scripts.vocabulary`.

The checker's closed tables are the one source; the grammar of VS Code, the syntax of Vim and docs/reference.md hold
copies.  Each copy stands at a mark, and everything around the marks is written by hand.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from qvr_core.semantics.arrows.postfix import METHODS
from qvr_core.semantics.language.builtins import ALIASES, BUILTINS
from qvr_core.semantics.language.combinators import COMBINATORS, POSTFIX
from qvr_core.semantics.language.compositions import BUILTIN_COMPOSITIONS, COMPOSITION_OPERATIONS
from qvr_core.semantics.language.family import Family, Parameter, support_words
from qvr_core.semantics.language.options import (
    DEDUCTION_KEYS,
    EFFECTS,
    MISSING,
    OBJECT_KEYS,
    PROGRAM_KEYS,
    REDUCTIONS,
    RULE_ATTRIBUTES,
    SEMIRINGS,
    STEP_KEYS,
    VALUE_KEYS,
)
from qvr_core.semantics.language.prelude import EVERY_FAMILY, PRELUDE
from qvr_core.semantics.language.roles import HEAD_OPTIONS, ROLES, OptionSpec
from qvr_core.semantics.language.transformations import TRANSFORMATIONS
from qvr_core.syntax.layout import ITEM_WORDS, STATEMENT_WORDS, STEP_WORDS, UNRESERVED
from qvr_core.syntax.lexer import SPACES
from qvr_core.syntax.units import KINDS

ROOT = Path(__file__).resolve().parents[1]
TEXTMATE = ROOT / "vscode-extension" / "syntaxes" / "qvr.tmLanguage.json"
VIM = ROOT / "neovim" / "syntax" / "qvr.vim"
REFERENCE = ROOT / "docs" / "reference.md"

ROLE_OPTIONS = [spec for role in ROLES.values() for spec in role.options.values()]
BOUNDS = ("low", "high")
FLAGS = ("true", "false")

WORDS: Mapping[str, Iterable[str]] = {
    "statements": [word for word in STATEMENT_WORDS if word not in UNRESERVED],
    "steps": [word for word in STEP_WORDS if word not in UNRESERVED],
    "named statements": [word for word in STATEMENT_WORDS if word in UNRESERVED],
    "named steps": [word for word in STEP_WORDS if word in UNRESERVED],
    "items": ITEM_WORDS,
    "spaces": ("FinSet", *SPACES, "Seq", *KINDS),
    "combinators": COMBINATORS,
    "methods": METHODS,
    "families": EVERY_FAMILY,
    "builtins": (*BUILTINS, *(name for name in PRELUDE if name not in EVERY_FAMILY)),
    "roles": ROLES,
    "options": (
        *(spec.key for spec in ROLE_OPTIONS),
        *HEAD_OPTIONS,
        *BOUNDS,
        *(key for keys in STEP_KEYS.values() for key in keys),
        *PROGRAM_KEYS,
        *DEDUCTION_KEYS,
    ),
    "call options": (key for one in COMBINATORS.values() for key in one.words),
    "call values": (word for one in COMBINATORS.values() for words in one.words.values() for word in words),
    "values": (
        *(word for spec in ROLE_OPTIONS for word in spec.words if spec.key != "role"),
        *REDUCTIONS,
        *EFFECTS,
        *SEMIRINGS,
        *FLAGS,
    ),
    "attributes": RULE_ATTRIBUTES,
    "compositions": BUILTIN_COMPOSITIONS,
    "operations": COMPOSITION_OPERATIONS,
}
"""The words of each kind, in the order of the tables."""

VOCABULARY = {kind: tuple(dict.fromkeys(words)) for kind, words in WORDS.items()}

# ---------------------------------------------------------------- VS Code

WHOLE = r"(?<![\w.])({words})(?!\w)"
TEXTMATE_RULES: Mapping[str, str] = {
    "statements": r"^({words})\b",
    "steps": r"^\s*({words})\b",
    "named statements": r"^({words})(?=\s+[A-Za-z_])",
    "named steps": r"^\s*({words})(?=\s+[A-Za-z_])",
    "items": r"^\s+({words})\b",
    "spaces": WHOLE,
    "combinators": WHOLE,
    "methods": r"\.({words})\b",
    "families": WHOLE,
    "builtins": WHOLE + r"(?=\s*\()",
    "roles": r"\b(role)\s*(=)\s*({words})\b",
    "options": r"\b({words})\s*(=)(?!=)",
    "call options": r"(?<=[(,]|[(,] )({words})\s*(=)(?!=)",
    "call values": r"(?<==|= )({words})\b",
    "values": r"(?<=[=\[,]|[=\[,] )({words})\b",
    "attributes": r"\b({words})\b",
    "compositions": r"^(composition)\s+({words})\b",
    "operations": r"^\s+({words})\b",
}
"""The pattern of each rule of the grammar that is marked with `"comment": "words: KIND"`."""


def textmate(text: str) -> str:
    """The grammar of VS Code, its marked rules made anew."""
    for kind, pattern in TEXTMATE_RULES.items():
        match = json.dumps(pattern.replace("{words}", "|".join(VOCABULARY[kind])))
        rule = rf'("comment": "words: {kind}",\s*"match": )"(?:[^"\\]|\\.)*"'
        text, found = re.subn(rule, lambda mark, match=match: mark[1] + match, text)
        if found == 0:
            raise ValueError(f"{TEXTMATE.name} has no rule for the words of kind `{kind}`")
    return text


# ---------------------------------------------------------------- Vim

VIM_KEYWORDS: Mapping[str, str] = {
    "spaces": "qvrSpace",
    "combinators": "qvrCombinator",
    "families": "qvrFamily",
    "builtins": "qvrBuiltin contained",
    "roles": "qvrRole contained",
    "options": "qvrOption contained",
    "call options": "qvrCallOption contained",
    "call values": "qvrCallValue contained",
    "values": "qvrOptionValue contained",
    "attributes": "qvrAttributeKey contained",
    "compositions": "qvrComposition contained",
}
VIM_LINES: Mapping[str, str] = {
    "steps": r'syntax match qvrStep "^\s*\%({words}\)\>"',
    "statements": r'syntax match qvrStatement "^\%({words}\)\>"',
    "named steps": r'syntax match qvrStep "^\s*\%({words}\)\ze\s\+\h"',
    "named statements": r'syntax match qvrStatement "^\%({words}\)\ze\s\+\h"',
    "items": r'syntax match qvrStep "^\s\+\%({words}\)\>"',
    "methods": r'syntax match qvrMethod "\.\@1<=\%({words}\)\>"',
    "operations": r'syntax match qvrOperation "^\s\+\%({words}\)\>"',
}


def vim(text: str) -> str:
    """The syntax of Vim, its list of words made anew."""
    lines = [pattern.replace("{words}", r"\|".join(VOCABULARY[kind])) for kind, pattern in VIM_LINES.items()]
    for kind, group in VIM_KEYWORDS.items():
        lines += [f"syntax keyword {group} {part}" for part in textwrap.wrap(" ".join(VOCABULARY[kind]), 90)]
    return between('" The words of the language (python -m scripts.vocabulary).\n', '\n" End of them.', lines, text)


# ---------------------------------------------------------------- the reference


def reference(text: str) -> str:
    """The reference, its tables made anew."""
    for name, rows in TABLES.items():
        text = between(f"<!-- table: {name} -->\n\n", "\n\n<!-- end -->", rows(), text)
    return text


def families() -> Iterator[str]:
    """One row for a family, in groups: what a draw is, and whether it is whole."""
    yield from ("| family | draws | meaning |", "|---|---|---|")
    for family in sorted(EVERY_FAMILY.values(), key=lambda family: (min(family.event, 1), family.discrete)):
        call = f"{family.name}({', '.join(map(_parameter, family.parameters))})"
        yield f"| `{call}` | {_draws(family)} | {family.summary} |"


def _parameter(parameter: Parameter) -> str:
    if parameter.default is None or math.isnan(parameter.default):
        return parameter.name
    return f"{parameter.name}={parameter.default:g}"


def _draws(family: Family) -> str:
    if family.bounded_by:
        return "numbers from {} to {}".format(*(f"`{name}`" for name in family.bounded_by))
    return support_words(family) if family.event < 2 or family.support.kind != "real" else "any real matrix"


def library() -> Iterator[str]:
    """One row for a template or function of the library."""
    yield from ("| name | from | what it is |", "|---|---|---|")
    for name, one in PRELUDE.items():
        if one.facts is None:
            given = ", ".join(map(_shown, one.parameters))
            yield f"| `{name}({given})` | `std/{one.file}` | {one.summary} |"


def _shown(parameter: str) -> str:
    """A parameter as a call may write it: `scale=1.0`."""
    name, _, kind = parameter.partition(" : ")
    default = kind.partition(" = ")[2] or parameter.partition(" = ")[2]
    return f"{name.partition(' = ')[0]}={default}" if default else name


def parameters() -> Iterator[str]:
    """One row for a parameter that has other names, or takes another form under one."""
    yield from ("| parameter | of | also called | or instead |", "|---|---|---|---|")
    owners: dict[tuple[str, str], list[str]] = {}
    for family in EVERY_FAMILY.values():
        for parameter in family.parameters:
            instead = _code(name for name, _ in parameter.alternatives)
            if parameter.aliases or instead:
                row = (f"`{parameter.name}`", f"{_code(parameter.aliases)} | {instead}")
                owners.setdefault(row, []).append(family.name)
    for (name, others), names in owners.items():
        yield f"| {name} | {', '.join(names)} | {others} |"


def roles() -> Iterator[str]:
    """One row for a role."""
    yield from ("| role | joins | sort | behind `~` | what it is |", "|---|---|---|---|---|")
    for role in ROLES.values():
        sort, behind = role.sort.name.lower(), _INIT[role.takes_init]
        yield f"| `{role.name}` | {role.between} | {sort} | {behind} | {role.summary} |"


_INIT = {
    "": "nothing",
    "family": "a family",
    "prior": "a prior on the weights",
    "weights": "a prior that makes the weights latents",
    "value": "the value",
}


def role_options() -> Iterator[str]:
    """One row for an option of a role; those that every role takes come first."""
    yield from ("| option | roles | takes | without it | meaning |", "|---|---|---|---|---|")
    owners: dict[OptionSpec, list[str]] = {}
    for role in ROLES.values():
        for spec in role.options.values():
            owners.setdefault(spec, []).append(role.name)
    for spec, names in sorted(owners.items(), key=lambda item: -len(item[1])):
        where = "all" if len(names) == len(ROLES) else _code(names)
        yield f"| `{spec.key}` | {where} | {_takes(spec)} | {_default(spec)} | {spec.meaning} |"
    for key, meaning in HEAD_OPTIONS.items():
        heads = [family for family in EVERY_FAMILY.values() if key in family.head_options]
        names = ", ".join(family.name for family in heads)
        default = heads[0].head_options[key]
        yield f"| `{key}` | `kernel` with {names} | a whole number from 1 | `{default}` | {meaning} |"


_TAKES = {
    "prior": "a family with its arguments",
    "arrow": "a table or a linear map, or `transpose(f)` of one",
    "positive": "a number above 0",
    "fraction": "a number from 0 to below 1",
    "count": "a whole number from 1",
    "natural": "a whole number from 0",
    "flag": "`true` or `false`",
}


def _takes(spec: OptionSpec) -> str:
    if spec.kind == "start":
        return f"a weight, {_code(spec.words)}"
    return _code(spec.words) if spec.kind == "word" else _TAKES[spec.kind]


def _default(spec: OptionSpec) -> str:
    if spec.default is None:
        return ""
    return f"`{str(spec.default).lower() if isinstance(spec.default, bool) else spec.default}`"


def step_options() -> Iterator[str]:
    """One row for an option of a step."""
    yield from ("| option | behind | meaning |", "|---|---|---|")
    meanings = {**OBJECT_KEYS, **VALUE_KEYS, "reduction": f"how the values are joined: {_code(REDUCTIONS)}"}
    meanings["missing"] = f"what is done with cells without a value: {_code(MISSING)}"
    meanings["noncentred"] = "guides and chains move the standardised draw"
    meanings["sum_to_zero"] = "the numbers over the last index [sum to 0](#effects-that-sum-to-0)"
    meanings["auxiliary"] = "a draw of a [guide](#guides) that is no latent of its program"
    meanings["init"] = "where the numbers start: one number, or a list of an element's"
    for key, meaning in meanings.items():
        yield f"| `{key}` | {_code(step for step, keys in STEP_KEYS.items() if key in keys)} | {meaning} |"


def combinators() -> Iterator[str]:
    """One row for a combinator or what follows a dot."""
    yield from ("| expression | type | weights | what it does |", "|---|---|---|---|")
    for one in COMBINATORS.values():
        yield f"| `{one.call}` | {one.rule} | {one.weights} | {one.summary} |"
    for call, summary in POSTFIX.values():
        yield f"| `{call}` | | shared | {summary} |"


_RULES: Mapping[str, str] = {
    "pointwise": "Element by element, with broadcasting",
    "keep": "Shape kept",
    "reduce": "The last axis goes",
    "concat": "Joining",
    "chunk": "Cutting",
    "matmul": "Products of matrices",
    "free": "Shapes of their own",
    "parse": "Deductions",
    "compose": "Deductions",
}


def builtins() -> Iterator[str]:
    """The functions by what becomes of the shape, each with its arguments."""
    for title in dict.fromkeys(_RULES.values()):
        functions = [one for one in BUILTINS.values() if _RULES[one.rule] == title and one.name not in ALIASES]
        calls = ", ".join(
            f"`{function.name}({', '.join(function.parameters)}{', …' if function.most is None else ''})`"
            + _also(function.name)
            for function in functions
        )
        yield from (f"**{title}.** {calls}.", "")


def _also(name: str) -> str:
    aliases = [alias for alias, meant in ALIASES.items() if meant == name]
    return f" (also {_code(aliases)})" if aliases else ""


def transformations() -> Iterator[str]:
    """One row for a change of base that comes with the language."""
    yield from ("| transformation | from | to | keeps | what it makes of a weight |", "|---|---|---|---|---|")
    for one in TRANSFORMATIONS.values():
        sources, targets = (dict.fromkeys(f"`{pair[at]}`" for pair in one.pairs) for at in (0, 1))
        yield f"| `{one.name}` | {', '.join(sources)} | {', '.join(targets)} | {one.keeps} | {one.says} |"


def compositions() -> Iterator[str]:
    """One row for a composition."""
    yield from ("| composition | combine and join |", "|---|---|")
    yield from (f"| `{name}` | {meaning} |" for name, meaning in BUILTIN_COMPOSITIONS.items())


def semirings() -> Iterator[str]:
    """One row for a semiring."""
    yield from ("| semiring | the weight of an item |", "|---|---|")
    yield from (f"| `{name}` | {meaning} |" for name, meaning in SEMIRINGS.items())


TABLES: Mapping[str, Callable[[], Iterable[str]]] = {
    "roles": roles,
    "options of roles": role_options,
    "combinators": combinators,
    "options of steps": step_options,
    "functions": builtins,
    "compositions": compositions,
    "transformations": transformations,
    "semirings": semirings,
    "families": families,
    "library": library,
    "parameters": parameters,
}
"""What stands between `<!-- table: NAME -->` and `<!-- end -->`."""


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


# ---------------------------------------------------------------- files


def between(begin: str, end: str, lines: Iterable[str], text: str) -> str:
    """`text` with `lines` between two marks, whatever stood there."""
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the mark {begin.strip()!r} or its end {end.strip()!r} is missing")
    body = "\n".join(lines).strip()
    return f"{head}{begin}{body}{end}{tail}"


FILES: Mapping[Path, Callable[[str], str]] = {TEXTMATE: textmate, VIM: vim, REFERENCE: reference}


def fresh(path: Path) -> str:
    """A file as it should be."""
    return FILES[path](path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for file in FILES:
        file.write_text(fresh(file), encoding="utf-8")
