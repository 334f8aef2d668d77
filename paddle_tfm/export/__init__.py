"""Runs for engines made for decoding: what they hold, the folder that they load, the proof that it computes the same,
and translating through it."""
