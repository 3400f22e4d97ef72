"""Chains as machine code beside Stan and NumPyro, the time from a typed command to a posterior, SVI steps, many rows.

Without the environment of the others (`python -m benchmarks.engines.environment`) ours stand alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import torch

from benchmarks.engines import command_to_posterior, large, table, variational
from benchmarks.goals import Table


def main(argv: list[str]) -> int:
    """Print the table; status 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks inference")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and repeats")
    parser.add_argument("--plot", type=Path, help="draw the cost of a gradient over rows and latents into this file")
    asked = parser.parse_args(argv)
    torch.set_num_threads(1)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    goals = Table()
    table.rows(goals, asked.quick)
    for part in (command_to_posterior, variational):
        part.rows(goals, asked.quick)
    large.rows(goals, asked.quick, asked.plot)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")
    return int(goals.missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
