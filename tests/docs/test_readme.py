"""The README's tour is what it says: its commands are run, its links lead somewhere, its program is the example."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = re.findall(r"<!-- tour(?:: (\d+))? -->\n```(sh|python)\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the tour uses, so that its files do not land in the repository."""
    folder = tmp_path_factory.mktemp("tour")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name in ("README.md", "qvr.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


def test_there_is_a_tour() -> None:
    assert len(TOUR) >= 6


@pytest.mark.parametrize(("status", "language", "code"), TOUR, ids=[code.splitlines()[0][:40] for _, _, code in TOUR])
def test_the_tour_works_as_written(status: str, language: str, code: str, checkout: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "160"}
    command = ["bash", "-euc", code] if language == "sh" else [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=2 * HANG, check=False
    )
    assert done.returncode == int(status or 0), done.stdout + done.stderr
    shown = re.search(re.escape(code) + r"```\n\n```text\n(.*?)```", README, re.DOTALL)
    if shown:
        assert shown[1].strip() in done.stdout + done.stderr


def test_the_program_shown_is_the_example() -> None:
    shown = re.search(r"```qvr\n(.*?)```", README, re.DOTALL)
    assert shown
    assert shown[1].strip() in (ROOT / "examples" / "bidirectional_rnn_lm.qvr").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", ["README.md", "examples/README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
)
def test_links_and_pictures_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_examples_page_names_every_example() -> None:
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    missing = [path.stem for path in (ROOT / "examples").glob("*.qvr") if f"`{path.stem}`" not in text]
    assert missing == []
