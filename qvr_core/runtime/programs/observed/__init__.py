"""What is observed that is no data name."""
