"""The files of `editors/`: their words are the tables', they can be read, and what they name is there."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from tree_sitter import Language, Query

from qvr_core.cli import main
from scripts.editor_word_lists import EDITORS, FILES, LISTS, fresh
from tests.editors.grammar import FOLDER, ROOT, compiled

COMMAND = ["qvr", "lsp"]


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> Language:
    return compiled(tmp_path_factory.mktemp("grammar"))


def toml(*place: str) -> dict[str, Any]:
    return tomllib.loads(EDITORS.joinpath(*place).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(EDITORS)))
def test_what_is_made_from_our_tables_is_fresh(path: Path) -> None:
    """`python -m scripts.editor_word_lists` brings it up to date."""
    assert path.read_text(encoding="utf-8") == fresh(path)


@pytest.mark.parametrize("path", sorted(EDITORS.rglob("*.scm")), ids=lambda path: str(path.relative_to(EDITORS)))
def test_a_query_compiles(language: Language, path: Path) -> None:
    assert Query(language, path.read_text(encoding="utf-8")).pattern_count


def test_the_command_is_there() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts[COMMAND[0]] == f"{main.__module__}:main"


def test_helix() -> None:
    file = toml("helix", "languages.toml")
    server = file["language-server"]["qvr"]
    assert [server["command"], *server["args"]] == COMMAND
    (language,) = file["language"]
    assert language["language-servers"] == ["qvr"]
    assert file["grammar"][0]["name"] == language["name"] == "qvr"
    assert [language["formatter"]["command"], *language["formatter"]["args"]] == ["qvr", "format", "-"]


def test_helix_is_given_names_that_its_themes_know() -> None:
    """docs.helix-editor.com/themes.html lists the scopes; a longer one falls back to its beginning."""
    known = {"attribute", "type", "constructor", "constant", "string", "comment", "variable", "label", "punctuation"}
    known |= {"keyword", "operator", "function", "tag", "namespace", "special", "markup", "diff"}
    query = (EDITORS / "helix" / "queries" / "highlights.scm").read_text(encoding="utf-8")
    assert {name.split(".")[0] for name in re.findall(r"@([\w.]+)", query)} <= known


def test_zed() -> None:
    grammar = toml("zed", "extension.toml")["grammars"]["qvr"]
    config = toml("zed", "languages", "qvr", "config.toml")
    assert config["grammar"] == "qvr"
    assert ROOT / grammar["path"] == FOLDER
    assert config["path_suffixes"] == ["qvr"]


def test_sublime() -> None:
    settings = json.loads((EDITORS / "sublime" / "LSP.sublime-settings").read_text(encoding="utf-8"))
    client = settings["clients"]["qvr"]
    assert client["command"] == COMMAND
    syntax = yaml.safe_load(
        (EDITORS / "sublime" / "QVR.sublime-syntax").read_text(encoding="utf-8").partition("---")[2]
    )
    assert client["selector"] == syntax["scope"]
    assert {name: tuple(words.split("|")) for name, words in syntax["variables"].items()} == LISTS
    for rule in syntax["contexts"]["main"]:
        pattern = re.sub(r"\{\{(\w+)\}\}", lambda name: syntax["variables"][name[1]], rule["match"])
        assert re.compile(pattern).match("") is None


def test_kate() -> None:
    root = ElementTree.parse(EDITORS / "kate" / "qvr.xml").getroot()
    lists = {found.get("name"): tuple(item.text for item in found) for found in root.iter("list")}
    assert lists == {title: tuple(word for word in words if " " not in word) for title, words in LISTS.items()}
    detected = {rule.get("String") for rule in root.iter("StringDetect")}
    assert {word for words in LISTS.values() for word in words if " " in word} <= detected
    colours = {item.get("name") for item in root.iter("itemData")}
    contexts = {item.get("name") for item in root.iter("context")}
    for rule in root.iter():
        assert rule.get("attribute") is None or rule.get("attribute") in colours
        if rule.tag == "keyword":
            assert rule.get("String") in lists
        target = rule.get("context", "#stay")
        assert target.startswith("#") or target in contexts
    client = json.loads((EDITORS / "kate" / "lspclient.json").read_text(encoding="utf-8"))["servers"]["qvr"]
    assert client["command"] == COMMAND
    assert re.match(client["highlightingModeRegex"], root.get("name", ""))


def test_emacs() -> None:
    """That it loads and works is for `make e2e`; here, that its parentheses close and its command is ours."""
    text = (EDITORS / "emacs" / "qvr-mode.el").read_text(encoding="utf-8")
    assert '(defcustom qvr-server-command \'("qvr" "lsp")' in text
    bare = re.sub(r'\?\S|"(?:\\.|[^"\\])*"|;.*', "", text)
    assert bare.count("(") == bare.count(")")
