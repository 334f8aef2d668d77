"""Layer normalization, as in the original Transformer."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn
from paddle.autograd import PyLayer
from paddle_tfm_plugins.norm import _algebra as algebra

from paddle_tfm.protocols import Norm


class _LayerNormOnCPU(PyLayer):
    """`F.layer_norm` with the gradients written out as matrix products: a third of the time of Paddle's own."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        ctx.wanted = [not tensor.stop_gradient for tensor in (x, weight, bias) if tensor is not None]
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensor()
        shape, width = x.shape, x.shape[-1]
        x, g = x.reshape([-1, width]), g.reshape([-1, width])  # [..., C] -> [N, C]
        ones, column = algebra.row_of_ones(x), weight.reshape([width, 1]) / width
        centred = algebra.add_outer(x, -algebra.mean_over_channels(x), ones)
        scale = paddle.rsqrt(algebra.mean_over_channels(paddle.square(centred)) + ctx.eps)  # [N, 1]
        product = g * centred
        grad_weight = algebra.sum_over_rows(scale, product).reshape([-1])
        # h = weight · g:  grad_x = scale · (h − mean(h) − centred · scale² · mean(h · centred))
        inner = algebra.add_outer(g * weight, -paddle.matmul(g, column), ones)
        slope = paddle.matmul(product, column) * paddle.square(scale)  # [N, 1]
        grad_x = ((inner - centred * slope) * scale).reshape(shape)  # [N, C] -> [..., C]
        grad_bias = algebra.sum_over_rows(algebra.column_of_ones(g), g).reshape([-1])
        gradients = (grad_x, grad_weight, grad_bias)
        return tuple(gradient if wanted else None for gradient, wanted in zip(gradients, ctx.wanted))  # Paddle insists


class LayerNorm(Norm):
    """Layer normalization over each token's channels (arXiv:1607.06450).

    y = (x − mean) / sqrt(variance + eps) · weight + bias; mean and (biased) variance over C. x [B, T, C] → [B, T, C];
    `valid` and `positions` do not matter.

    Options: `eps` is added to the variance (Paddle allows at most 0.001); `bias` false leaves the shift out.

    Raises:
        ValueError: `eps` is not in (0, 0.001].
    """

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True):
        super().__init__()
        if not 0.0 < eps <= 1e-3:
            raise ValueError(f"`eps` must be in (0, 0.001], but is {eps}")
        self.eps = eps
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True) if bias else None

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        if algebra.by_products(x) and paddle.is_grad_enabled() and x.dtype == self.weight.dtype:
            return _LayerNormOnCPU.apply(x, self.weight, self.bias, self.eps)
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps:g}, bias={self.bias is not None}"
