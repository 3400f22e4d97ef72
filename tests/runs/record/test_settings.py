"""qvr.toml: every error at its exact place in the user's words; flag before file before default."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qvr_core.runs.record.config import RunConfig, settings_schema
from qvr_core.runs.record.settings import UsageProblem, check_settings, misnamed_data, resolve
from qvr_core.runs.record.toml_ranges import locate

TOML = """\
# the file of a project
[defaults]
seed = 3
steps = "many"

[run.model]
data = "text:a.txt"   # a comment
stepz = 4
mask = -3
held_out_after = [10, -1.0]
prior_scale = "fan_on"
columns = { y = "weight", "z a" = 3 }
learning_rate = 1

[run."other one"]
data = "foo:bar"
algorithm = "hmc"
[rum.model]
"""


def marked(text: str, needle: str) -> tuple[int, int, int]:
    """(line, first column, last column) of the first place where `needle` stands."""
    offset = text.index(needle)
    line = text.count("\n", 0, offset)
    column = offset - (text.rfind("\n", 0, offset) + 1)
    return line, column, column + len(needle)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ('"many"', '`steps` must be a whole number, not "many"'),
        ("stepz", "unknown key `stepz`; did you mean `steps`?"),
        ("-3", "`mask` must be 'middle' or 'random' or at least 0, not -3"),
        ("-1.0", "`held_out_after` must be greater than 0.0, not -1.0"),
        ('"fan_on"', "`prior_scale` must be a number or 'fan_in', not \"fan_on\""),
        ("3 }", "`z a` must be a string or a list, not 3"),
        ('"foo:bar"', "unknown data source `foo`: one of synthetic, text, pairs, csv, parquet, ndjson, npz, json"),
        ('"hmc"', "`algorithm` must be 'svi' or 'nuts', not \"hmc\""),
        ("rum", "unknown key `rum`; did you mean `run`?"),
    ],
)
def test_problem_stands_at_its_place(place: str, message: str) -> None:
    problem = next(p for p in check_settings(TOML)[1] if p.message == message)
    line, start, _ = marked(TOML, place)
    assert (problem.start.line, problem.start.column) == (line, start)
    assert TOML.splitlines()[line][problem.start.column : problem.end.column] == place.removesuffix(" }")


def test_one_mistake_is_one_problem_and_the_rest_counts() -> None:
    settings, problems = check_settings(TOML)
    assert len(problems) == 9
    assert settings.run["model"].learning_rate == 1.0
    assert settings.defaults.seed == 3


@pytest.mark.parametrize("text", ["a = \n", "[run\n", 'x = "', "a = 1\na = 2\n", "[run]\r\nmodel = 3\r\n", "\x00"])
def test_broken_toml_is_one_located_problem(text: str) -> None:
    problems = check_settings(text)[1]
    assert len(problems) == 1
    assert problems[0].start.line <= text.count("\n")


@given(st.text(alphabet="[]{}\"=.,#\n'ab1 -\\", max_size=60))
def test_never_raises(text: str) -> None:
    check_settings(text)


@given(
    st.recursive(
        st.integers(-5, 5) | st.booleans() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3),
        max_leaves=12,
    )
)
def test_every_value_is_located(value: object) -> None:
    """Whatever stands in a TOML text, the place of each leaf holds what tomllib reads there."""

    def written(node: object) -> str:
        match node:
            case bool():
                return str(node).lower()
            case dict():
                return "{" + ", ".join(f"{json.dumps(k)} = {written(v)}" for k, v in node.items()) + "}"
            case list():
                return "[ " + ", ".join(written(v) for v in node) + "]"
            case _:
                return json.dumps(node).replace("\x7f", "\\u007f")

    try:
        text = f'# x\n[a . "b"]\nc = {written(value)} # end\n'
        tomllib.loads(text)
    except ValueError:
        return  # a surrogate escape, which TOML does not have
    places = locate(text)

    def check(node: object, path: tuple[str | int, ...]) -> None:
        if isinstance(node, dict | list):
            items = node.items() if isinstance(node, dict) else enumerate(node)
            for key, inner in items:
                check(inner, (*path, key))
        else:
            start, end = places[path].value
            assert tomllib.loads(f"v = {text[start:end]}")["v"] == node

    plain = all(key.isascii() and "\\" not in json.dumps(key) for key in keys_of(value))
    if plain:
        check(value, ("a", "b", "c"))


def keys_of(node: object) -> list[str]:
    if isinstance(node, dict):
        return [*node, *(key for inner in node.values() for key in keys_of(inner))]
    return [key for inner in node for key in keys_of(inner)] if isinstance(node, list) else []


def test_flag_before_file_before_default() -> None:
    toml = "[defaults]\nseed = 3\nsteps = 10\n[run.model]\nsteps = 20\n"
    resolved = resolve("model", toml, {"mask": "2", "held_out_after": "10,20"})
    assert (resolved.config.seed, resolved.config.steps, resolved.config.mask) == (3, 20, 2)
    assert resolved.config.held_out_after == (10.0, 20.0)
    assert resolved.origins["seed"] == "qvr.toml:2"
    assert resolved.origins["steps"] == "qvr.toml:5"
    assert resolved.origins["mask"] == "flag"
    assert resolved.origins["guide"] == "default"
    assert resolve("model", toml, {"steps": "7"}).config.steps == 7


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"steps": "x"}, '`steps` must be a whole number, not "x"'),
        ({"stps": "3"}, "unknown key `stps`; did you mean `steps`?"),
        ({"device": "gpu"}, "unknown device `gpu`"),
        ({"data": "text"}, "`text` needs a path"),
        ({"learning_rate": "-1"}, "greater than 0"),
    ],
)
def test_wrong_flag(flags: dict[str, str], message: str) -> None:
    with pytest.raises(UsageProblem, match=message.replace("`", "`")):
        resolve("model", None, flags)


def test_schema_describes_every_key() -> None:
    keys = settings_schema()["$defs"]["RunConfig"]["properties"]
    assert set(keys) == set(RunConfig.model_fields)
    assert all(key.get("description") for key in keys.values())


NAMED = """\
[run.p]
columns = { y = "outcome", z = "zed" }
[data.x]
columns = ["age", "income"]
[data.y]
columns = "other"
"""


def test_a_table_of_a_data_name_says_its_columns_unless_the_run_does() -> None:
    found = resolve("p", NAMED, {})
    assert found.config.columns == {"x": ("age", "income"), "y": "outcome", "z": "zed"}
    assert resolve("q", NAMED, {}).config.columns == {"x": ("age", "income"), "y": "other"}
    assert resolve("q", NAMED, {}).origins["columns"] == "qvr.toml:3"
    assert resolve("q", NAMED, {"columns": "x=both"}).config.columns == {"x": "both", "y": "other"}


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ('column = ["a"]', "column", "unknown key `column`; did you mean `columns`?"),
        ("columns = []", "[]", "`columns` names no column"),
        ('columns = ["a", "b", "a"]', '["a", "b", "a"]', "`columns` names `a` twice"),
        ("columns = 3", "3", "`columns` must be a string or a list, not 3"),
    ],
)
def test_what_is_wrong_in_the_table_of_a_data_name_stands_at_its_place(line: str, place: str, message: str) -> None:
    text = f"[data.x]\n{line}\n"
    [found] = check_settings(text)[1]
    assert found.message == message
    assert (found.start.line, found.start.column, found.end.column) == marked(text, place)


def test_the_table_of_a_misspelt_data_name_is_found() -> None:
    text = NAMED.replace("[data.y]", "[data.waeight]")
    assert misnamed_data(text, ["x", "weight", "z"]) == (5, "waeight", "weight")
    assert misnamed_data(text, ["x", "y", "z"]) is None
