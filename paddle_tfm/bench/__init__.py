"""How fast a training step and a search are, beside the same in other libraries."""

from paddle_tfm.bench.decode import measure_decoding
from paddle_tfm.bench.step import SIDES, SIZES, measure

__all__ = ["SIDES", "SIZES", "measure", "measure_decoding"]
