"""Tables in files, as columns: csv, parquet, ndjson."""
