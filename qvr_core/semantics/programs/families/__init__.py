"""Families that a file declares, and what draws from families are given."""
