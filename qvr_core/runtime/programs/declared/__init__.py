"""Families that a file declares, at run time."""
