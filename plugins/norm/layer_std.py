"""Layer normalization by the standard deviation, as the Annotated Transformer writes it."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.language import _
from paddle_tfm.protocols import Norm
from paddle_tfm.validators import positive


class LayerStd(Norm):
    """Layer normalization that divides by std + eps, as in the Annotated Transformer (cf. Ba 2016, arXiv:1607.06450).

    y = weight · (x − mean) / (std + eps) + bias, std over C with C − 1 in the denominator and `eps` outside the root.
    x [B, T, C] → [B, T, C]; `valid` and `positions` do not matter. Where all channels are equal (std = 0), y = bias,
    and std counts as constant in the gradient, which is therefore finite (up to 1 / eps).

    Options: `eps` is added to the standard deviation.

    Raises:
        ValueError: `eps` is not positive, or `d_model` is below 2.
    """

    invariances = frozenset({"scale", "shift"})

    def __init__(self, d_model: int, eps: float = 1e-6):
        super().__init__()
        if d_model < 2:
            raise ValueError(
                _("`d_model` must be at least 2 for a standard deviation, but is {d_model}").format(d_model=d_model)
            )
        positive(eps=eps)
        self.eps = eps
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True)

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        rows = ops.flatten(x, self.weight.dtype)
        width = rows.shape[1]
        centred = ops.add_outer(rows, -ops.mean_over_channels(rows), ops.row_of_ones(rows))
        variance = ops.mean_over_channels(paddle.square(centred)) * (width / (width - 1))  # [N, 1]
        spread = variance > 0.0
        root = paddle.sqrt(paddle.where(spread, variance, paddle.ones_like(variance)))  # no square root at 0: its
        std = paddle.where(spread, root, paddle.zeros_like(root))  # gradient is infinite, and infinite · 0 is NaN
        scaled = centred * ops.outer(1.0 / (std + self.eps), self.weight.unsqueeze(0))
        return ops.restore(ops.add_outer(scaled, ops.column_of_ones(rows), self.bias.unsqueeze(0)), x)
