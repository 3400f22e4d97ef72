"""Cells that the data of an observed step leave out: found, filled in, left out."""
