"""Products with weights on a CPU."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm import ops, paddle_compat
from paddle_tfm.kernels import Call, function
from paddle_tfm.kernels.cpu import products
from paddle_tfm.protocols import Kernel


class LinearByProducts(Kernel):
    """The product with its bias, and its gradients, by the libraries in Paddle's wheel, in float32 or bfloat16. Where
    they are not in use (`train.products`), the bias is broadcast by a matrix product: its gradient is one too, where
    Paddle's sum over rows takes a fifth of a training step. In a search Paddle's product, without a look at a flag."""

    of = ops.linear
    device = "cpu"

    def fits(self, call: Call) -> bool:
        x, weight, bias, transpose = call.args
        tensors = (x, weight) if bias is None else (x, weight, bias)
        if call.mode.phase == "search":
            return bias is not None and not transpose
        if not all(map(products.is_plain, tensors)):
            return False
        inner, width = weight.shape[::-1] if transpose else weight.shape
        if x.shape[-1] != inner or (bias is not None and bias.shape != [width]):
            return False  # Paddle does what can be done, or says what is wrong
        return call.mode.products is not None or bias is not None

    def run(self, call: Call) -> Tensor:
        x, weight, bias, transpose = call.args
        if call.mode.phase == "search":
            return paddle_compat.linear(x, weight, bias)
        if call.mode.products is not None:
            tensors = (x, weight) if bias is None else (x, weight, bias)
            return function.apply(products.Linear(transpose, call.mode.products, call.cache), *tensors)
        ones = paddle.ones([*x.shape[:-1], 1], x.dtype)
        return paddle.matmul(x, weight, transpose_y=transpose).add_(paddle.matmul(ones, bias.unsqueeze(0)))
