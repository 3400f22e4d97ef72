"""What leads out of a text: imports, data files named in strings, the pages of diagnostics named in comments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_core.diagnostic_pages import page_of
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.tree.names import Span
from qvr_lsp.uris import path_of, uri_of, uri_of_location

if TYPE_CHECKING:
    from qvr_lsp.documents import Document
    from qvr_lsp.language_server import QvrLanguageServer

STRING = re.compile(r'\bfrom\s+"([^"\\\n]+)"')
URL = re.compile(r"https?://[^\s)>\"]+")
CODE = re.compile(r"\b(?:error|warning|hint)\[([a-z-]+)\]")
MAX_LINKS = 500


def links_of(ls: QvrLanguageServer, document: Document) -> list[types.DocumentLink]:
    path = path_of(document.uri)
    folder = ls.workspace.root_of(path) if path is not None else None
    links = import_links(document)
    of_imports = {link.range.start.line for link in links}
    for number, line in enumerate(document.lines):
        if '"' not in line and "#" not in line:
            continue
        found: list[tuple[tuple[int, int], str | None]] = []
        if folder is not None and number not in of_imports:
            found += [(match.span(1), uri_of(folder / match[1])) for match in STRING.finditer(line)]
        if "#" in line:
            found += [(match.span(), match[0]) for match in URL.finditer(line)]
            pages = ((match.span(1), page_of(match[1])) for match in CODE.finditer(line))
            found += [(span, uri_of(page)) for span, page in pages if page is not None]
        for (start, end), target in found:
            if target is not None:
                stretch = Range(Cursor(number, start), Cursor(number, end))
                links.append(types.DocumentLink(document.range(stretch), target))
        if len(links) >= MAX_LINKS:
            break
    return links


def import_links(document: Document) -> list[types.DocumentLink]:
    """The paths of imports, each to its file."""
    snapshot = document.snapshot
    links: list[types.DocumentLink] = []
    for each in snapshot.table.imports[:MAX_LINKS]:
        start, end = each.decl.path.span
        if each.module is not None and (stretch := snapshot.find(Origin(each.uid, Span(start + 1, end - 1)))):
            links.append(types.DocumentLink(document.range(stretch), uri_of_location(each.module.location)))
    return links
