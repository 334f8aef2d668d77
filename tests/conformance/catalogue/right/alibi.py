"""ALiBi: the twin of mutants of a bias."""

import paddle

from paddle_tfm.protocols import PositionalEncoding


class Twin(PositionalEncoding):
    def __init__(self, num_heads: int):
        super().__init__()
        slopes = 2.0 ** (-8.0 * paddle.arange(1, num_heads + 1).astype("float64") / num_heads)
        self.register_buffer("slopes", slopes.astype(paddle.get_default_dtype()), persistable=False)

    def bias(self, q_positions, k_positions):
        distance = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs().unsqueeze(1)
        return -distance.astype(self.slopes.dtype) * self.slopes.reshape([1, -1, 1, 1])
