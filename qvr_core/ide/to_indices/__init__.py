"""Plates as the first edition wrote them (`: School`, `via`, `at`, `iid_over`), rewritten into indices."""
