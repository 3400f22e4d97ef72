"""The comments of a program, each with the statement that it stands at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Comments:
    """`head` are those before the program; `above` and `beside` those of the statement that begins in a line."""

    head: tuple[str, ...]
    above: Mapping[int, tuple[str, ...]]
    beside: Mapping[int, str]


def comments_of(lines: Sequence[str], header: int, starts: Sequence[int]) -> Comments:
    """The comments of a text: `header` is the line of its program, `starts` those of the program's statements."""
    above: dict[int, tuple[str, ...]] = {}
    beside: dict[int, str] = {}
    head = [_comment(line) or "" for line in lines[:header] if line.startswith("#")]
    ordered = sorted(set(starts))
    end = next((number for number in range(header + 1, len(lines)) if lines[number][:1].strip()), len(lines))
    for number in range(header, end):
        found = _comment(lines[number])
        if found is None:
            continue
        alone = lines[number].lstrip().startswith("#")
        if alone:
            at = next((start for start in ordered if start > number), None)
            if at is not None:
                above[at] = (*above.get(at, ()), found)
        else:
            before = [start for start in ordered if start <= number]
            if before:
                beside[before[-1]] = " ".join(filter(None, (beside.get(before[-1]), found)))
    return Comments(tuple(head), above, beside)


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _comment(line: str) -> str | None:
    """What stands behind the `#` of a line; None without one."""
    quoted = False
    for at, character in enumerate(line):
        if character == '"' and (at == 0 or line[at - 1] != "\\"):
            quoted = not quoted
        elif character == "#" and not quoted:
            return None if line[at : at + 2] == "#[" and line[:at].strip() else _plain(line[at:].lstrip("#!").strip())
    return None
