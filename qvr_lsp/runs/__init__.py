"""Runs and fits of the open documents: worker processes, and what they left."""
