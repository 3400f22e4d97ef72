"""Data with types: tables and arrays laid along the sets that a program declares.  Loads no numpy, torch or polars."""
