"""Pictures of a run, drawn through ArviZ's plots: what is chosen, how it looks, and the files it is written to."""
