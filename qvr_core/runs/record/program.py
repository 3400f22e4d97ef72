"""The program of a run: its text with the texts of all files that it imports, as they were when the run was made."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.analysis import Snapshot, analyse
from qvr_core.disk import LibraryOnly
from qvr_core.runs.record.protocol import Job
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.modules.paths import STD
from qvr_core.workspace import Bundle, Workspace, texts_of


class StoredTexts(Bundle):
    """The texts that a run holds; what it does not hold of the library `std` is the package's."""

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        held = super().text(location) is not None or not location.startswith(STD)
        return None if held else LibraryOnly().refusal(location, importer, written)

    def text(self, location: str) -> str | None:
        held = super().text(location)
        return LibraryOnly().text(location) if held is None else held


def library_of(job: Job) -> Workspace:
    """What the imports of a run's program name: the texts that the run holds, no file but those of the library."""
    return Workspace(StoredTexts(job.imports))


def analysed(job: Job, known: Mapping[str, KnownSet] | None = None) -> Snapshot:
    """The analysis of a run's program; `known` are the open sets whose elements the data have told."""
    return analyse(job.text, known, job.location, library_of(job))


def of_snapshot(job: Job, snapshot: Snapshot) -> Job:
    """The same job for a program as it stands now, with what it imports."""
    text = "\n".join(snapshot.lines)
    return job.model_copy(update={"text": text, "location": snapshot.location, "imports": imports_of(snapshot)})


def imports_of(snapshot: Snapshot) -> dict[str, str]:
    """The texts of all files that a program imports, by their locations."""
    return texts_of(snapshot.table.modules)
