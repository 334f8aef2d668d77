"""How fast a training step is, beside the same step written with `paddle.nn.Transformer`."""

from paddle_tfm.bench.step import SIDES, SIZES, measure

__all__ = ["SIDES", "SIZES", "measure"]
