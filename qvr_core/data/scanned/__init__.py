"""Parquet tables larger than memory: looked through once in a stream, then read by blocks of rows."""
