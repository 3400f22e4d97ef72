"""Units of work on Dask's workers: what crosses, what runs there, and who deals them out."""
