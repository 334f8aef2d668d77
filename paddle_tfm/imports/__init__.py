"""Models that others trained, as runs: what their files ask for, in components of ours, and the proof that these compute
the same."""
