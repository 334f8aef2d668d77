"""Checks of what reads, cuts, scores and writes texts."""
