"""What `qvr check` does beside checking: mending files, and checking again when they change."""
