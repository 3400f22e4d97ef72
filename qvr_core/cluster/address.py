"""Which cluster is meant: `local[4]`, `tcp://host:port`, `tls://host:port`, `slurm[20]`, or `none`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

FORMS = "`local[N]`, `tcp://HOST:PORT`, `tls://HOST:PORT`, `slurm[N]` or `none`"
_PATTERN = r"(?P<kind>local|slurm)(\[(?P<count>[1-9]\d{0,4})\])?|(?P<scheme>tcp|tls)://(?P<place>\S+:\d{1,5})"


@dataclass(frozen=True, slots=True)
class Address:
    """A cluster: one of this machine, a scheduler that runs somewhere, or jobs of SLURM."""

    kind: Literal["local", "scheduler", "slurm"]
    count: int | None = None
    """Workers that are asked for."""
    place: str = ""
    """`tcp://host:port` of a scheduler."""


def address_of(text: str) -> Address | None:
    """The cluster that `text` names; None for `none`.  Raises ValueError."""
    if text == "none":
        return None
    found = re.fullmatch(_PATTERN, text)
    if found is None:
        raise ValueError(f"`cluster` is {FORMS}, not `{text}`")
    if found["scheme"]:
        return Address("scheduler", place=text)
    count = int(found["count"]) if found["count"] else None
    return Address("slurm" if found["kind"] == "slurm" else "local", count)
