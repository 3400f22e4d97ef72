"""C6: a run whose record is damaged, or taken away, is told so in one sentence; nothing is called kept that is not."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from qvr_core.runs.record.atomic_files import DamagedFile, read_json, write_json
from qvr_core.runs.record.data_files import noted
from qvr_core.runs.record.protocol import Failed, Finished, Progress, Started
from qvr_core.runs.record.store import NotResumable, RunDirectory, RunStore
from tests.patience import HANG
from tests.runs.jobs import SENTENCE, make_job, start, watched

DAMAGES: dict[str, Callable[[Path], object]] = {
    "torn": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "a byte": lambda path: path.write_bytes(path.read_bytes().replace(b"1", b"2", 1)),
    "a list": lambda path: path.write_text("[]"),
    "no text": lambda path: path.write_bytes(b"\xff\xfe"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "another object": lambda path: write_json(path, {"rows": 3}),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.txt").write_bytes(SENTENCE * 30)
    return tmp_path


@pytest.mark.parametrize("damage", DAMAGES)
def test_c6_a_damaged_list_of_data_files_is_damaged(damage: str, tmp_path: Path) -> None:
    write_json(tmp_path / "data.json", {"files": [{"path": "t.txt", "size": 1, "mtime_ns": 1, "sha256": "1"}]})
    assert len(noted(tmp_path)) == 1
    DAMAGES[damage](tmp_path / "data.json")
    with pytest.raises(DamagedFile, match=r"data\.json is damaged"):
        noted(tmp_path)


def test_c6_a_resume_with_damaged_data_files_says_how_to_go_on(folder: Path) -> None:
    job = make_job(folder, steps=2, checkpoint_steps=1)
    _, ending = asyncio.run(watched(job))
    assert isinstance(ending, Finished)
    DAMAGES["torn"](Path(job.directory) / "data.json")
    config = job.config.model_copy(update={"steps": 3})
    again = RunStore(folder).resume(job.run_id).model_copy(update={"config": config})
    _, ending = asyncio.run(watched(again))
    assert isinstance(ending, Failed)
    assert (ending.code, ending.log) == ("changed-data", ())
    assert "data.json is damaged" in ending.message
    assert ending.fixes == ("Start a new run", "Go on all the same with --changed-data")
    assert isinstance(RunDirectory(Path(job.directory)).ending(), Finished)
    _, ending = asyncio.run(watched(again.model_copy(update={"changed_data": True})))
    assert isinstance(ending, Finished)
    assert len(noted(Path(job.directory))) == 1


@pytest.mark.parametrize("name", ["job.json", "program.qvr", "process.json"])
def test_c6_a_folder_in_place_of_a_file_is_damage(name: str, folder: Path) -> None:
    job = make_job(folder)
    path = Path(job.directory) / name
    path.unlink(missing_ok=True)
    path.mkdir()
    with pytest.raises((DamagedFile, NotResumable), match="is damaged"):
        RunStore(folder).resume(job.run_id)
    assert [one.run_id for one in RunStore(folder).overviews()] == [job.run_id]


def test_c6_a_file_is_not_written_over_a_folder(tmp_path: Path) -> None:
    (tmp_path / "process.json").mkdir()
    with pytest.raises(DamagedFile, match="it is a folder, where the run keeps a file"):
        write_json(tmp_path / "process.json", {})
    assert [path.name for path in tmp_path.iterdir()] == ["process.json"]
    with pytest.raises(DamagedFile, match="it is not the JSON"):
        read_json(tmp_path / "process.json")


def test_c6_a_run_whose_folder_was_deleted_has_failed(folder: Path) -> None:
    job = make_job(folder, steps=100_000, checkpoint_seconds=3600)

    async def deleted() -> tuple[object, int | None]:
        begun = asyncio.Event()

        def seen(event: object) -> None:
            if isinstance(event, Started | Progress):
                begun.set()

        worker = await start(job, seen)
        await asyncio.wait_for(begun.wait(), HANG)
        shutil.rmtree(job.directory)
        await worker.cancel()
        return await asyncio.wait_for(worker.wait(), HANG), None

    ending, _ = asyncio.run(deleted())
    assert isinstance(ending, Failed)
    assert ending.code == "lost-folder"
    assert "was deleted or moved while the run was at work" in ending.message
