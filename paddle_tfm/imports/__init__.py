"""Models that others trained, as runs: what their files ask for, in components of ours, and the proof that these
compute the same."""

PROOF = "proof.json"  # of an imported run: what it was made of, and what its own toolkit wrote beside what it writes
