"""`make release`: everything that is published, built from a clean clone of HEAD into dist/ and looked at.

Wheel, sdist, extension, playground and site. The wheel is installed into an environment without torch, where it checks
an example and answers an editor. At the end stand sizes and checksums, also in dist/SHA256SUMS.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from scripts.versions import ROOT, disagreement, versions

DIST = ROOT / "dist"
WORK = ROOT / "build" / "release"
PARTS = ("playground", "python", "vsix", "site")
"""In the order in which they are built: the wheel holds the page of the playground, the extension its worker."""
NEEDED = {"python": "playground", "vsix": "playground"}
PAGE = "qvr_lsp/play/page"
"""Where the page travels in the wheel, for `qvr play`, whose server is a process: it needs none in the page."""
NOT_FOR_PLAY = ("server", "store.js")
MOST_INSTALLED = 40e6
"""Bytes of an environment with the wheel and what it needs, without what Python compiles."""
EPOCH = "1577836800"
"""The date of the files in the archives, so that the same sources give the same bytes."""


class NotReleasable(Exception):
    """Something is not as a release wants it; the message says what."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build and check what is published.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help=f"only these of {', '.join(PARTS)}")
    wanted = parser.parse_args(argv).parts or PARTS
    try:
        version = release(wanted)
    except NotReleasable as problem:
        print(f"no release: {problem}", file=sys.stderr)
        return 1
    print(f"QVR {version}", *report(DIST), sep="\n")
    return 0


def release(wanted: Iterable[str]) -> str:
    """Build and check the parts; the version that all files say."""
    if changed := output(["git", "status", "--porcelain"], ROOT):
        raise NotReleasable(f"a release is made of what is committed, and this is not:\n{changed}")
    clone = WORK / "clone"
    for folder in (WORK, DIST):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    call(["git", "clone", "--quiet", str(ROOT), str(clone)], WORK)
    said = versions(clone)
    if problem := disagreement(said):
        raise NotReleasable(problem)
    version = next(iter(said.values()))
    makers: dict[str, Callable[[Path, str], None]] = {
        "python": python_packages, "playground": playground, "vsix": extension, "site": website,
    }  # fmt: skip
    for part in PARTS:
        if part in wanted or part in (NEEDED.get(other) for other in wanted):
            print(f"{part} …", flush=True)
            makers[part](clone, version)
    return version


# ---------------------------------------------------------------- wheel and sdist


def python_packages(clone: Path, version: str) -> None:
    built, page = WORK / "packages", clone / PAGE
    shutil.copytree(clone / "playground" / "dist", page, ignore=shutil.ignore_patterns(*NOT_FOR_PLAY))
    build(clone, built, "--sdist", "--wheel")
    wheel, sdist = built / f"qvr_lsp-{version}-py3-none-any.whl", built / f"qvr_lsp-{version}.tar.gz"
    with tarfile.open(sdist) as archive:
        archive.extractall(WORK / "sdist", filter="data")
    again = WORK / "again"
    build(WORK / "sdist" / f"qvr_lsp-{version}", again, "--wheel")
    problems = [
        *contents_problems(clone, contents(wheel)),
        *metadata_problems(contents(wheel), version),
        *differences(contents(wheel), contents(again / wheel.name)),
    ]
    if problems:
        raise NotReleasable("\n".join(problems))
    try_wheel(wheel, clone)
    shutil.rmtree(page)
    for file in (wheel, sdist):
        shutil.copy(file, DIST)


def build(source: Path, target: Path, *kinds: str) -> None:
    command = [sys.executable, "-m", "build", *kinds, "--outdir", str(target), str(source)]
    call(command, source, {"SOURCE_DATE_EPOCH": EPOCH})


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def contents_problems(clone: Path, files: Iterable[str]) -> list[str]:
    """What the wheel lacks of the code, the library and the pages, and what it has beyond them."""
    wanted = {
        path.relative_to(clone).as_posix()
        for package in ("qvr", "qvr_core", "qvr_lsp")
        for path in (clone / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wanted |= {f"qvr_core/docs/diagnostics/{page.name}" for page in (clone / "docs/diagnostics").glob("*.md")}
    wanted |= {f"qvr_core/docs/{path.relative_to(clone).as_posix()}" for path in _examples(clone)}
    found = {name for name in files if ".dist-info/" not in name}
    missing = [f"the wheel lacks {name}" for name in sorted(wanted - found)]
    return missing + [f"the wheel has {name}, which is not of it" for name in sorted(found - wanted)]


def _examples(clone: Path) -> Iterator[Path]:
    """The examples that `qvr init --example` copies, with their data and settings."""
    yield clone / "qvr.toml"
    for folder in (".", "data", "statistics", "analyses"):
        for path in (clone / "examples" / folder).iterdir():
            if path.suffix in (".qvr", ".csv", ".json", ".npz", ".toml") and path.name != "reference.json":
                yield path


def metadata_problems(files: dict[str, bytes], version: str) -> list[str]:
    """What an index would refuse or not show."""
    from packaging.metadata import InvalidMetadata, Metadata

    (raw,) = (text for name, text in files.items() if name.endswith(".dist-info/METADATA"))
    try:
        found = Metadata.from_email(raw, validate=True)
    except ExceptionGroup as group:
        return [f"metadata: {one}" for one in group.exceptions]
    except InvalidMetadata as problem:
        return [f"metadata: {problem}"]
    problems: list[str] = []
    if str(found.version) != version:
        problems.append(f"metadata: the version is {found.version}, not {version}")
    if not found.description or not (found.description_content_type or "").startswith("text/markdown"):
        problems.append("metadata: there is no long description in Markdown")
    if not any(name.endswith("/licenses/LICENSE") for name in files):
        problems.append("metadata: the licence is not there")
    return problems


def differences(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """Files that are not the same in two wheels."""
    names = sorted(one.keys() | other.keys())
    return [f"{name} differs in the wheel of the sdist" for name in names if one.get(name) != other.get(name)]


def try_wheel(wheel: Path, clone: Path) -> None:
    """In an environment with the wheel alone: its size, no torch, pages, a check, one round with an editor."""
    folder = WORK / "env"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    before = size_of(folder)
    call([str(python), "-m", "pip", "install", "--quiet", "--no-compile", str(wheel)], WORK)
    size = size_of(folder) - before
    print(f"  {size / 1e6:.1f} MB installed")
    if size > MOST_INSTALLED:
        raise NotReleasable(f"the wheel and what it needs take {size / 1e6:.1f} MB, {MOST_INSTALLED / 1e6:.0f} at most")
    output([str(python), "-c", "import importlib.util as u; assert u.find_spec('torch') is None"], WORK)
    program = str(clone / "examples" / "eight_schools.qvr")
    expect([str(folder / "bin" / "qvr"), "check", program], "no problems")
    expect([str(folder / "bin" / "qvr"), "explain", "axes-mismatch"], "Two values run over different sets")
    expect([str(python), "-c", "from qvr_lsp.play.page_files import find_page; print(find_page())"], PAGE)
    expect([str(folder / "bin" / "qvr"), "init", "mine", "--example", "radon"], "made mine: radon.qvr")
    expect([str(python), str(clone / "scripts" / "lsp_round.py"), str(folder / "bin" / "qvr-lsp")], "16 parameters")


def size_of(folder: Path) -> int:
    """The bytes of the files of a folder, but for those that Python compiles."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


def expect(command: list[str], text: str) -> None:
    printed = output(command, WORK)
    if text not in printed:
        raise NotReleasable(f"`{' '.join(command)}` does not say `{text}`:\n{printed}")


# ---------------------------------------------------------------- extension, playground, site


def extension(clone: Path, version: str) -> None:
    folder = clone / "vscode-extension"
    call(["npm", "ci", "--ignore-scripts", "--silent"], folder)
    for step in ("check", "test", "package"):
        call(["npm", "run", "--silent", step], folder, {"PYTHON": sys.executable})
    with zipfile.ZipFile(folder / "qvr.vsix") as archive:
        problems = extension_problems(archive.namelist(), json.loads(archive.read("extension/package.json")), version)
    if problems:
        raise NotReleasable("\n".join(problems))
    shutil.copy(folder / "qvr.vsix", DIST / f"qvr-{version}.vsix")


def extension_problems(names: list[str], manifest: dict[str, str], version: str) -> list[str]:
    """What the extension lacks: what its manifest starts, and the wheel that travels with it."""
    starts = [manifest[key].removeprefix("./") for key in ("main", "browser") if key in manifest]
    wanted = [name if name.endswith(".js") else f"{name}.js" for name in starts]
    wanted.append(f"dist/qvr_lsp-{version}-py3-none-any.whl")
    wanted += ["dist/web/server/worker.js", "dist/web/server/server.zip"] if "browser" in manifest else []
    missing = [f"the extension lacks {name}" for name in wanted if f"extension/{name}" not in names]
    if manifest.get("version") != version:
        missing.append(f"the extension says version {manifest.get('version')}")
    return missing


def playground(clone: Path, version: str) -> None:
    folder = clone / "playground"
    if not folder.is_dir():
        print("  there is none in this version")
        return
    call(["npm", "ci", "--ignore-scripts", "--silent"], folder)
    for step in ("check", "build"):
        call(["npm", "run", "--silent", step], folder, {"PYTHON": sys.executable})
    if not any((folder / "dist").rglob("*.js")):
        raise NotReleasable("the playground was built, and holds no script")
    pack(folder / "dist", DIST / f"qvr-playground-{version}.tar.gz")


def website(clone: Path, version: str) -> None:
    call([sys.executable, "-m", "scripts.website"], clone, {"PYTHONPATH": str(clone)})
    pack(clone / "site", DIST / f"qvr-site-{version}.tar.gz")


def pack(folder: Path, target: Path) -> None:
    """A folder as an archive, the same bytes for the same files."""
    import gzip

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = int(EPOCH)
        return entry

    with (
        target.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=int(EPOCH)) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for path in sorted(folder.rglob("*")):
            archive.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=plain)


# ---------------------------------------------------------------- the report


def report(folder: Path) -> list[str]:
    """Sizes and checksums of the files of a folder; the checksums also as `sha256sum --check` reads them."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    sums = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    text = "".join(f"{checksum}  {path.name}\n" for path, checksum in sums.items())
    (folder / "SHA256SUMS").write_text(text, encoding="utf-8")
    return [f"{path.stat().st_size / 1e6:8.2f} MB  {checksum}  {path.name}" for path, checksum in sums.items()]


def output(command: list[str], folder: Path, more: dict[str, str] | None = None) -> str:
    environment = {**os.environ, "COLUMNS": "160", **(more or {})}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise NotReleasable(f"`{' '.join(command)}` failed:\n{last}")
    return done.stdout


def call(command: list[str], folder: Path, more: dict[str, str] | None = None) -> None:
    output(command, folder, more)


if __name__ == "__main__":
    sys.exit(main())
