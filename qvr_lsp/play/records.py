"""What a page that cannot read files wants of a run: its events, its figures, and what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_lsp.rpc import INVALID_PARAMS, REQUEST_FAILED, Json, RpcError
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_lsp.session import Session

MOST_EVENTS = 20_000
"""The first and the last ones of a longer log."""


def run(session: Session, params: Json) -> Json:
    """`{runId, uri}` → `{events, summary, config, program}`: of a run of the folder that a file belongs to.  `summary`
    is null where the run left none."""
    from qvr_core.runs.record.files import DamagedFile
    from qvr_core.runs.record.store import NoSuchRun, RunStore
    from qvr_core.runs.record.summary import read_summary

    path = path_of(params["uri"])
    if path is None:
        raise RpcError(INVALID_PARAMS, "`uri` is that of no file")
    store = RunStore(session.workspace.root_of(path))
    if params["runId"] not in store.names():
        raise RpcError(INVALID_PARAMS, f"no run `{params['runId']}` in {store.folder}")
    try:
        found = store.open(params["runId"])
        job = found.job()
        events = [event.model_dump(mode="json", exclude_none=True) for event in found.events()]
        summary = read_summary(found)
    except (DamagedFile, NoSuchRun, OSError) as error:
        raise RpcError(REQUEST_FAILED, str(error)) from error
    if len(events) > MOST_EVENTS:
        events = [*events[: MOST_EVENTS // 2], *events[-MOST_EVENTS // 2 :]]
    return {
        "events": events,
        "summary": None if summary is None else summary.model_dump(mode="json", exclude_none=True),
        "config": job.config.model_dump(mode="json"),
        "program": job.text,
    }
