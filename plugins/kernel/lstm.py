"""An LSTM over a text by Paddle's kernel."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm import paddle_compat, place
from paddle_tfm.kernels import Call
from paddle_tfm.protocols import Kernel
from paddle_tfm_plugins.attention.recurrent import lstm


class LSTMByPaddle(Kernel):
    """The loop over tokens in C++, in a third of the time (on a CPU, d_model 64).

    Its gradient fails where an input needs none (a frozen weight, `paddle.grad`). So all inputs are parts of one
    tensor: then each gets a gradient whenever any does. It can read a text backwards too, which is not used: where
    lengths differ and there is a state to begin with, the gradient of the recurrent weights is then wrong (Paddle
    3.3.1).
    """

    of = lstm
    device = "cpu"

    def fits(self, call: Call) -> bool:
        x = call.args[0]
        return x.dtype == paddle.float32 and place.on_cpu(x) and paddle_compat.has_lstm()

    def run(self, call: Call) -> tuple[Tensor, tuple[Tensor, ...]]:
        x, lengths, after, w_input, w_hidden, bias = call.args
        parts = [x, *after, w_input, w_hidden, bias, paddle.zeros_like(bias)]
        if paddle.is_grad_enabled():
            together = paddle.concat([part.reshape([-1]) for part in parts])
            apart = together.split([part.size for part in parts])
            parts = [part.reshape(like.shape) for part, like in zip(apart, parts)]
        x, h, c, *weights = parts
        outputs, (h, c) = paddle_compat.lstm(x, h, c, weights, lengths)
        return outputs, (h, c)
