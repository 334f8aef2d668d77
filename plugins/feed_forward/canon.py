"""A feed-forward whose input each token mixes with the tokens before it."""

from __future__ import annotations

from paddle import Tensor, nn

from paddle_tfm.language import _
from paddle_tfm.layers import Layer
from paddle_tfm.protocols import FeedForward, Tap, TokenInfo, keep_initial, maps_as
from paddle_tfm.validators import between


class CanonLayer(Layer):
    """h'_t = h_t + Σ_j w_j ⊙ h_{t−j}, j = 0 … K − 1, where h is zero before the first token: h [B, T, C] → [B, T, C].

    w [K, C] starts as the authors' convolution, uniform between ±1 / √K.
    """

    def __init__(self, d_model: int, kernel: int):
        super().__init__()
        between("[2, 65536]", kernel=kernel)
        start = nn.initializer.Uniform(-(kernel**-0.5), kernel**-0.5)
        self.weight = keep_initial(maps_as(self.create_parameter([kernel, d_model], default_initializer=start), None))
        self.reach = kernel - 1

    def forward(self, h: Tensor, info: TokenInfo) -> Tensor:
        window, mixed = info.window(h, self.reach), h  # [B, K − 1 + T, C]
        for j in range(self.reach + 1):
            first = self.reach - j
            mixed = mixed + self.weight[j] * window[:, first : first + h.shape[1]]
        return mixed


class Canon(FeedForward):
    """Canon-C: a short causal convolution before any other feed-forward (Allen-Zhu 2025, arXiv:2512.17351).

    out = f(h'), h'_t = h_t + Σ_j w_j ⊙ h_{t−j}, j = 0 … K − 1: each channel has K weights, for a token and those before
    it, in an encoder too. What is padding, or before the first token, counts as zero. h is the sublayer's input, after
    the norm where the placement has it there. While decoding, the engine keeps the last K − 1 inputs. Canon-A is
    attention `canon`; Canon-B, on queries, keys and values, and Canon-D, on the hidden layer, are left out.

    x [B, T, C] → [B, T, C].

    Options:
        inner: f, the other feed-forward.
        kernel: K (the paper: 4).

    Raises:
        ValueError: `inner` itself reads tokens before its own; kernel is not in [2, 65536].
    """

    def __init__(self, d_model: int, inner: FeedForward, kernel: int = 4):
        super().__init__()
        if inner.reach:
            raise ValueError(_("`inner` must be a feed-forward of each token by itself, but reads those before it too"))
        self.canon, self.inner = CanonLayer(d_model, kernel), inner
        self.reach = self.canon.reach

    def forward(self, x: Tensor, info: TokenInfo, tap: Tap) -> Tensor:
        return self.inner(self.canon(x, info), info, tap)

    def branch_weights(self) -> list[Tensor]:
        return self.inner.branch_weights()
