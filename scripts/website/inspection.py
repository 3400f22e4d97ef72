"""Does a built site stand alone?  No page of it may fetch anything from elsewhere when it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {
    "audio": "src", "embed": "src", "iframe": "src", "img": "src", "input": "src", "link": "href", "object": "data",
    "script": "src", "source": "src", "track": "src", "video": "src",
}  # fmt: skip
"""The elements that a browser fetches without being asked, by the attribute that says from where."""
NOT_FETCHED = {"canonical", "next", "prev", "alternate", "license", "author"}
"""What a `link` may be for without being fetched."""
IN_STYLES = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])((?:https?:)?//[^'")\s]+)""")
IN_SCRIPTS = re.compile(
    r"""(?:importScripts|import|fetch|\.src\s*=|watchScript|Worker)\s*\(?\s*["'`]((?:https?:)?//[^"'`]+)"""
)


def outside(site: Path) -> list[str]:
    """What the pages, styles and scripts of a site fetch from other places."""
    found: list[str] = []
    for path in sorted(site.rglob("*")):
        place = path.relative_to(site).as_posix()
        if path.suffix == ".html":
            page = read(path)
            found += [f"{place}: {target}" for target in (*page.fetched, *_in_text(page.inline)) if _outside(target)]
        elif path.suffix in (".css", ".js"):
            found += [f"{place}: {target}" for target in _in_text(path.read_text(encoding="utf-8"))]
    return list(dict.fromkeys(found))


def dead(site: Path) -> list[str]:
    """Links of the pages to files or anchors that the site does not have."""
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    wrong: list[str] = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
                wrong.append(f"{path.relative_to(site).as_posix()}: {link}")
    return wrong


class Page(HTMLParser):
    """What a page fetches, links to, and can be linked at."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = {"", "__top"}
        self.inline = ""
        self._raw = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.inline += given.get("style", "") + "\n"
        self._raw = tag in ("style", "script")
        passive = tag == "link" and given.get("rel", "") in NOT_FETCHED
        if (attribute := FETCHED.get(tag)) and given.get(attribute) and not passive:
            self.fetched.append(given[attribute])
        self.fetched += [part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()]
        if tag == "a" and "href" in given:
            self.links.append(given["href"])

    def handle_endtag(self, tag: str) -> None:
        self._raw = False

    def handle_data(self, data: str) -> None:
        if self._raw:
            self.inline += data


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _in_text(text: str) -> Iterator[str]:
    yield from IN_STYLES.findall(text)
    yield from IN_SCRIPTS.findall(text)


def _outside(target: str) -> bool:
    return target.startswith("//") or urlsplit(target).scheme in ("http", "https", "ws", "wss")
