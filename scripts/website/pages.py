"""What the site holds: which pages in which order, and their texts as the site's Markdown wants them.

The pages keep the places that they have in the repository, so a link that works there works on the site.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

GUIDE = (
    "mistakes",
    "from-stan-and-pymc",
    "export",
    "networks",
    "python",
    "runs",
    "repl",
    "play",
    "std",
    "diagrams",
    "dependence",
    "editors",
    "teams",
    "many-machines",
    "results",
)
REFERENCE = ("reference", "protocol", "architecture")
PROJECT = ("CONTRIBUTING", "CHANGELOG", "SECURITY")
GALLERIES = {"examples/gallery.md": "examples", "examples/statistics/gallery.md": "examples/statistics"}
"""The pages of programs, which are made, and the folder that each shows."""

API = {
    "qvr": ("From Python and notebooks", "qvr", ""),
    "dsl": ("Load and check", "qvr_core.dsl", ""),
    "program": ("A loaded program", "qvr_core.runtime.programs.program", "inherited_members: true"),
    "inference": ("Inference", "qvr_core.inference", ""),
    "runs": ("Runs read back", "qvr_core.runs", ""),
    "errors": ("Errors", "qvr_core.runtime.values.errors", ""),
    "notebook": ("Progress in a notebook", "qvr.notebook", ""),
}
"""The pages of the Python interface, which are made from docstrings: title, module, and how it is shown."""

LINK = re.compile(r"(!?\[[^\]\n]*\]\()([^)\s#]*)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^ *(```+|~~~+)")

Navigation = list["str | dict[str, Navigation]"]


def navigation() -> Navigation:
    """The pages by section; what docs/ has beyond the lists above stands at the end of the guide."""
    docs = sorted(page.stem for page in (ROOT / "docs").glob("*.md"))
    more = [name for name in docs if name not in GUIDE + REFERENCE]
    codes = sorted(page.name for page in (ROOT / "docs/diagnostics").glob("*.md") if page.stem != "README")
    analyses = sorted(page.name for page in (ROOT / "examples/analyses").glob("*.md") if page.stem != "README")
    return [
        {"Guide": ["README.md", *(f"docs/{name}.md" for name in (*GUIDE, *more))]},
        {
            "Examples": [
                "examples/README.md",
                "examples/gallery.md",
                "examples/statistics/README.md",
                "examples/statistics/gallery.md",
                {"Analyses": ["examples/analyses/README.md", *(f"examples/analyses/{name}" for name in analyses)]},
            ]
        },
        {"Reference": [f"docs/{name}.md" for name in REFERENCE]},
        {"Python": [f"api/{name}.md" for name in API]},
        {"Diagnostics": ["docs/diagnostics/README.md", *(f"docs/diagnostics/{name}" for name in codes)]},
        {"Project": [f"{name}.md" for name in PROJECT if (ROOT / f"{name}.md").is_file()]},
    ]


def listed(entries: Navigation) -> Iterator[str]:
    """The pages of a navigation, from the top to the bottom."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for below in entry.values():
                yield from listed(below)


def assemble(folder: Path) -> None:
    """Write every page that is not made, and the files that they link to, into the empty `folder`."""
    made = {*GALLERIES, *(f"api/{name}.md" for name in API)}
    for page in listed(navigation()):
        if page in made:
            continue
        text = (ROOT / page).read_text(encoding="utf-8")
        text = "\n".join(map(to_shades, text.splitlines())) + "\n"
        for target in targets(page, text):
            if target.is_file() and target.suffix != ".md":
                copy = folder / target.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(target, copy)
        write(folder / page, weight(page) + prose(text, lambda line, page=page: to_files(page, line)))
    for name, (title, module, options) in API.items():
        how = f"    options:\n      {options}\n" if options else ""
        write(folder / "api" / f"{name}.md", f"# {title}\n\n`{module}`\n\n::: {module}\n{how}")


def weight(page: str) -> str:
    """What the search is told of a page: guide and reference stand before the many pages of diagnostics."""
    boost = 0.3 if page.startswith("docs/diagnostics/") else 3 if page.startswith("docs/") else 1
    return f"---\nsearch:\n  boost: {boost}\n---\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def targets(page: str, text: str) -> Iterator[Path]:
    """What the relative links of a page lead to, there or not."""
    seen: list[str] = []
    prose(text, lambda line: seen.append(line) or line)
    for line in seen:
        for _, target, _ in LINK.findall(line):
            if target and "://" not in target:
                yield (ROOT / page).parent.joinpath(target).resolve()


SHADED = re.compile(r"^(!\[[^\]]*\]\()([^)\s]*)-(?:light|dark)(\.png)\)$")


def to_shades(line: str) -> str:
    """A line that is a picture of which there is a light and a dark one, as both: a page shows the one that suits."""
    match = SHADED.match(line)
    return (
        line
        if match is None
        else " ".join(f"{match[1]}{match[2]}-{shade}{match[3]}#only-{shade})" for shade in ("light", "dark"))
    )


def to_files(page: str, line: str) -> str:
    """A line whose links to folders lead to the README there: the site has no pages for folders."""

    def to_file(match: re.Match[str]) -> str:
        here, target, rest = match.groups()
        inside = bool(target) and "://" not in target and (ROOT / page).parent.joinpath(target).is_dir()
        return f"{here}{target.rstrip('/')}/README.md{rest}" if inside else match[0]

    return LINK.sub(to_file, line)


def prose(text: str, change: Callable[[str], str]) -> str:
    """A page with the lines outside its blocks of code changed, and written as the site's Markdown wants them.

    There a list needs an empty line above it, and a bar within code in a table needs no backslash.
    """
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence:
            if re.match(r"(- |1\. )", line) and lines and lines[-1] and not re.match(r"(- |\d+\. | )", lines[-1]):
                lines.append("")
            if line.startswith("|"):
                line = re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line)
            line = change(line)
        lines.append(line)
    return "\n".join(lines) + "\n"
