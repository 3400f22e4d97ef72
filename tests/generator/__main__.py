"""`python -m tests.generator --from SEED --count N`: compare many programs, on all cores."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from functools import partial

from tests.generator.running import ENGINES, Tally, run

CHUNK = 250
"""Seeds that one process takes at a time."""


def main() -> int:
    """Differences as they are found; their number and coverage at the end.  1 where there was a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.generator", description=__doc__)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="SEED", help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many seeds")
    parser.add_argument("--engines", default=",".join(ENGINES), help=f"which of {', '.join(ENGINES)}")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--as-found", action="store_true", help="print differences as they are, without shrinking")
    parser.add_argument("--coverage", action="store_true", help="print the table of features and pairs")
    arguments = parser.parse_args()
    last = arguments.first + arguments.count
    chunks = [range(at, min(at + CHUNK, last)) for at in range(arguments.first, last, CHUNK)]
    task = partial(run, engines=arguments.engines.split(","), shrink=not arguments.as_found)
    total = Tally()
    with multiprocessing.Pool(arguments.processes) as pool:
        for tally in pool.imap_unordered(task, chunks):
            total.merge(tally)
            for finding in tally.findings:
                print(finding.text, flush=True)
            done = total.coverage.programs
            print(f"# {done} programs, {len(total.findings)} differences", flush=True)
    if arguments.coverage:
        print("\n".join(total.coverage.lines()))
    words = ", ".join(f"{name} {n} ({total.undefined[name]} without a number)" for name, n in total.compared.items())
    print(
        f"{total.coverage.programs} programs, seeds {arguments.first} to {last - 1}: {words}; "
        f"{len(total.findings)} differences"
    )
    return 1 if total.findings else 0


if __name__ == "__main__":
    sys.exit(main())
