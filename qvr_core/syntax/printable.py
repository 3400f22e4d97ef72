"""Text from outside, made fit to be shown: names of columns, labels, comments, words of other programs."""

from __future__ import annotations

import re

# Control characters but for tab and line feed, and the marks that turn the reading direction round.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


def printable(text: str) -> str:
    """The text with every character that a terminal or an editor would obey rather than show written out: `\\x1b`."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def harmless_markdown(text: str) -> str:
    """A comment as Markdown that ends where it ends and loads nothing: fences are closed, images are links, tags are
    text."""
    lines: list[str] = []
    fence = ""
    for line in printable(text).split("\n"):
        mark = _FENCE.match(line)
        if not fence:
            fence = mark[1] if mark else ""
            lines.append(line if mark else _outside_code(line))
            continue
        if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        lines.append(line)
    return "\n".join([*lines, fence] if fence else lines)


def _outside_code(line: str) -> str:
    """A line without images and tags, except in its code."""
    made: list[str] = []
    end = 0
    for found in _CODE.finditer(line):
        made += [_plain(line[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*made, _plain(line[end:])])


def _plain(text: str) -> str:
    return text.replace("![", "[").replace("<", "&lt;")
