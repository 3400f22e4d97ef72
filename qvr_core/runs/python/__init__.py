"""What Python is given of a run."""
