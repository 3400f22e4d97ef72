"""What a page that cannot read files wants of a run: its events, its figures, and what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygls.exceptions import JsonRpcInvalidParams

from qvr_lsp.json_values import Json
from qvr_lsp.messages import RecordParams
from qvr_lsp.protocol import RequestFailed
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_lsp.language_server import QvrLanguageServer

MOST_EVENTS = 20_000
"""The first and the last ones of a longer log."""


def run(ls: QvrLanguageServer, params: RecordParams) -> Json:
    """`{runId, uri}` → `{events, summary, config, program}`: of a run of the folder that a file belongs to.  `summary`
    is null where the run left none."""
    from qvr_core.runs.record.atomic_files import DamagedFile
    from qvr_core.runs.record.store import NoSuchRun, RunStore
    from qvr_core.runs.record.summary import read_summary

    path = path_of(params.uri)
    if path is None:
        raise JsonRpcInvalidParams("`uri` is that of no file")
    store = RunStore(ls.workspace.root_of(path))
    if params.run_id not in store.names():
        raise JsonRpcInvalidParams(f"no run `{params.run_id}` in {store.folder}")
    try:
        found = store.open(params.run_id)
        job = found.job()
        events = [event.model_dump(mode="json", exclude_none=True) for event in found.events()]
        summary = read_summary(found)
    except (DamagedFile, NoSuchRun, OSError) as error:
        raise RequestFailed(str(error)) from error
    if len(events) > MOST_EVENTS:
        events = [*events[: MOST_EVENTS // 2], *events[-MOST_EVENTS // 2 :]]
    return {
        "events": events,
        "summary": None if summary is None else summary.model_dump(mode="json", exclude_none=True),
        "config": job.config.model_dump(mode="json"),
        "program": job.text,
    }
