"""`python -m qvr_core.cli`: the same as `qvr`."""

from qvr_core.cli import main

main()
