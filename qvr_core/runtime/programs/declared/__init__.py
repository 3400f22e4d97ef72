"""Families that a file declares, and what its functions share, at run time."""
