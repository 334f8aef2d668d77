"""A recurrent network in the place of attention: the past is a state of fixed size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.kernels import examples, op
from paddle_tfm.language import _
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import Attention, Geometry, LayerSite, Mask, Norm, Tap, TokenInfo
from paddle_tfm.validators import matrix_side
from paddle_tfm_plugins.attention._dot_product import project_out
from paddle_tfm_plugins.attention._reading import Read, State, Unread


@dataclass(frozen=True)
class BothWays:
    """A text that one LSTM reads from its beginning and another from its end; a longer text is read again."""

    lstms: tuple[LSTM, LSTM]
    x: Tensor
    valid: Tensor

    def read(self) -> Read:
        both = [lstm(self.x, self.valid).outputs for lstm in self.lstms]
        return Read(paddle.concat(both, -1), ())

    def extend(self, new: BothWays) -> BothWays:
        return BothWays(self.lstms, paddle.concat([self.x, new.x], 1), paddle.concat([self.valid, new.valid], 1))

    def select(self, rows: Tensor) -> BothWays:
        return BothWays(self.lstms, self.x.index_select(rows, 0), self.valid.index_select(rows, 0))


class LSTM(nn.Layer):
    """One direction: x [B, T, C] → outputs [B, T, W], zero at padding, over which the state is carried unchanged:
    output and cell, [B, W] each."""

    def __init__(self, d_model: int, width: int, forget_bias: float, backward: bool = False):
        super().__init__()
        self.width, self.backward = width, backward
        # A matrix for each of the input gate, the forget gate, the candidate and the output gate, as Paddle's kernel
        # has it.
        self.input = self.create_parameter([4, width, d_model])
        self.hidden = self.create_parameter([4, width, width])
        start = nn.initializer.Assign(np.repeat([0.0, forget_bias, 0.0, 0.0], width))
        self.bias = self.create_parameter([4 * width], default_initializer=start)

    def forward(self, x: Tensor, valid: Tensor, after: State | None = None) -> Read:
        batch, length, channels = x.shape
        if after is None:
            zero = paddle.zeros([batch, self.width], self.bias.dtype)
            after = zero, zero
        weights = self.input.reshape([-1, channels]), self.hidden.reshape([-1, self.width]), self.bias
        if length == 1:  # a step of decoding: no transpose needed
            steps = x.reshape([1, batch, channels])  # [B, 1, C] -> [1, B, C]
        else:
            order, back = self._order(valid)
            rows = paddle.arange(batch, dtype="int64")
            steps = F.embedding(order.t() + rows * length, x.reshape([batch * length, channels]))  # [T, B, C]
        with paddle.amp.auto_cast(enable=False):
            outputs, last = lstm(steps.astype(self.bias.dtype), valid.astype("int32").sum(1), after, *weights)
        flat = outputs.reshape([length * batch, self.width])  # [T, B, W] -> [T·B, W]
        if length == 1:
            return Read(flat.unsqueeze(1), last)
        return Read(F.embedding(back * batch + rows.unsqueeze(1), flat), last)  # [B, T, W]

    def _order(self, valid: Tensor) -> tuple[Tensor, Tensor]:
        """int64 [B, T] each: which token is read when, and when a token is read."""
        length = valid.shape[1]
        when = paddle.arange(length, dtype="int64").unsqueeze(0)
        first = length - 1 - when if self.backward else when
        order = paddle.argsort(paddle.where(valid, first, length + when), 1)
        return order, paddle.argsort(order, 1)


@op
def lstm(
    x: Tensor, lengths: Tensor, after: State, w_input: Tensor, w_hidden: Tensor, bias: Tensor
) -> tuple[Tensor, State]:
    """x [T, B, C], of which a row's first `lengths` [B] are real → outputs [T, B, W], zero behind them, and the state.

    w_input [4W, C], w_hidden [4W, W], bias [4W].
    """
    h, c = after
    inputs = paddle.matmul(x, w_input, transpose_y=True) + bias  # [T, B, 4W]
    outputs = []
    for t in range(x.shape[0]):
        i, f, g, o = (inputs[t] + paddle.matmul(h, w_hidden, transpose_y=True)).split(4, -1)  # [B, W] each
        cell = F.sigmoid(f) * c + F.sigmoid(i) * paddle.tanh(g)
        out = F.sigmoid(o) * paddle.tanh(cell)
        real = (lengths > t).unsqueeze(1)  # [B, 1]
        h, c = paddle.where(real, out, h), paddle.where(real, cell, c)
        outputs.append(paddle.where(real, out, paddle.zeros_like(out)))
    return paddle.stack(outputs), (h, c)


@examples(lstm)
def _lstm_examples(rng: np.random.Generator) -> tuple[object, ...]:
    """One token or several, texts of several lengths, after nothing or a state."""
    length, batch, channels, width = (int(rng.choice(of)) for of in ((1, 2, 9), (1, 3, 5), (3, 8), (4, 10)))

    def normal(*shape: int) -> Tensor:
        return paddle.to_tensor(rng.normal(scale=0.5, size=shape).astype("float32"))

    lengths = paddle.to_tensor(rng.integers(1, length + 1, batch).astype("int32"))
    after = normal(batch, width), normal(batch, width)
    weights = normal(4 * width, channels), normal(4 * width, width), normal(4 * width)
    return normal(length, batch, channels), lengths, after, *weights


class Recurrent(Attention):
    """An LSTM in the place of self-attention (Hochreiter and Schmidhuber 1997; cf. Chen 2018, arXiv:1804.09849).

    i, f, o = sigmoid(W x_t + U h_{t−1} + b), g = tanh(W x_t + U h_{t−1} + b), each with matrices of its own;
    c_t = f ⊙ c_{t−1} + i ⊙ g, h_t = o ⊙ tanh(c_t); out = h W_o. The forget gate is that of Gers 2000.

    In the decoder one LSTM reads forward, and decoding keeps its state (h, c): a token costs the same however long the
    output is. In the encoder two LSTMs of half the width read the text from either end, and their outputs stand side by
    side. A state is carried over padding unchanged, wherever that stands; the order is that of the tokens in their row.

    Chen 2018 builds translation models of LSTMs with residuals and layer norm, alone and mixed with Transformer layers.
    Here it is the sublayer alone: norm, residual and dropout are the placement's, and the cell has neither norm nor
    dropout inside.

    It supports encodings at the embedding only, and needs none: an LSTM knows the order of its tokens. A loop in Python
    runs through the tokens, and in training on a CPU a kernel.

    x [B, T, C], source [B, T, C] → [B, T, C]; state [B, W] twice.

    Options:
        hidden: W, the width of the state; None: d_model. In the encoder each direction has half of it.
        forget_bias: what the forget gate's bias starts at.

    Raises:
        ValueError: in cross-attention; hidden is below 1, above 65,536, or odd in the encoder.
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "attends": "tokens are read in order: no query is compared with a key",
        "averages": "the output is a gated state, no mean of values",
        "values": "gates are not linear",
        "temperature": "there are no scores",
        "bidirectional": "each direction has a network of its own",
    }

    def __init__(
        self,
        d_model: int,
        inner_norm: Callable[[int], Norm] | None = None,
        site: LayerSite | None = None,
        hidden: int | None = None,
        forget_bias: float = 1.0,
    ):
        super().__init__()
        if site is not None and site.sublayer == "cross":
            raise ValueError(_("it reads one text in its order, and cannot attend to another"))
        matrix_side(hidden=hidden)
        width = d_model if hidden is None else hidden
        self.causal = site is not None and site.causal
        if not self.causal and width % 2:
            raise ValueError(
                _("`hidden` must be even where a text is read in two directions, but is {width}").format(width=width)
            )
        if self.causal:
            self.ahead = LSTM(d_model, width, forget_bias)
        else:
            self.ahead = LSTM(d_model, width // 2, forget_bias)
            self.back = LSTM(d_model, width // 2, forget_bias, backward=True)
        self.output = Linear(width, d_model)
        self.inner_norm = inner_norm(width) if inner_norm is not None else None

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, hidden: int | None = None, **options: object) -> Geometry:
        return Geometry(1, 1, d_model if hidden is None else hidden)

    def project(self, source: Tensor, info: TokenInfo) -> Unread | BothWays:
        if self.causal:
            return Unread(self.ahead, source, info.valid)
        return BothWays((self.ahead, self.back), source, info.valid)

    def forward(self, x: Tensor, kv: Unread | Read | BothWays, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        outputs = kv.read().outputs[:, -x.shape[1] :]  # those of the newest tokens
        return project_out(outputs.astype(x.dtype), info, self.inner_norm, self.output)

    def branch_weights(self) -> list[Tensor]:
        return [self.output.weight]
