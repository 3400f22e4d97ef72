"""The data files of open programs are checked while they are edited, without torch and polars."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.lsp.editor import FULL, Editor

RADON = """\
object County : FinSet _
object House : FinSet _
program radon : House -> House
    data county : House -> County
    data floor, log_radon : House
    sample mu : County <- Normal(0.0, 1.0)
    let eta = mu[county] + floor
    observe log_radon : House <- Normal(eta, 1.0)
    return mu
"""
COUNTIES = "County,uranium\nanoka,0.5\nbecker,0.7\n"
HOUSES = "county,floor,log_radon\nanoka,0,0.3\nbecker,1,0.4\nanoka,1,0.1\n"
TOML = '[run.radon]\ndata = "csv:houses.csv"\ntables = { County = "csv:counties.csv" }\n'


def write(path: Path, text: str) -> None:
    """Write a file so that its time of change is another one."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    if path.stat().st_mtime_ns == before:
        os.utime(path, ns=(before + 1_000_000, before + 1_000_000))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("radon.qvr", RADON), ("counties.csv", COUNTIES), ("houses.csv", HOUSES), ("qvr.toml", TOML)):
        (tmp_path / name).write_text(text)
    return tmp_path


async def told(editor: Editor, uri: str, words: str | None) -> list[Any]:
    """The problems of the data file, once one of them has these words, or once there are none."""

    def fits(params: Any) -> bool:
        found = [item for item in params["diagnostics"] if item["code"] == "data-file"]
        return params["uri"] == uri and (not found if words is None else any(words in one["message"] for one in found))

    params = await editor.notification("textDocument/publishDiagnostics", fits)
    editor.notifications.clear()
    return [item for item in params["diagnostics"] if item["code"] == "data-file"]


async def test_editing_the_file_changes_the_problems_of_the_open_program(folder: Path) -> None:
    editor = await Editor.start()
    await editor.initialize(FULL, folder=folder)
    uri, houses = (folder / "radon.qvr").as_uri(), folder / "houses.csv"
    write(houses, HOUSES.replace("floor", "flor"))
    editor.open(uri, RADON)
    renamed = await told(editor, uri, "there is no column `floor`; the columns are `county`, `flor`, `log_radon`")
    assert renamed[0]["range"]["start"] == {"line": 4, "character": 9}
    actions = await editor.request(
        "textDocument/codeAction",
        {"textDocument": {"uri": uri}, "range": renamed[0]["range"], "context": {"diagnostics": []}},
    )
    edits = next(each for each in actions if each["title"] == "Call it `flor`, as the file does")["edit"]
    assert len(edits["documentChanges"][0]["edits"]) == 2

    def changed() -> None:
        editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": houses.as_uri(), "type": 2}]})

    write(houses, HOUSES.replace("becker,1", "beker,1"))
    changed()
    misspelt = await told(editor, uri, "row 2: `beker` is not in `County`")
    assert "Did you mean `becker`?" in misspelt[0]["message"]
    assert len(misspelt) == 1
    write(houses, HOUSES.replace("0.4", ""))
    changed()
    assert (await told(editor, uri, "column `log_radon`, row 2: the value is missing"))[0]["range"]["start"][
        "line"
    ] == 4
    write(houses, HOUSES.replace("0,0.3", "x,0.3"))
    changed()
    await told(editor, uri, "column `floor`, row 1: `x` is not a number")
    write(houses, HOUSES)
    changed()
    await told(editor, uri, None)
    assert editor.maps("torch") == editor.maps("polars") == 0
    assert await editor.stop() == 0


async def answers(editor: Editor, uri: str, text: str, method: str) -> Any:
    """What is answered at the `$0` of a text."""
    line = next(at for at, each in enumerate(text.split("\n")) if "$0" in each)
    character = text.split("\n")[line].index("$0")
    whole = text.replace("$0", "")
    editor.change(uri, {"text": whole})
    where = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
    return await editor.request(f"textDocument/{method}", where)


async def test_columns_sets_and_indices_are_offered_where_they_fit(folder: Path) -> None:
    editor = await Editor.start()
    await editor.initialize(FULL, folder=folder)
    uri = (folder / "radon.qvr").as_uri()
    editor.open(uri, RADON)

    async def offered(text: str) -> list[str]:
        found = await answers(editor, uri, text, "completion")
        return [item["label"] for item in sorted(found["items"], key=lambda item: item["sortText"])]

    assert await offered(RADON.replace("data floor, log_radon : House", "data $0")) == ["uranium", "floor", "log_radon"]
    assert (await offered(RADON.replace("county : House", "county : $0")))[:2] == ["House", "County"]
    indexed = RADON.replace("let eta = mu[county] + floor", "let eta[i : House] = mu[$0]")
    assert (await offered(indexed))[0] == "county[i]"
    help = await answers(editor, uri, indexed, "signatureHelp")
    assert help["signatures"][0]["label"] == "mu[County]" and help["activeParameter"] == 0
    help = await answers(editor, uri, RADON.replace("mu[county] + floor", "sum(mu, over=$0)"), "signatureHelp")
    assert help["signatures"][0]["label"] == "sum(x, dim, over=)"
    hover = await answers(editor, uri, RADON.replace("let eta", "let e$0ta"), "hover")
    assert "eta : House" in hover["contents"]["value"]
    assert editor.maps("torch") == editor.maps("polars") == 0
    assert await editor.stop() == 0


async def test_settings_name_the_files(folder: Path) -> None:
    editor = await Editor.start()
    await editor.initialize(FULL, folder=folder)
    uri, toml = (folder / "radon.qvr").as_uri(), (folder / "qvr.toml").as_uri()
    editor.open(uri, RADON)
    editor.notify(
        "textDocument/didOpen",
        {"textDocument": {"uri": toml, "languageId": "toml", "version": 1, "text": TOML.replace("houses", "homes")}},
    )
    gone = await told(editor, uri, "there is no such file")
    assert gone[0]["range"]["start"]["line"] == 2
    assert await editor.stop() == 0


async def test_hover_on_a_data_name_says_what_the_file_holds(folder: Path) -> None:
    editor = await Editor.start()
    await editor.initialize(FULL, folder=folder)
    uri, houses = (folder / "radon.qvr").as_uri(), folder / "houses.csv"
    write(houses, HOUSES.replace("0.4", "x"))
    editor.open(uri, RADON)
    await told(editor, uri, "`x` is not a number")
    write(houses, HOUSES)
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": houses.as_uri(), "type": 2}]})
    await told(editor, uri, None)

    async def hover(word: str) -> str:
        line = next(at for at, text in enumerate(RADON.split("\n")) if word in text)
        column = RADON.split("\n")[line].index(word)
        where = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column + 1}}
        return (await editor.request("textDocument/hover", where))["contents"]["value"]

    assert "houses.csv`: 3 values; 0.1 to 0.4, mean 0.2667" in await hover("log_radon : House <-")
    assert "houses.csv`: 3 values; `anoka` 2, `becker` 1" in await hover("county : House")
    assert "houses.csv`: 3 values; 0 to 1, mean 0.6667" in await hover("floor, ")
    assert editor.maps("torch") == editor.maps("polars") == 0
    assert await editor.stop() == 0


@pytest.mark.parametrize("kind", ["parquet", "ndjson", "npz"])
@pytest.mark.long
async def test_files_that_take_polars_or_numpy_are_read_by_a_process_of_their_own(tmp_path: Path, kind: str) -> None:
    columns = {"county": [0, 1, 0], "floor": [0.0, 1.0, 1.0], "log_radon": [0.3, 0.4, 0.1]}

    def write_table(names: dict[str, str]) -> None:
        held = {names.get(name, name): cells for name, cells in columns.items()}
        before = table.stat().st_mtime_ns if table.exists() else 0
        if kind == "parquet":
            pl.DataFrame(held).write_parquet(table)
        elif kind == "ndjson":
            pl.DataFrame(held).write_ndjson(table)
        else:
            np.savez(table, **{name: np.asarray(cells) for name, cells in held.items()})
        os.utime(table, ns=(before + 1_000_000, before + 1_000_000))

    table = tmp_path / f"houses.{kind}"
    write_table({"floor": "flor"})
    (tmp_path / "qvr.toml").write_text(f'[run.radon]\ndata = "{kind}:houses.{kind}"\n')
    text = RADON.replace("County : FinSet _", "County : FinSet 2")
    (tmp_path / "radon.qvr").write_text(text)
    editor = await Editor.start()
    await editor.initialize(FULL, folder=tmp_path)
    uri = (tmp_path / "radon.qvr").as_uri()
    editor.open(uri, text)
    found = await told(editor, uri, "`floor`; the")
    assert "Did you mean `flor`?" in found[0]["message"]
    write_table({})
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": table.as_uri(), "type": 2}]})
    await told(editor, uri, None)
    place = {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 10}}
    assert "3 values; 0 to 1, mean 0.6667" in (await editor.request("textDocument/hover", place))["contents"]["value"]
    table.write_bytes(b"PAR1 or PK, and nothing else")
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": table.as_uri(), "type": 2}]})
    await told(editor, uri, "row 1: the line is not JSON" if kind == "ndjson" else f"this is not a whole {kind} file")
    assert editor.maps("torch") == editor.maps("polars") == editor.maps("numpy") == 0


async def test_columns_of_one_data_name_stand_in_a_table_of_their_own(tmp_path: Path) -> None:
    text = """object Row : FinSet _
object Feature : FinSet 2
program p : Row -> Row
    data x : Row * Feature
    data y : Row
    sample b : Feature <- Normal(0.0, 1.0)
    observe y : Row <- Normal(matmul(x, b), 1.0)
    return b
"""
    (tmp_path / "d.csv").write_text("age,income,y\n1,2,3\n4,5,6\n")
    toml = '[run.p]\ndata = "csv:d.csv"\n\n[data.x]\ncolumns = ["age", "incme"]\n'
    (tmp_path / "qvr.toml").write_text(toml)
    (tmp_path / "m.qvr").write_text(text)
    editor = await Editor.start()
    await editor.initialize(FULL, folder=tmp_path)
    uri, settings = (tmp_path / "m.qvr").as_uri(), (tmp_path / "qvr.toml").as_uri()
    editor.open(uri, text)
    assert "Did you mean `income`?" in (await told(editor, uri, "no column `incme`"))[0]["message"]
    (tmp_path / "qvr.toml").write_text(toml.replace("incme", "income"))
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": settings, "type": 2}]})
    await told(editor, uri, None)
