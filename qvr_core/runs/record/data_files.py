"""What the data files of a run were when it read them: `data.json` holds size, time and digest of each."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from qvr_core.data.problems import DataProblem
from qvr_core.data.sentences import files
from qvr_core.runs.record.atomic_files import DamagedFile, file_digest, read_json, write_json
from qvr_core.runs.record.protocol import Job
from qvr_core.semantics.types.model.file import Model


@dataclass(frozen=True)
class DataFile:
    """A file as it was read: bytes, time of its last change in ns since 1970, SHA-256 in hex."""

    path: str
    size: int
    mtime_ns: int
    sha256: str

    def change(self) -> str | None:
        """What has happened to the file since, in words; None where its content is the same."""
        try:
            now = os.stat(self.path)
        except OSError:
            return f"{self.path} is gone"
        if (now.st_size, now.st_mtime_ns) == (self.size, self.mtime_ns):
            return None
        if now.st_size != self.size:
            return f"{self.path} had {self.size:,} bytes and has {now.st_size:,}"
        return None if file_digest(Path(self.path)) == self.sha256 else f"the content of {self.path} has changed"


def path_of(job: Job) -> Path:
    """What a run's data are read from, absolute; for sentence pairs perhaps a pattern."""
    return Path(os.path.abspath(Path(job.base) / job.config.data_path))


def tables_of(job: Job) -> dict[str, tuple[str, Path]]:
    """(source, absolute path) of each further file, by the name of what it holds."""
    pairs = {name: table.partition(":") for name, table in job.config.tables.items()}
    return {name: (source, Path(os.path.abspath(Path(job.base) / path))) for name, (source, _, path) in pairs.items()}


def folders_of(job: Job) -> list[Path]:
    """The folders whose parquet files are one table of a run."""
    tables = [*tables_of(job).values(), (job.config.source, path_of(job))]
    return [path for source, path in tables if source == "parquet" and path.is_dir()]


def _files_of(folder: Path) -> list[Path]:
    """The files of a table; none where the folder cannot be read."""
    from qvr_core.data.tables.parquet import parquet_files

    try:
        return [Path(name) for name in parquet_files(folder)]
    except DataProblem:
        return []


def _paths(job: Job, model: Model) -> Iterator[Path]:
    yield from (path for _, path in tables_of(job).values())
    yield from (file for folder in folders_of(job) for file in _files_of(folder))
    match job.config.source:
        case "synthetic":
            pass
        case "pairs":
            with contextlib.suppress(DataProblem):
                yield from map(Path, files(str(path_of(job))))
        case _:
            yield path_of(job)
    for deduction in model.deductions.values():
        yield from (Path(os.path.abspath(name)) for name in deduction.lexicon_files)


def stats(job: Job, model: Model) -> dict[Path, tuple[int, int]]:
    """Size and time of every file that a run reads, its lexicons included; without those that are not there."""
    found: dict[Path, tuple[int, int]] = {}
    for path in _paths(job, model):
        if path.is_file():
            state = path.stat()
            found[path] = (state.st_size, state.st_mtime_ns)
    return found


def note(directory: Path, files: Mapping[Path, tuple[int, int]], folders: Sequence[Path] = ()) -> None:
    """Write down the data files, whose size and time are given, with their digests, and the `folders` of which they are
    all."""
    made = [DataFile(str(path), size, time, file_digest(path)) for path, (size, time) in files.items()]
    content = {"files": [asdict(file) for file in made], "folders": [str(folder) for folder in folders]}
    write_json(directory / "data.json", content)


def noted(directory: Path) -> tuple[DataFile, ...]:
    """The files that a run has read; none for a run that noted nothing.  Raises `DamagedFile`."""
    try:
        found = read_json(directory / "data.json")
    except FileNotFoundError:
        return ()
    try:
        return tuple(DataFile(**file) for file in found["files"])
    except (KeyError, TypeError) as error:
        raise DamagedFile(f"{directory / 'data.json'} is damaged: it lists no data files") from error


def changes(directory: Path) -> list[str]:
    """What has changed in a run's data since it read them, a sentence part for each file."""
    files = noted(directory)
    known = {file.path for file in files}
    folders: list[str] = read_json(directory / "data.json").get("folders", []) if files else []
    new = [str(file) for folder in folders for file in _files_of(Path(folder)) if str(file) not in known]
    return [*(said for file in files if (said := file.change()) is not None), *(f"{path} is new" for path in new)]
