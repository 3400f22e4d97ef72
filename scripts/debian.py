"""Programs of a newer Debian, unpacked into a folder with all that they need and started with a loader of their own."""

from __future__ import annotations

import hashlib
import lzma
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path

SUITE = "forky"
LIBRARIES = Path("usr/lib/x86_64-linux-gnu")

Index = dict[str, dict[str, str]]


class CannotFetch(Exception):
    """Something cannot be had on this machine; the message says why and what would help."""


def unpacked(package: str, root: Path) -> Path:
    """The folder `root` with a package and every library that it needs, each checked against the index' SHA256."""
    if root.is_dir():
        return root
    site = mirror()
    index = packages(site)
    if package not in index:
        raise CannotFetch(f"Debian {SUITE} has no package {package}.")
    partial = root.with_name(f"{root.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name in needed(package, index):
        entry = index[name]
        content = get(f"{site}/{entry['Filename']}", name)
        if hashlib.sha256(content).hexdigest() != entry["SHA256"]:
            raise CannotFetch(f"{name} from {site} does not match its checksum.")
        archive = partial / "package.deb"
        archive.write_bytes(content)
        done = subprocess.run(
            ["dpkg-deb", "-x", archive, partial], capture_output=True, text=True, check=False
        )  # fmt: skip
        if done.returncode != 0:
            raise CannotFetch(f"{name} cannot be unpacked: {done.stderr.strip()}")
        archive.unlink()
    return partial.rename(root)


def starting(root: Path, program: str) -> list[str]:
    """The command that starts a program of an unpacked folder with the loader and the libraries there."""
    libraries = root / LIBRARIES
    return [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries), str(root / "usr/bin" / program)]


def mirror() -> str:
    """Where this machine's apt gets Debian from."""
    if shutil.which("apt-get") is None:
        raise CannotFetch("there is no apt here that knows a Debian.")
    found = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    sites = [line for line in found.stdout.splitlines() if line.rstrip("/").endswith("/debian")]
    if not sites:
        raise CannotFetch("apt here knows no Debian.")
    return sites[0].rstrip("/")


def packages(site: str) -> Index:
    """The packages of the suite, each with the fields of its stanza."""
    text = lzma.decompress(get(f"{site}/dists/{SUITE}/main/binary-amd64/Packages.xz", "package index")).decode()
    index: Index = {}
    for stanza in text.split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][\w-]*): (.*)$", stanza, re.MULTILINE))
        if "Package" in fields:
            index.setdefault(fields["Package"], fields)
    return index


def needed(package: str, index: Index) -> list[str]:
    """A package and what it depends on, the first of each choice."""
    found: list[str] = []
    waiting = [package]
    while waiting:
        name = waiting.pop()
        if name in found or name not in index:
            continue
        found.append(name)
        depends = f"{index[name].get('Depends', '')},{index[name].get('Pre-Depends', '')}"
        waiting += [part.split("|")[0].split()[0].split(":")[0] for part in depends.split(",") if part.strip()]
    return found


def get(url: str, what: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()
    except OSError as error:
        raise CannotFetch(f"cannot fetch {what} from {url}: {error}") from error
