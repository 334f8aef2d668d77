"""The engine's training step and searches beside the same model in other libraries, in a clone: `python -m benchmarks`.

The sides take turns, each in a process of its own, so that other work on the machine slows all of them alike; ratios
are taken within a turn.
"""
