"""`torchrun` for one machine, without its own report of a failure: the run has told what went wrong.

python -m qvr_core.runs.client.launch 4 run svi model.qvr …    the command line in 4 processes
"""

from __future__ import annotations

import logging
import os
import sys


def main(processes: str, *arguments: str) -> int:
    """Run `qvr ARGUMENTS` in so many processes; 1 where one of them failed."""
    # What torchrun would set as well, with a page of warning.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    try:
        given = ["--standalone", f"--nproc-per-node={processes}", "-m", "qvr_core.cli", *arguments]
        torchrun.run(torchrun.parse_args(given))
    except ChildFailedError as failed:
        _, first = failed.get_first_failure()
        return 2 if first.exitcode == 2 else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
