"""`make docs`: the site in site/, from the README, docs/, the examples and the docstrings.

mkdocs with the theme Material builds it: search that needs no server, links and anchors checked, one Python tool.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from scripts.website.gallery import galleries
from scripts.website.inspection import dead, outside
from scripts.website.pages import ROOT, assemble, navigation

SETTINGS = Path(__file__).with_name("mkdocs.yml")
SEARCH = 'data-md-component="search"'
PAGES = ROOT / "build" / "website"
SITE = ROOT / "site"


def main() -> int:
    """Build, then look at what was built; 1 where a link is dead or something is fetched from elsewhere."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    assemble(PAGES)
    galleries(PAGES)
    for name in ("site.css", "iframe-worker.js"):
        shutil.copyfile(Path(__file__).with_name(name), PAGES / name)
    settings: dict[str, Any] = {"docs_dir": str(PAGES), "site_dir": str(SITE), "nav": navigation(), "strict": True}
    try:
        build(load_config(str(SETTINGS), **settings))
    except Abort as problem:
        print(problem, file=sys.stderr)
        return 1
    # the page for addresses that are not there works at the root of a server only
    for spare in [*SITE.rglob("*.map"), SITE / "404.html"]:
        spare.unlink()
    _name_the_search()
    problems = [f"dead link: {one}" for one in dead(SITE)] + [f"from elsewhere: {one}" for one in outside(SITE)]
    print(*problems, sep="\n", file=sys.stderr)
    count = len(list(SITE.rglob("*.html")))
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file())
    print(f"site/: {count} pages, {size / 1e6:.1f} MB")
    return 1 if problems else 0


def _name_the_search() -> None:
    """The theme's search is a dialog without a name, which readers of screens need."""
    for page in SITE.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        named = text.replace(f'{SEARCH} role="dialog"', f'{SEARCH} role="dialog" aria-label="Search"')
        page.write_text(named, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
