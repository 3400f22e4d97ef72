"""What `make release` looks at: an archive with too little or too much is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from scripts.debian import needed
from scripts.release import contents_problems, differences, extension_problems, metadata_problems, pack, report

METADATA = b"""Metadata-Version: 2.4
Name: qvr-lsp
Version: 0.1.0
Summary: A language
Description-Content-Type: text/markdown

# QVR
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a file of each kind that the wheel has, and some that it has not."""
    places = ("qvr/__init__.py", "qvr_core/std/series.qvr", "qvr_lsp/table.json", "docs/diagnostics/cycle.md")
    examples = ("qvr.toml", "examples/data/a.csv", "examples/statistics/s.qvr", "examples/analyses/qvr.toml")
    others = ("docs/runs.md", "tests/test_one.py", "qvr/__pycache__/one.pyc", "examples/statistics/make.py")
    for name in (*places, *examples, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


WHOLE = {
    "qvr/__init__.py", "qvr_core/std/series.qvr", "qvr_lsp/table.json", "qvr_core/docs/diagnostics/cycle.md",
    "qvr_core/docs/qvr.toml", "qvr_core/docs/examples/data/a.csv", "qvr_core/docs/examples/statistics/s.qvr",
    "qvr_core/docs/examples/analyses/qvr.toml", "qvr_lsp-0.1.0.dist-info/METADATA",
}  # fmt: skip


def test_a_wheel_has_the_packages_with_their_data_and_pages(clone: Path) -> None:
    assert contents_problems(clone, WHOLE) == []
    assert contents_problems(clone, WHOLE - {"qvr_core/std/series.qvr"}) == ["the wheel lacks qvr_core/std/series.qvr"]
    (lacks,) = contents_problems(clone, WHOLE - {"qvr_core/docs/diagnostics/cycle.md"})
    assert lacks == "the wheel lacks qvr_core/docs/diagnostics/cycle.md"
    (more,) = contents_problems(clone, WHOLE | {"tests/test_one.py"})
    assert more == "the wheel has tests/test_one.py, which is not of it"


def metadata(text: bytes, *, licence: bool = True) -> list[str]:
    files = {"x.dist-info/METADATA": text}
    return metadata_problems(files | ({"x.dist-info/licenses/LICENSE": b""} if licence else {}), "0.1.0")


def test_metadata_are_those_of_the_version_with_a_description_and_a_licence() -> None:
    assert metadata(METADATA) == []
    assert metadata(METADATA.replace(b"Version: 0.1.0", b"Version: 0.2.0")) == [
        "metadata: the version is 0.2.0, not 0.1.0"
    ]
    assert metadata(METADATA.split(b"\n\n")[0]) == ["metadata: there is no long description in Markdown"]
    assert metadata(METADATA, licence=False) == ["metadata: the licence is not there"]
    (problem,) = metadata(METADATA.replace(b"Version: 0.1.0", b"Version: first"))
    assert "first" in problem


def test_the_wheel_of_the_sdist_is_the_same() -> None:
    one = {"a.py": b"1", "b.py": b"2"}
    assert differences(one, dict(one)) == []
    assert differences(one, {"a.py": b"1", "b.py": b"3"}) == ["b.py differs in the wheel of the sdist"]
    assert differences(one, {"a.py": b"1"}) == ["b.py differs in the wheel of the sdist"]


def test_an_extension_has_what_its_manifest_starts_and_the_wheel() -> None:
    manifest = {"version": "0.1.0", "main": "./dist/extension.js", "browser": "./dist/web/extension"}
    web = ("web/extension.js", "web/server/worker.js", "web/server/server.zip")
    names = [f"extension/dist/{name}" for name in ("extension.js", "qvr_lsp-0.1.0-py3-none-any.whl", *web)]
    assert extension_problems(names, manifest, "0.1.0") == []
    assert extension_problems(names[:2], manifest, "0.1.0") == [f"the extension lacks dist/{name}" for name in web]
    assert extension_problems(names[:1], {**manifest, "browser": "dist/extension.js"}, "0.1.0")[0].endswith(".whl")
    assert "the extension says version 0.1.0" in extension_problems(names, manifest, "0.2.0")


def test_a_folder_is_packed_to_the_same_bytes_and_its_sum_is_told(tmp_path: Path) -> None:
    folder, out = tmp_path / "site", tmp_path / "out"
    (folder / "docs").mkdir(parents=True)
    out.mkdir()
    (folder / "docs" / "a.html").write_text("A")
    pack(folder, out / "one.tar.gz")
    (folder / "docs" / "a.html").touch()
    pack(folder, out / "two.tar.gz")
    one = (out / "one.tar.gz").read_bytes()
    assert one == (out / "two.tar.gz").read_bytes()
    lines = report(out)
    checksum = hashlib.sha256(one).hexdigest()
    assert [checksum in line for line in lines] == [True, True]
    assert (out / "SHA256SUMS").read_text() == f"{checksum}  one.tar.gz\n{checksum}  two.tar.gz\n"


def test_a_package_of_debian_brings_what_it_depends_on() -> None:
    index = {
        "python3": {"Depends": "libc6 (>= 2.38), media-types | mime-support", "Pre-Depends": "debconf"},
        "libc6": {"Depends": "libgcc-s1:any"},
        **{name: {} for name in ("media-types", "debconf", "libgcc-s1", "mime-support", "other")},
    }
    assert set(needed("python3", index)) == {"python3", "libc6", "media-types", "debconf", "libgcc-s1"}
