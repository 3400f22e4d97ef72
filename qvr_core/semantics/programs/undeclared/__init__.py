"""Data that a program reads without a `data` line."""
