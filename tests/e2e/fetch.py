"""Fetch the real editors: code-server on its own Node and Neovim from Debian forky into `.cache/e2e/`; Debian's
Chromium, Emacs, the colours of Kate, LaTeX and tmux as packages.

Run by `make e2e`. What is there already is kept. Where something cannot be had, it says what and why, and fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.debian import SUITE, CannotFetch, starting, unpacked

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "e2e"
NODE = "24.21.0"
CODE_SERVER = "4.139.1"
LIBRARIES = ("libkrb5-dev", "pkg-config", "make", "g++", "libsecret-1-dev", "libx11-dev", "libxkbfile-dev")
LETTERS = ("fonts-liberation", "fonts-dejavu-core")


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


def program(name: str, packages: tuple[str, ...]) -> Path:
    """A program of Debian, installed with its packages where one of them is missing."""
    missing = [package for package in packages if shutil.which("dpkg") and not installed(package)]
    if shutil.which(name) is None or missing:
        apt(missing or list(packages))
    found = shutil.which(name)
    if found is None:
        raise CannotFetch(f"{name} is missing: apt-get install {' '.join(packages)}")
    return Path(found)


def emacs() -> Path:
    """Emacs with eglot, which versions before 29 have as a package of its own."""
    return program("emacs", ("emacs-nox", "elpa-eglot"))


def kate() -> Path:
    """The program that colours a text as Kate does."""
    return program("kate-syntax-highlighter", ("libkf5syntaxhighlighting-tools",))


def latex() -> Path:
    """LaTeX with TikZ."""
    return program("pdflatex", ("texlive-latex-base", "texlive-pictures"))


def tmux() -> Path:
    """A terminal that can be typed into and read."""
    return program("tmux", ("tmux",))


def neovim() -> list[str]:
    """The command that starts Neovim >= 0.11: the one on PATH, or Debian forky's with its own loader and libraries."""
    own = shutil.which("nvim")
    if own and recent([own], {}):
        return [own]
    try:
        root = unpacked("neovim", CACHE / "nvim")
    except CannotFetch as problem:
        raise CannotFetch(f"Neovim 0.11 or newer is not on PATH, and there is no other: {problem}") from problem
    command = ["env", f"VIMRUNTIME={root / 'usr/share/nvim/runtime'}", *starting(root, "nvim")]
    if not recent(command, {}):
        raise CannotFetch(f"the Neovim of Debian {SUITE} does not start here; look into {root}.")
    return command


def recent(command: list[str], env: dict[str, str]) -> bool:
    found = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, env={**os.environ, **env}, check=False
    )
    version = re.match(r"NVIM v(\d+)\.(\d+)", found.stdout)
    return version is not None and (int(version[1]), int(version[2])) >= (0, 11)


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
        print("emacs", emacs())
        print("kate", kate())
        print("latex", latex())
        print("tmux", tmux())
    except CannotFetch as error:
        print(f"the editors cannot be fetched: {error}\nSet QVR_E2E=skip to go on without them.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
