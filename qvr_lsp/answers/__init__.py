"""What features import when they are asked: what takes the analyser, or more than a few lines."""
