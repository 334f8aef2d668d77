"""Group normalization of each token: layer normalization within groups of its channels."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.language import _
from paddle_tfm.protocols import Norm
from paddle_tfm.validators import positive


class GroupNorm(Norm):
    """Group normalization over groups of each token's channels (Wu & He 2018, arXiv:1803.08494).

    The C channels are cut into G runs of C / G. Within each: z = (x − mean) / sqrt(variance + eps), mean and (biased)
    variance over that token's channels of the group; then y = z · weight + bias, weight and bias [C]. One group is
    `layer`. x [B, T, C] → [B, T, C]; `valid` and `positions` do not matter.

    The paper's images are normalized over a group's channels and all pixels together. Over all positions of a sentence
    that would let the decoder see the future and padding count, so that here a token is normalized by itself.

    Options: `groups` is G; `eps` is added to the variance.

    Raises:
        ValueError: `groups` does not cut d_model into groups of two channels or more (one alone would always be 0), or
            `eps` is not positive.
    """

    invariances = frozenset({"scale", "shift"})

    def __init__(self, d_model: int, groups: int = 4, eps: float = 1e-5):
        super().__init__()
        if groups < 1 or d_model % groups or d_model == groups:
            raise ValueError(
                _(
                    "`groups` must divide the width {d_model} into groups of two channels or more, but is {groups}"
                ).format(d_model=d_model, groups=groups)
            )
        positive(eps=eps)
        self.groups, self.eps = groups, eps
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True)

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        rows = ops.flatten(x, self.weight.dtype)  # [N, C]
        parts = rows.reshape([-1, rows.shape[1] // self.groups])  # [N, C] -> [N·G, C/G]
        unit = ops.row_of_ones(parts)
        centred = ops.add_outer(parts, -ops.mean_over_channels(parts), unit)
        scale = paddle.rsqrt(ops.mean_over_channels(paddle.square(centred)) + self.eps)  # [N·G, 1]
        normal = (centred * ops.outer(scale, unit)).reshape(rows.shape)  # [N·G, C/G] -> [N, C]
        ones = ops.column_of_ones(rows)
        scaled = normal * ops.outer(ones, self.weight.unsqueeze(0))
        return ops.restore(ops.add_outer(scaled, ones, self.bias.unsqueeze(0)), x)
