"""Benchmarks of training steps and of decoding, compared with other libraries."""

from paddle_tfm.bench.decode import measure_decoding
from paddle_tfm.bench.step import GROWTH, SIDES, SIZES, measure, measure_growth

__all__ = ["GROWTH", "SIDES", "SIZES", "measure", "measure_decoding", "measure_growth"]
