"""Benchmarks of training steps (`step.measure`) and of decoding (`decode.measure_decoding`), beside other libraries."""
