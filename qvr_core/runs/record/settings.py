"""qvr.toml: read, checked with exact ranges, and laid under the flags of the command line."""

from __future__ import annotations

import contextlib
import difflib
import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from qvr_core.runs.record.config import DataSettings, RunConfig, Settings
from qvr_core.runs.record.settings_file import FILE_NAME
from qvr_core.runs.record.toml_ranges import Located, locate
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.types.model.file import Model
from qvr_core.syntax.tree.names import Span


class Point(NamedTuple):
    """Zero-based line, zero-based column in code points."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """An error in a qvr.toml, half-open.  `replacement` fixes the range, where something obvious does."""

    message: str
    start: Point
    end: Point
    replacement: str | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """The configuration of one run, and where each key's value came from: 'flag', 'qvr.toml:<line>' or 'default'."""

    config: RunConfig
    origins: Mapping[str, str]


class UsageProblem(Exception):
    """A flag that cannot be; the message says which and what is expected."""


def data_flags(given: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """What several `--data` say: the main source, and {set or data name: source} of further files.  Raises
    `UsageProblem` for two main ones."""
    named = [value for value in given if re.match(r"[A-Za-z_]\w*=", value)]
    plain = [value for value in given if value not in named]
    if len(plain) > 1:
        raise UsageProblem(
            f"there are {len(plain)} main sources of data: name the set or the data name that each further one holds, "
            f"as in `--data County={plain[1]}`"
        )
    pairs = (value.partition("=") for value in named)
    return plain[0] if plain else None, {name: source for name, _, source in pairs}


def main_program(model: Model) -> str | None:
    """What is run where nothing is named: the first exported program, else the last one that is no template, else the
    last template, else the first exported arrow, else the last let."""
    exported = [export.name for export in model.exports]
    declared = [name for name in model.order if name in model.own_programs]
    whole = [name for name in declared if not model.programs[name].template]
    lets = [name for name in model.order if name in model.lets and name not in model.imported]
    programs = [name for name in exported if name in model.programs]
    found = (*programs[:1], *whole[-1:], *declared[-1:], *exported[:1], *lets[-1:])
    return next(iter(found), None)


def check_settings(text: str) -> tuple[Settings, list[SettingsProblem]]:
    """Read a qvr.toml.  With problems, the settings hold what is sound in it; never raises, whatever the text."""
    try:
        content = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        return Settings(), [_syntax_problem(text, str(error))]
    places = locate(text)
    problems: list[SettingsProblem] = []
    settings = _validated(content)
    while isinstance(settings, ValidationError):
        found = _problems(text, settings.errors(include_url=False), places, content)
        problems += [problem for problem, _ in found]
        for _, path in found:
            _drop(content, path)
        settings = _validated(content)
    return settings, sorted(problems, key=lambda problem: problem.start)


def _validated(content: dict[str, Any]) -> Settings | ValidationError:
    try:
        return Settings.model_validate_json(json.dumps(content, default=str), strict=True)
    except ValidationError as error:
        return error


def _drop(content: dict[str, Any], path: tuple[str | int, ...]) -> None:
    """Take the key at `path` out of nested tables."""
    *parents, last = path
    holder: Any = content
    for part in parents:
        holder = holder[part]
    del holder[last]


def _syntax_problem(text: str, message: str) -> SettingsProblem:
    """tomllib's message, at the place that it names."""
    found = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    lines = text.split("\n")
    if found:
        line, column = int(found[1]) - 1, int(found[2]) - 1
    else:
        line, column = len(lines) - 1, len(lines[-1])
    plain = re.sub(r" \(at .*\)$", "", message)
    end = max(column + 1, len(lines[line].rstrip("\r"))) if found else column
    return SettingsProblem(plain, Point(line, column), Point(line, end))


def _problems(
    text: str, errors: list[ErrorDetails], places: dict[tuple[str | int, ...], Located], content: dict[str, Any]
) -> list[tuple[SettingsProblem, tuple[str | int, ...]]]:
    """One problem per key, with the key's path; the alternatives of a union are joined."""
    grouped: dict[tuple[str | int, ...], list[ErrorDetails]] = {}
    for error in errors:
        path = error["loc"]
        while path not in places and path:
            path = path[:-1]
        grouped.setdefault(path, []).append(error)
    found: list[tuple[SettingsProblem, tuple[str | int, ...]]] = []
    for path, group in grouped.items():
        place = places.get(path) or Located(Span(0, 0), Span(0, 0))
        name = next((str(part) for part in reversed(path) if isinstance(part, str)), "")
        if group[0]["type"] == "extra_forbidden":
            message, replacement = _unknown_key(path)
            span = place.key
        else:
            message, replacement, span = explain(name, group), _choice(group), place.value
        problem = SettingsProblem(message, _point(text, span.start), _point(text, span.end), replacement)
        # An item of a list cannot be taken out alone: what is sound would move.
        whole = path[: next((i for i, part in enumerate(path) if isinstance(part, int)), len(path))]
        found.append((problem, whole))
    unique = {path: (problem, path) for problem, path in found}
    return list(unique.values())


def _unknown_key(path: tuple[str | int, ...]) -> tuple[str, str | None]:
    *_, key = path
    table = DataSettings if path[0] == "data" else RunConfig
    known = list(table.model_fields) if len(path) > 1 else list(Settings.model_fields)
    near = difflib.get_close_matches(str(key), known, 1)
    hint = f"; did you mean `{near[0]}`?" if near else f": the keys here are {', '.join(known)}"
    return f"unknown key `{key}`{hint}", near[0] if near else None


def _choice(errors: list[ErrorDetails]) -> str | None:
    """The word that was meant, where a key takes one of a few and the value is close to one."""
    value = errors[0]["input"]
    words = [word for error in errors for word in re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected")))]
    near = difflib.get_close_matches(value, words, 1) if isinstance(value, str) else []
    return json.dumps(near[0]) if near else None


def explain(name: str, errors: list[ErrorDetails]) -> str:
    """One sentence for all that is wrong with the value of one key."""
    value = errors[0]["input"]
    if len(errors) == 1 and errors[0]["type"] == "value_error":
        return str(errors[0].get("ctx", {}).get("error", errors[0]["msg"]))
    wanted = " or ".join(dict.fromkeys(_expected(error) for error in errors))
    return f"`{name}` must be {wanted}, not {json.dumps(value, default=str, ensure_ascii=False)}"


def _expected(error: ErrorDetails) -> str:
    """What pydantic wanted, in a user's words."""
    context = error.get("ctx", {})
    match error["type"]:
        case "int_type" | "int_parsing" | "int_from_float":
            return "a whole number"
        case "float_type" | "float_parsing" | "finite_number":
            return "a number"
        case "bool_type" | "bool_parsing":
            return "true or false"
        case "string_type":
            return "a string"
        case "dict_type" | "model_type" | "model_attributes_type":
            return "a table"
        case "tuple_type" | "list_type":
            return "a list"
        case "literal_error":
            return str(context["expected"])
        case "greater_than":
            return f"greater than {context['gt']}"
        case "greater_than_equal":
            return f"at least {context['ge']}"
        case "less_than":
            return f"less than {context['lt']}"
        case "less_than_equal":
            return f"at most {context['le']}"
        case "string_pattern_mismatch":
            return f"of the form {context['pattern']}"
        case _:
            return error["msg"]


def _point(text: str, offset: int) -> Point:
    start = text.rfind("\n", 0, offset) + 1
    return Point(text.count("\n", 0, offset), offset - start)


def resolve(program: str, settings_text: str | None, flags: Mapping[str, str]) -> Resolved:
    """Flag before qvr.toml before default.

    `flags` are raw strings by key.  Raises `UsageProblem` for a flag that cannot be; problems of the file are those
    that `check_settings` reports, what is sound in it counts.
    """
    origins = dict.fromkeys(RunConfig.model_fields, "default")
    values: dict[str, Any] = {}
    if settings_text is not None:
        settings, _ = check_settings(settings_text)
        places = locate(settings_text) if settings != Settings() else {}
        tables: list[tuple[tuple[str, ...], RunConfig]] = [(("defaults",), settings.defaults)]
        if program in settings.run:
            tables.append((("run", program), settings.run[program]))
        for path, table in tables:
            for key in table.model_fields_set:
                values[key] = getattr(table, key)
                origins[key] = f"{FILE_NAME}:{_point(settings_text, places[(*path, key)].key.start).line + 1}"
    for key, raw in flags.items():
        values[key] = _flag_value(key, raw)
        origins[key] = "flag"
    found = {} if settings_text is None else _data_columns(settings_text)
    if found and isinstance(values.setdefault("columns", {}), Mapping):
        values["columns"] = {name: columns for name, (columns, _) in found.items()} | dict(values["columns"])
        first = next(iter(found.values()))[1]
        origins["columns"] = f"{FILE_NAME}:{first}" if origins["columns"] == "default" else origins["columns"]
    try:
        return Resolved(RunConfig.model_validate(values), origins)
    except ValidationError as error:
        detail = error.errors(include_url=False)
        raise UsageProblem(explain(str(detail[0]["loc"][0]), detail)) from error


def _data_columns(text: str) -> dict[str, tuple[str | tuple[str, ...], int]]:
    """What each `[data.x]` says of the columns of x, and its line."""
    settings, _ = check_settings(text)
    places = locate(text) if settings.data else {}
    return {
        name: (one.columns, _point(text, places[("data", name)].key.start).line + 1)
        for name, one in settings.data.items()
        if one.columns is not None
    }


def misnamed_data(text: str, names: Collection[str]) -> tuple[int, str, str] | None:
    """(line, name, name that was probably meant) of a `[data.x]` where x is not among the `names` of a program."""
    lines = {name: line for name, (_, line) in _data_columns(text).items()}
    missing = [name for name in names if name not in lines]
    near = ((line, name, closest(name, missing)) for name, line in lines.items() if name not in names)
    return next(((line, name, meant) for line, name, meant in near if meant is not None), None)


def misnamed_table(text: str, program: str, others: Collection[str]) -> tuple[int, str] | None:
    """(line, name) of the [run.<name>] that was probably meant for `program`, which has no table of its own; not one
    for a program among `others`."""
    settings, _ = check_settings(text)
    if program in settings.run:
        return None
    places = locate(text)
    near = (name for name in settings.run if name not in others and closest(name, [program]) is not None)
    return next(((_point(text, places[("run", name)].key.start).line + 1, name) for name in near), None)


def _flag_value(key: str, raw: str) -> Any:
    """A flag's string read as its key's type: JSON where that fits, else the string itself."""
    if key not in RunConfig.model_fields:
        near = difflib.get_close_matches(key, RunConfig.model_fields, 1)
        raise UsageProblem(f"unknown key `{key}`" + (f"; did you mean `{near[0]}`?" if near else ""))
    info = RunConfig.model_fields[key]
    adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, info.annotation))
    candidates: list[Any] = [raw]
    try:
        candidates.insert(0, json.loads(raw))
    except ValueError:
        if key == "held_out_after":
            candidates.insert(0, [float(part) for part in raw.split(",")])
        if key in EXAMPLES:
            candidates.insert(0, _pairs(key, raw))
    for candidate in candidates:
        try:
            adapter.validate_python(candidate)
        except ValidationError:
            continue
        return candidate
    return candidates[0]


EXAMPLES = {"columns": ("y=effect,sigma=error", '{"y": "effect"}'), "param": ("alpha=1,beta=0.5", '{"alpha": 1}'),
            "tables": ("County=csv:counties.csv", '{"County": "csv:counties.csv"}')}  # fmt: skip


def _pairs(key: str, raw: str) -> dict[str, Any]:
    """`y=effect,sigma=error` as a table; what a parameter is given may be a number."""
    pairs = [[side.strip() for side in part.partition("=")[::2]] for part in raw.split(",")]
    if not all(name and value for name, value in pairs):
        written, as_json = EXAMPLES[key]
        raise UsageProblem(f"`{key}` takes pairs such as {written}, or JSON: {as_json}; not {raw}")
    return {name: _number(value) if key == "param" else value for name, value in pairs}


def _number(text: str) -> float | int | str:
    """A number where the text is one."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
