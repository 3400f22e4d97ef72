"""Fetch the real editors into `.cache/e2e/`: code-server on its own Node, Debian's Chromium, Neovim from Debian forky.

Run by `make e2e`. What is there already is kept. Where something cannot be had, it says what and why, and fails.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "e2e"
NODE = "24.21.0"
CODE_SERVER = "4.139.1"
SUITE = "forky"
LIBRARIES = ("libkrb5-dev", "pkg-config", "make", "g++", "libsecret-1-dev", "libx11-dev", "libxkbfile-dev")
LETTERS = ("fonts-liberation", "fonts-dejavu-core")


class CannotFetch(Exception):
    """An editor cannot be had on this machine; the message says why and what would help."""


def code_server() -> Path:
    """The folder whose `node_modules/.bin` holds node and code-server."""
    folder = CACHE / "code"
    if ready(folder):
        return folder
    system_packages()
    folder.mkdir(parents=True, exist_ok=True)
    # Newer versions of npm run the install scripts of named packages only; these three build or fetch what they need.
    allowed = {f"node@{NODE}": True, f"code-server@{CODE_SERVER}": True, "argon2": True}
    package = {"name": "qvr-e2e", "private": True, "allowScripts": allowed}
    (folder / "package.json").write_text(json.dumps(package))
    call(["npm", "install", f"node@{NODE}"], folder, "Node for code-server")
    call(["npm", "install", f"code-server@{CODE_SERVER}"], folder, "code-server (some 620 MB)", environment(folder))
    if not ready(folder):
        raise CannotFetch(f"code-server {CODE_SERVER} was installed but does not start; look into {folder}.")
    return folder


def ready(folder: Path) -> bool:
    node = folder / "node_modules" / ".bin" / "node"
    if not node.exists():
        return False
    found = subprocess.run(
        [folder / "node_modules" / ".bin" / "code-server", "--version"],
        env=environment(folder), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return found.returncode == 0 and CODE_SERVER in found.stdout


def environment(folder: Path) -> dict[str, str]:
    """The environment in which node 24 and code-server are found."""
    return {**os.environ, "PATH": f"{folder / 'node_modules' / '.bin'}:{os.environ['PATH']}"}


def system_packages() -> None:
    missing = [name for name in LIBRARIES if not installed(name)]
    if missing:
        apt(missing)


def installed(package: str) -> bool:
    found = subprocess.run(["dpkg", "-s", package], capture_output=True, text=True, check=False)
    return "ok installed" in found.stdout


def apt(packages: list[str]) -> None:
    names = " ".join(packages)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CannotFetch(f"these packages are missing and only root can install them: apt-get install {names}")
    call(["apt-get", "update", "-qq"], ROOT, "the list of Debian packages")
    call(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], ROOT, names)


def chromium() -> Path:
    """Debian's Chromium, with letters that look as they do on a desktop."""
    wanted = [name for name in LETTERS if shutil.which("dpkg") and not installed(name)]
    if shutil.which("chromium") is None:
        wanted.insert(0, "chromium")
    if wanted:
        apt(wanted)
    found = shutil.which("chromium")
    if found is None:
        raise CannotFetch("Chromium is missing: apt-get install chromium")
    return Path(found)


def neovim() -> list[str]:
    """The command that starts Neovim >= 0.11: the one on PATH, or Debian forky's with its own loader and libraries."""
    own = shutil.which("nvim")
    if own and recent([own], {}):
        return [own]
    root = CACHE / "nvim"
    if not (root / "usr" / "bin" / "nvim").exists():
        unpack_neovim(root)
    libraries = root / "usr" / "lib" / "x86_64-linux-gnu"
    command = [
        "env", f"VIMRUNTIME={root / 'usr/share/nvim/runtime'}",
        str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries), str(root / "usr" / "bin" / "nvim"),
    ]  # fmt: skip
    if not recent(command, {}):
        raise CannotFetch(f"the Neovim of Debian {SUITE} does not start here; look into {root}.")
    return command


def recent(command: list[str], env: dict[str, str]) -> bool:
    found = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, env={**os.environ, **env}, check=False
    )
    version = re.match(r"NVIM v(\d+)\.(\d+)", found.stdout)
    return version is not None and (int(version[1]), int(version[2])) >= (0, 11)


def unpack_neovim(root: Path) -> None:
    """Neovim and every library it needs, each checked against the index' SHA256."""
    site = mirror()
    index = packages(site)
    partial = root.with_name("nvim.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name in needed("neovim", index):
        entry = index[name]
        content = get(f"{site}/{entry['Filename']}", name)
        if hashlib.sha256(content).hexdigest() != entry["SHA256"]:
            raise CannotFetch(f"{name} from {site} does not match its checksum.")
        archive = partial / "package.deb"
        archive.write_bytes(content)
        call(["dpkg-deb", "-x", str(archive), str(partial)], ROOT, name)
        archive.unlink()
    partial.rename(root)


def mirror() -> str:
    """Where this machine's apt gets Debian from."""
    found = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    sites = [line for line in found.stdout.splitlines() if line.rstrip("/").endswith("/debian")]
    if not sites:
        raise CannotFetch("Neovim 0.11 or newer is not on PATH, and apt here knows no Debian to get it from.")
    return sites[0].rstrip("/")


def packages(site: str) -> dict[str, dict[str, str]]:
    text = lzma.decompress(get(f"{site}/dists/{SUITE}/main/binary-amd64/Packages.xz", "package index")).decode()
    index: dict[str, dict[str, str]] = {}
    for stanza in text.split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][\w-]*): (.*)$", stanza, re.MULTILINE))
        if "Package" in fields:
            index.setdefault(fields["Package"], fields)
    return index


def needed(package: str, index: dict[str, dict[str, str]]) -> list[str]:
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


def call(command: list[str], folder: Path, what: str, env: dict[str, str] | None = None) -> None:
    print(f"fetching {what} …", flush=True)
    found = subprocess.run(["nice", *command], cwd=folder, env=env, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        last = "\n".join((found.stdout + found.stderr).strip().splitlines()[-15:])
        raise CannotFetch(f"cannot get {what}: {' '.join(command)} failed\n{last}")


def main() -> int:
    if os.environ.get("QVR_E2E") == "skip":
        print("QVR_E2E=skip: the real editors are not fetched")
        return 0
    try:
        print("code-server", CODE_SERVER, "in", code_server())
        print("chromium", chromium())
        print("neovim", " ".join(neovim()))
    except CannotFetch as error:
        print(f"the editors cannot be fetched: {error}\nSet QVR_E2E=skip to go on without them.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
