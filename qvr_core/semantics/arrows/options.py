"""The options of morphism declarations: read against the table of roles."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from qvr_core.semantics.language.family import Family
from qvr_core.semantics.language.roles import HEAD_OPTIONS, ROLES, OptionSpec, Role
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.scope import Scope, respelt
from qvr_core.semantics.types.codes import (
    DUPLICATE_OPTION,
    INVALID_OPTION,
    UNKNOWN_OPTION,
    UNKNOWN_ROLE,
)
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.options import CallValue, Number, Option, Options, String, Word

_ALL_KEYS = tuple(dict.fromkeys(key for role in ROLES.values() for key in role.options))

OptionValue = str | int | float | bool


@immutable
class Settings:
    """The options of one declaration: what was written, by key, and where."""

    role: Role
    given: Mapping[str, OptionValue]
    options: Mapping[str, Option]

    def number(self, key: str) -> int | float | None:
        value = self.given.get(key, self.role.options[key].default)
        return value if isinstance(value, int | float) else None

    def count(self, key: str) -> int | None:
        value = self.given.get(key, self.role.options[key].default)
        return value if isinstance(value, int) else None

    def word(self, key: str) -> str:
        return str(self.given.get(key, self.role.options[key].default))

    def flag(self, key: str) -> bool:
        return bool(self.given.get(key, self.role.options[key].default))

    def span(self, key: str) -> Span:
        """Where the value of an option stands."""
        option = self.options[key]
        return option.value.span if option.value is not None else option.span


def find_role(options: Options | None) -> Option | None:
    """The option that says the role, its key misspelt or not."""
    items = options.items if options is not None else ()
    exact = next((item for item in items if item.key.text == "role"), None)
    if exact is not None:
        return exact
    return next((item for item in items if closest(item.key.text, _ALL_KEYS) == "role"), None)


def read_options(options: Options | None, family: Family | None, scope: Scope) -> Settings | None:
    """The options of a morphism; None where its role is not known.  Reports unknown keys and impossible values."""
    role_option = find_role(options)
    role = ROLES["kernel"] if role_option is None else _role(role_option, scope)
    if role is None:
        return None
    given: dict[str, OptionValue] = {}
    written: dict[str, Option] = {}
    garbled = False
    for option in options.items if options is not None else ():
        key = option.key.text
        spec = _spec(role, family, key)
        if option is role_option and spec is not None:
            written[key] = option
        elif spec is None:
            assert options is not None
            meant = _unknown_option(role, family, options, option, scope)
            garbled = garbled or meant == "replicate"
        elif key in written:
            scope.report(DUPLICATE_OPTION, f"`{key}` is given twice", option.key.span)
        else:
            written[key] = option
            if (value := option_value(spec, option, scope)) is not None:
                given[key] = value
            garbled = garbled or (key == "replicate" and value is None)
    # how many arrows there are depends on the word that cannot be read
    return None if garbled else Settings(role, given, written)


def _role(option: Option, scope: Scope) -> Role | None:
    value = option.value
    if isinstance(value, Word) and value.text in ROLES:
        return ROLES[value.text]
    if not isinstance(value, Word):
        scope.report(INVALID_OPTION, f"`role` is one of {_words(tuple(ROLES))}", value.span if value else option.span)
        return None
    near = closest(value.text, ROLES)
    scope.report(
        UNKNOWN_ROLE,
        f"there is no role `{value.text}`" + (f"; did you mean `{near}`?" if near else f"; {_words(tuple(ROLES))}"),
        value.span,
        fixes=() if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(value.span), near),), True),),
    )
    return None if near is None else ROLES[near]


def _spec(role: Role, family: Family | None, key: str) -> OptionSpec | None:
    if role.name == "kernel" and family is not None and key in family.head_options:
        return OptionSpec(key, "count", family.head_options[key], HEAD_OPTIONS[key])
    return role.options.get(key)


def _unknown_option(role: Role, family: Family | None, options: Options, option: Option, scope: Scope) -> str | None:
    """Report the option; the key that was probably meant."""
    key = option.key
    keys = (*role.options, *(family.head_options if family is not None and role.name == "kernel" else ()))
    near = closest(key.text, keys)
    message = f"role `{role.name}` has no option `{key.text}`"
    message += f"; did you mean `{near}`?" if near else f"; it has {_words(keys)}"
    others = [other.name for other in ROLES.values() if key.text in other.options]
    if near is None and others:
        message += f" (`{key.text}` belongs to {_words(tuple(others))})"
    fixes = respelt(key, near, scope) or (removal(options, option, scope),)
    scope.report(UNKNOWN_OPTION, message, key.span, fixes=fixes)
    return near


def removal(options: Options, option: Option, scope: Scope) -> Fix:
    """The fix that takes an option out, with its comma, or with the brackets where it is the only one."""
    items = options.items
    at = bisect_left(items, option.span.start, key=lambda item: item.span.start)
    if len(items) == 1:
        stretch = Span(options.span.start - 1, options.span.end)
    elif at:
        stretch = Span(items[at - 1].span.end, option.span.end)
    else:
        stretch = Span(option.span.start, items[1].span.start)
    return Fix(f"Remove `{option.key.text}`", (Edit(scope.origin(stretch), ""),))


def _words(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)


# ---------------------------------------------------------------- values


def option_value(spec: OptionSpec, option: Option, scope: Scope) -> OptionValue | None:
    """The value of an option, or None (reported) where it cannot be what it is."""
    value = option.value
    if value is None:
        if spec.kind == "flag":
            return True
        scope.report(INVALID_OPTION, f"`{spec.key}` takes {_wants(spec)}", option.key.span)
        return None
    found: OptionValue | None = None
    if isinstance(value, Word | String):
        text = value.text if isinstance(value, Word) else value.value
        if spec.kind == "flag" and text in ("true", "True", "false", "False"):
            found = text in ("true", "True")
        elif spec.kind in ("word", "start") and text in spec.words:
            found = text
        elif spec.kind == "arrow" and isinstance(value, Word):
            found = text  # read by `ties.read_tie`
        elif spec.kind in ("word", "start"):
            return _unknown_word(spec, text, value.span, scope)
    elif isinstance(value, Number):
        found = _number(spec, value)
    elif isinstance(value, CallValue) and spec.kind == "prior":
        return None  # read by `weight_priors.read_option`
    elif isinstance(value, CallValue) and spec.kind == "arrow" and value.func.text == "transpose":
        found = "transpose"
    if found is None:
        scope.report(INVALID_OPTION, f"`{spec.key}` takes {_wants(spec)}", value.span)
    return found


def _number(spec: OptionSpec, value: Number) -> int | float | bool | None:
    number = value.value
    match spec.kind:
        case "count":
            return number if isinstance(number, int) and number >= 1 else None
        case "natural":
            return number if isinstance(number, int) and number >= 0 else None
        case "positive":
            return float(number) if number > 0 else None
        case "fraction":
            return float(number) if 0 <= number < 1 else None
        case "flag":
            return bool(number) if number in (0, 1) else None
        case "start":
            return float(number)
        case "word" | "prior" | "arrow":
            return None


def _unknown_word(spec: OptionSpec, text: str, span: Span, scope: Scope) -> None:
    near = closest(text, spec.words)
    message = f"`{spec.key}` cannot be `{text}`"
    message += f"; did you mean `{near}`?" if near else f"; it is {_words(spec.words)}"
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(span), near),), True),)
    scope.report(INVALID_OPTION, message, span, fixes=fixes)


def _wants(spec: OptionSpec) -> str:
    return {
        "positive": "a number above 0",
        "fraction": "a number from 0 to below 1",
        "count": "a whole number from 1",
        "natural": "a whole number from 0",
        "flag": "`true` or `false`",
        "word": f"one of {_words(spec.words)}",
        "start": f"one of {_words(spec.words)}, or a weight",
        "arrow": "a table or a linear map by its name, or `transpose(f)` of a linear map",
        "prior": "a family with its arguments, as in `Normal(0.0, 1.0)`",
    }[spec.kind]
