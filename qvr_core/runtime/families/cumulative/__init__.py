"""Probabilities of tails and intervals, and their inverse."""
