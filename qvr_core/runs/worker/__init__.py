"""The worker process: its job, its events, and draws from what was fitted."""
