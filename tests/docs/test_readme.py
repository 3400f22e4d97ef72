"""The README's tour is what it says: its commands are run, its links lead somewhere, its program is the example."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forks import shell_path
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


@pytest.mark.timeout(2 * HANG * len(TOUR))
@pytest.mark.long
def test_the_tour_works_as_written(checkout: Path) -> None:
    """In one piece: what it does last is done with the runs that it made first."""
    environment = {**os.environ, "PATH": shell_path(), "COLUMNS": "160"}
    for status, language, code in TOUR:
        command = ["bash", "-euc", code] if language == "sh" else [sys.executable, "-m", "tests.script", code]
        done = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=2 * HANG, check=False
        )
        assert done.returncode == int(status or 0), code + done.stdout + done.stderr
        shown = re.search(re.escape(code) + r"```\n\n```text\n(.*?)```", README, re.DOTALL)
        if shown and "│" in shown[1]:
            assert_same_posterior(shown[1], done.stdout)
        elif shown:
            assert shown[1].strip() in done.stdout + done.stderr, code


def assert_same_posterior(shown: str, printed: str) -> None:
    """Two tables of summaries have the same rows, with means that differ by no more than sampling explains."""
    rows, found = figures(shown), figures(printed)
    assert [*rows] == [*found] and rows
    for name, (mean, sd, *_, ess) in rows.items():
        assert abs(found[name][0] - mean) < 5 * sd * (2 / ess) ** 0.5
        assert abs(found[name][1] / sd - 1) < 0.3
    assert not re.search("not mixed|diverged|few effective", printed)


def figures(table: str) -> dict[str, list[float]]:
    """Mean, sd, quantiles, R-hat and effective sample size of each row of a printed table."""
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in table.splitlines() if line[:1] == "│"]
    return {name: [float(number) for number in numbers] for name, *numbers in cells}


@pytest.mark.parametrize("name", ["bidirectional_rnn_lm", "statistics/radon"])
def test_a_program_shown_is_the_example(name: str) -> None:
    text = (ROOT / "examples" / f"{name}.qvr").read_text(encoding="utf-8")
    programs = re.findall(r"```qvr\n(.*?)```", README, re.DOTALL)
    assert any(shown.strip() in text for shown in programs)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "examples/README.md",
        "examples/statistics/README.md",
        *sorted(f"examples/analyses/{page.name}" for page in (ROOT / "examples" / "analyses").glob("*.md")),
        *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
    ],
)
def test_links_and_pictures_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_examples_page_names_every_example() -> None:
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    missing = [path.stem for path in (ROOT / "examples").glob("?*.qvr") if f"`{path.stem}`" not in text]
    assert missing == []


STATISTICS = sorted((ROOT / "examples" / "statistics").glob("?*.qvr"))


def test_the_page_of_statistical_programs_says_what_each_says_of_itself() -> None:
    text = (ROOT / "examples" / "statistics" / "README.md").read_text(encoding="utf-8")
    heads = [path.read_text(encoding="utf-8").split("\n")[:2] for path in STATISTICS]
    rows = re.findall(r"^\| \[`(\w+)`\]\(\w+\.qvr\) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    wanted = {(path.stem, about[2:].rstrip("."), shows) for path, (about, shows) in zip(STATISTICS, heads, strict=True)}
    assert {(name, about, f"# Shows: {shows}.") for name, about, shows in rows} == wanted
    assert len(rows) == len(wanted)
