"""C2: however long a chain of imports is, and however many ways lead to a file, each is looked at once; what is too
much is refused at the import, with the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qvr_core import workspace
from qvr_core.analysis import Analyzer, Snapshot, analyse
from qvr_core.disk import Disk
from qvr_core.workspace import Bundle, Closed, Workspace

OWN = "object X : Real 4\nmorphism b : X -> X [role=linear]\n"


def named(count: int, imports: Callable[[int], Iterator[int]], text: Callable[[int], str]) -> dict[str, str]:
    """Files 0 to count - 1, each with its imports and its text."""
    return {f"/w/f{i}.qvr": "".join(f'import "f{j}.qvr" as q{j}\n' for j in imports(i)) + text(i) for i in range(count)}


def chain(count: int) -> dict[str, str]:
    last = count - 1
    return named(
        count,
        lambda i: iter([i + 1] * (i < last)),
        lambda i: OWN + (f"let a = q{i + 1}.a >> b\n" if i < last else "let a = b\n") + "export a\n",
    )


class Counting(Bundle):
    """Counts what is asked of the files."""

    def __init__(self, texts: dict[str, str]) -> None:
        super().__init__(texts)
        self.refusals = 0
        self.read = 0

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        self.refusals += 1
        return None

    def text(self, location: str) -> str | None:
        self.read += 1
        return super().text(location)


def asked(texts: dict[str, str]) -> tuple[Snapshot, Counting]:
    files = Counting(texts)
    return analyse(texts["/w/f0.qvr"], None, "/w/f0.qvr", Workspace(files)), files


def messages(snapshot: Snapshot) -> list[str]:
    return [item.message for item in snapshot.diagnostics() if item.severity.name == "ERROR"]


@pytest.mark.parametrize("length", [30, pytest.param(100, marks=pytest.mark.slow)])
def test_c2_a_chain_of_a_hundred_imports_has_no_error(length: int) -> None:
    snapshot, _ = asked(chain(length))
    assert messages(snapshot) == []
    assert "q1.b" in snapshot.model.arrows


def test_c2_a_chain_is_analysed_file_by_file(monkeypatch: pytest.MonkeyPatch) -> None:
    deep: list[int] = [0]
    most: list[int] = [0]
    made = Closed.made

    def counted(self: Closed, library: Workspace) -> object:
        deep[0] += 1
        most[0] = max(most[0], deep[0])
        try:
            return made(self, library)
        finally:
            deep[0] -= 1

    monkeypatch.setattr(Closed, "made", counted)
    asked(chain(40))
    assert most[0] <= 2


def test_c2_a_lattice_is_followed_once() -> None:
    count, each = 120, 20
    texts = named(count, lambda i: iter(range(i + 1, min(i + 1 + each, count))), lambda i: OWN + "export b\n")
    snapshot, files = asked(texts)
    assert messages(snapshot) == []
    assert files.read == count - 1
    assert files.refusals <= 3 * count * each


def test_c2_too_many_files_are_refused_at_the_import() -> None:
    snapshot, files = asked(named(1500, lambda i: iter([i + 1] * (i < 1499)), lambda i: OWN + "export b\n"))
    limit = "no import may lead to more than 1,000"
    assert messages(snapshot) == [f"f1.qvr leads to 1,499 files by its imports, and {limit}"]
    assert files.read == 1499


def test_c2_too_long_a_chain_is_refused_at_the_import() -> None:
    snapshot, _ = asked(named(400, lambda i: iter([i + 1] * (i < 399)), lambda i: OWN + "export b\n"))
    assert messages(snapshot) == [
        "f1.qvr leads to 399 files, each of which is checked with those that it leads to: 79,800 checks, and no import "
        "may take more than 50,000"
    ]


def test_c2_too_much_text_is_refused_at_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "MOST_LETTERS", 10_000)
    texts = named(
        9, lambda i: iter(range(1, 9) if i == 0 else ()), lambda i: "# " + "a" * 4000 + "\n" + OWN + "export b\n"
    )
    snapshot, files = asked(texts)
    found = messages(snapshot)
    assert files.read == 3
    assert len(found) == 5
    limit = "is not read: the files that are imported have 12,192 characters without it"
    assert all(message.endswith(limit) for message in found)


def test_c2_a_ring_is_told_with_its_shortest_way() -> None:
    texts = named(7, lambda i: iter([(i + 1) % 7] + [5] * (i == 0)), lambda i: OWN + "export b\n")
    snapshot, _ = asked(texts)
    found = [item.message for item in snapshot.diagnostics() if item.code.name == "import-cycle"]
    assert found == [
        "f0.qvr imports itself: " + " → ".join(f"f{i}.qvr" for i in (0, 1, 2, 3, 4, 5, 6, 0)),
        "f0.qvr imports itself: f0.qvr → f5.qvr → f6.qvr → f0.qvr",
    ]


def test_c2_a_ring_that_an_edit_closes_and_opens_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.qvr").write_text('import "b.qvr" as q\n' + OWN)
    (tmp_path / "b.qvr").write_text(OWN)
    library = Workspace(Disk())
    text = (tmp_path / "a.qvr").read_text()
    first = Analyzer(text, None, (tmp_path / "a.qvr").as_posix(), library)
    assert messages(first.snapshot()) == []
    library.put(first.module())
    second = Analyzer('import "a.qvr" as q\n' + OWN, None, (tmp_path / "b.qvr").as_posix(), library)
    assert messages(second.snapshot()) == ["b.qvr imports itself: b.qvr → a.qvr → b.qvr"]
    library.put(second.module())
    first.refresh()
    assert messages(first.snapshot()) == ["a.qvr imports itself: a.qvr → b.qvr → a.qvr"]
    library.remove((tmp_path / "b.qvr").as_posix())
    first.refresh()
    assert messages(first.snapshot()) == []
