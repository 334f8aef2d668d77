"""Decoding one step at a time, and the constraints that hold for every search."""
