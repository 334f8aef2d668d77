"""Finished runs: read, compared in what they were trained from, and grouped so that they can be paired."""
