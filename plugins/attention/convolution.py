"""A convolution in the place of attention: neighbours by position instead of by content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Attention, Geometry, LayerSite, Mask, Norm, Tap, TokenInfo, maps_as
from paddle_tfm.validators import between
from paddle_tfm_plugins.attention._dot_product import (
    merge_heads,
    project_out,
    require_memory,
    split_heads,
    width_of_head,
)


@dataclass(frozen=True)
class Window:
    """The newest tokens and the `before` ones before them that they can reach: values [B, H, T, D], zero at padding,
    and positions int64 [B|1, T]."""

    value: Tensor
    positions: Tensor
    before: int

    def extend(self, new: Window) -> Window:
        first = max(0, self.value.shape[2] - self.before)
        value = paddle.concat([self.value[:, :, first:], new.value], 2)
        return Window(value, paddle.concat([self.positions[:, first:], new.positions], 1), self.before)

    def select(self, rows: Tensor) -> Window:
        positions = self.positions if self.positions.shape[0] == 1 else self.positions.index_select(rows, 0)
        return Window(self.value.index_select(rows, 0), positions, self.before)


class Convolution(Attention):
    """Lightweight convolution: each head averages its neighbours with trained weights (Wu 2019, arXiv:1901.10430).

    u = x W_v ⊙ sigmoid(x W_g); head_h at position i is Σ_k softmax(w_h)_k u_h at position i + k − left, k = 0 … K − 1,
    where K is the kernel's width; out = [head_1 … head_H] W_o. The D = C / H channels of a head share one kernel of K
    weights. With `dynamic`, the kernels w = u_i W_k [H, K] are predicted at each position i from the gated input u_i
    [C] there (DynamicConv of the same paper).

    In the decoder's self-attention left is K − 1: a position sees itself and those before it. In the encoder left is
    (K − 1) / 2: as many on both sides. Neighbours are those whose *positions* differ by as much, so that padding
    between them changes nothing, and under positions drawn with gaps a kernel reaches across fewer tokens. What is
    padding, or beyond an end, counts as zero, and its weight is not shared out to others. The cache holds K − 1 tokens.

    Dropout is applied to the normalized weights, with a mask for each token, as the authors' code does where it writes
    the convolution as a matrix of weights [T, T]. This one always does: time and memory grow with T², not with T · K.

    x [B, T, C], source [B, T, C] → [B, T, C]; state [B, H, K − 1, D].

    Options:
        kernel: K, or a list of one K a layer from the bottom, the last of which serves all layers above it (the paper:
            3, 7, 15 and then 31).
        dynamic: whether kernels are predicted.
        bias: whether W_v, W_g and W_o have one.

    Raises:
        ValueError: in cross-attention; num_heads does not divide d_model; a kernel is not in [2, 65536], or even where
            it is centred; an empty list.
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "attends": "a kernel belongs to places around a token: no query is compared with a key",
        "averages": "weights on padding or beyond the ends are lost, as in the paper's code: near the ends they sum "
        "to less than 1",
        "values": "what is averaged went through a gate, which is not linear",
        "bidirectional": "a kernel has weights of their own for what precedes a token and for what follows",
        "temperature": "there are no scores: the kernels that a softmax makes weights of are trained or predicted",
    }

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float,
        inner_norm: Callable[[int], Norm] | None = None,
        site: LayerSite | None = None,
        kernel: int | list[int] = 7,
        dynamic: bool = False,
        bias: bool = True,
    ):
        super().__init__()
        width_of_head(d_model, num_heads)  # refuses what it must
        if site is not None and site.sublayer == "cross":
            raise ValueError(_("a token of one text has no neighbours in another"))
        self.num_heads = num_heads
        self.causal = site is not None and site.causal
        self.kernel = _of_layer(kernel, 0 if site is None else site.layer, self.causal)
        self.left = self.kernel - 1 if self.causal else self.kernel // 2
        self.value = Linear(d_model, d_model, bias)
        self.gate = Linear(d_model, d_model, bias)
        if dynamic:
            self.predict = Linear(d_model, num_heads * self.kernel, bias=False)
            self.weight = None
        else:
            self.predict = None
            self.weight = maps_as(self.create_parameter([num_heads, self.kernel]), None)
        self.output = Linear(d_model, d_model, bias)
        self.dropout = Dropout(dropout)
        self.inner_norm = inner_norm(d_model) if inner_norm is not None else None

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, **options: object) -> Geometry:
        return Geometry(num_heads, num_heads, width_of_head(d_model, num_heads))

    def project(self, source: Tensor, info: TokenInfo) -> Window:
        gated = self.value(source) * F.sigmoid(self.gate(source))  # [B, T, C]
        gated = gated * info.valid.astype(gated.dtype).unsqueeze(2)
        return Window(split_heads(gated, self.num_heads), info.positions, self.kernel - 1)

    def forward(self, x: Tensor, kv: Window, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        require_memory(x.shape[0], self.num_heads + self.kernel // 4, x.shape[1], kv.value.shape[2])
        slot = kv.positions.unsqueeze(1) - info.positions.unsqueeze(2) + self.left  # [B|1, Tq, Tk]: index in the kernel
        slots = paddle.arange(self.kernel, dtype=slot.dtype).reshape([1, self.kernel, 1, 1])
        offsets = (slot.unsqueeze(1) == slots).astype(x.dtype)  # [B|1, K, Tq, Tk]: one 1 a pair within reach
        if self.predict is None:
            weights = self._fixed(offsets, x.shape[0])
        else:
            weights = self._predicted(kv.value[:, :, -x.shape[1] :], offsets)
        tap.record("attention", weights)
        context = merge_heads(paddle.matmul(self.dropout(weights), kv.value))  # [B, T, C]
        return project_out(context, info, self.inner_norm, self.output)

    def _fixed(self, offsets: Tensor, batch: int) -> Tensor:
        """The trained kernels at the places of pairs: [B, H, Tq, Tk]."""
        rows, width, queries, keys = offsets.shape
        kernels = F.softmax(self.weight, -1).astype(offsets.dtype)
        weights = paddle.matmul(kernels, offsets.reshape([rows, width, queries * keys]))  # [B|1, H, Tq·Tk]
        return weights.reshape([rows, self.num_heads, queries, keys]).expand([batch, self.num_heads, queries, keys])

    def _predicted(self, gated: Tensor, offsets: Tensor) -> Tensor:
        """The same for kernels predicted from the queries' own gated input [B, H, Tq, D]."""
        batch, heads, queries, _ = gated.shape
        kernels = self.predict(merge_heads(gated)).reshape([batch, queries, heads, self.kernel])
        kernels = F.softmax(kernels, -1)
        if offsets.shape[0] == 1:  # sentences that share positions are rows of one product
            kernels = kernels.transpose([1, 0, 2, 3]).reshape([1, queries, batch * heads, self.kernel])
        weights = paddle.matmul(kernels, offsets.transpose([0, 2, 1, 3]))  # [B|1, Tq, H|B·H, Tk]
        return weights.transpose([0, 2, 1, 3]).reshape([batch, heads, queries, offsets.shape[3]])

    def branch_weights(self) -> list[Tensor]:
        return [self.value.weight, self.output.weight]


def _of_layer(kernel: int | list[int], layer: int, causal: bool) -> int:
    """The width of a layer's kernel; ValueError where it cannot be one."""
    widths = [kernel] if isinstance(kernel, int) else list(kernel)
    if not widths:
        raise ValueError(_("`kernel` must hold at least one width, but is empty"))
    for width in widths:
        between("[2, 65536]", kernel=width)  # a softmax of one weight is 1: there is nothing to train
        if not causal and width % 2 == 0:
            raise ValueError(_("`kernel` must be odd where it is centred, but is {width}").format(width=width))
    return widths[min(layer, len(widths) - 1)]
