"""Which guide a fit by svi has: one that the file writes as a program, or an automatic one."""

from __future__ import annotations

from typing import get_args

from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runs.record.config import GuideName
from qvr_core.semantics.language.spelling import closest


def own_guide(prepared: Prepared) -> str | None:
    """The name of the file's guide that the run takes; None where it takes an automatic one.

    Raises `Refused` for a name that is neither, and where `auto` would have to choose among several.
    """
    name, own = prepared.job.config.guide, list(prepared.guides)
    program = prepared.program.name
    if name == "auto":
        if len(own) > 1:
            listed = ", ".join(f"`{one}`" for one in own)
            message = f"`{program}` has several guides in this file, {listed}"
            raise Refused("guide", message, site=own[0], fixes=tuple(f"Set guide = {one}" for one in own))
        return own[0] if own else None
    if name in own:
        return name
    if name in get_args(GuideName):
        return None
    automatic = [one for one in get_args(GuideName) if one != "auto"]
    near = closest(name, [*own, *automatic])
    has = f"its guides are {', '.join(f'`{one}`' for one in own)}" if own else "the file writes none for it"
    message = f"`{name}` is no guide of `{program}`: {has}; the automatic ones are {', '.join(automatic)}"
    raise Refused("guide", message, fixes=(f"Set guide = {near}",) if near else ())
