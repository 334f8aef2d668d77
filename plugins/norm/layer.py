"""Layer normalization, as in the original Transformer."""

from __future__ import annotations

import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.protocols import Norm
from paddle_tfm.validators import between


class LayerNorm(Norm):
    """Layer normalization over each token's channels (Ba 2016, arXiv:1607.06450).

    y = (x − mean) / sqrt(variance + eps) · weight + bias; mean and (biased) variance over C. x [B, T, C] → [B, T, C];
    `valid` and `positions` do not matter.

    Options: `eps` is added to the variance (Paddle allows at most 0.001 on a GPU); `bias` false leaves the shift out.

    Raises:
        ValueError: `eps` is not in (0, 0.001].
    """

    invariances = frozenset({"scale", "shift"})

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True):
        super().__init__()
        between("(0, 0.001]", eps=eps)
        self.eps = eps
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True) if bias else None

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        if self.weight.stop_gradient:  # Paddle 3.3.1 would leave a frozen gain out of x's gradient
            y = F.layer_norm(x, x.shape[-1:], None, None, self.eps) * self.weight
            return y if self.bias is None else y + self.bias
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)
