"""A program's log density as a recorded graph."""
