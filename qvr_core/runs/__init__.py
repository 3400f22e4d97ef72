"""Runs: configuration, events, the run directory, and the worker process that fits a program.

`config`, `protocol`, `store` and `client` never import torch: the language server and the command line use them.
"""
