"""A run in the processes that `torchrun` started: every one calls this, the leading one makes the job and shows it."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable

from qvr_core.arrays.engine import arrays
from qvr_core.runs.fit.distributed import join, leave
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.record.protocol import Event, Job
from qvr_core.runs.worker.job import conduct
from qvr_core.runs.worker.pipes import PR_SET_PDEATHSIG


def run_together(make_job: Callable[[], Job], send: Callable[[Event], None], device: str) -> int:
    """Fit one program in all processes; this process' exit status."""
    if sys.platform == "linux":
        # torchrun puts each process into a session of its own: a signal to its group would not reach them.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    team = join(device)
    shared = [make_job().model_dump_json() if team.leads else ""]
    arrays.distributed.broadcast_object_list(shared)
    stop = Stop()
    signal.signal(signal.SIGINT, stop.cancel)
    signal.signal(signal.SIGTERM, stop.cancel)
    try:
        return conduct(Job.model_validate_json(shared[0]), stop, send)
    finally:
        leave()
