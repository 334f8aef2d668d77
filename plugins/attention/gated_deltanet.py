"""A memory that is corrected: each token writes what the memory would have answered wrongly."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.language import _
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import (
    Attention,
    Geometry,
    LayerSite,
    Mask,
    Norm,
    Tap,
    TokenInfo,
    keep_initial,
    maps_as,
)
from paddle_tfm.validators import matrix_side
from paddle_tfm_plugins.attention._dot_product import merge_heads, project_out, split_heads, width_of_head
from paddle_tfm_plugins.attention._reading import Read, State, Unread
from paddle_tfm_plugins.norm.rms import RMSNorm

EPS = 1e-6  # added to a squared length, as in the authors' kernel


class GatedDeltaNet(Attention):
    """Gated DeltaNet: a memory of fixed size that forgets and is corrected by each token (Yang 2024, arXiv:2412.06464).

    S_t = α_t (I − β_t k_t k_tᵀ) S_{t−1} + β_t k_t v_tᵀ [D, V] of each head, o_t = S_tᵀ q_t / sqrt(D): what S answers to
    k_t moves towards v_t by β_t, after all has faded by α_t. As in the authors' layer (fla-org/flash-linear-attention)
    q, k and v are SiLU(conv(x W)), the convolution over a channel's last K tokens; q and k of each head have length 1;
    α_t = exp(−exp(a) softplus(x_t W_α + b)), β_t = σ(x_t W_β), a number for each head; out = [RMSNorm(o_h) ⊙ SiLU(x
    W_g)_h] W_o, the norm (eps 1e-5) over the V channels of a head, one weight for all. No matrix has a bias.

    exp(a) starts in U(0, 16), softplus(b) log-uniformly between 0.001 and 0.1, kernels in U(−1, 1) / sqrt(K), all as
    there. (There D is 3/4 of d_model / num_heads, so that a layer has 6 C² weights; here the two are equal, and it has
    8 C².)

    The T tokens of a call are read at once: with γ_t = α_1 ⋯ α_t, what they write, U [T, V], solves the triangular
    system u_t + β_t Σ_{i<t} (γ_t / γ_i) (k_t · k_i) u_i = β_t (v_t − γ_t S_0ᵀ k_t). Time grows with T², not the cache:
    it is S and K − 1 tokens. Padding is skipped, wherever it stands. It supports encodings at the embedding only, and
    needs none: it knows the order of its tokens. There are no weights, and so no dropout of them.

    x [B, T, C], source [B, T, C] → [B, T, C].

    Options:
        head_dim: D; None: d_model / num_heads.
        expand: V / D.
        kernel: K.

    Raises:
        ValueError: outside a decoder's self-attention; num_heads does not divide d_model and head_dim is None; a number
            is below 1 or above 65,536.
    """

    squash: ClassVar[Callable[[Tensor], Tensor]] = staticmethod(ops.silu)  # what the gate of the output goes through

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        inner_norm: Callable[[int], Norm] | None = None,
        site: LayerSite | None = None,
        head_dim: int | None = None,
        expand: int = 2,
        kernel: int = 4,
    ):
        super().__init__()
        if site is not None and not site.causal:
            raise ValueError(_("it reads one text from its beginning, so it must stand in a decoder's self-attention"))
        matrix_side(expand=expand, kernel=kernel)
        self.num_heads, self.head_dim = num_heads, width_of_head(d_model, num_heads, head_dim)
        keys = num_heads * self.head_dim
        self.widths = [keys, keys, expand * keys]  # of q, k and v
        self.query, self.key, self.value = (Linear(d_model, width, False) for width in self.widths)
        bound = kernel**-0.5
        start = nn.initializer.Uniform(-bound, bound)
        matrix = self.create_parameter([kernel, sum(self.widths)], default_initializer=start)
        self.kernel = maps_as(keep_initial(matrix), None)
        self.fade, self.write = Linear(d_model, num_heads, False), Linear(d_model, num_heads, False)
        self._start_fading(num_heads, 0.0)
        self.norm = RMSNorm(expand * self.head_dim, eps=1e-5)
        self.gate = Linear(d_model, expand * keys, False)
        self.output = Linear(expand * keys, d_model, False)
        self.inner_norm = inner_norm(expand * keys) if inner_norm is not None else None

    def _start_fading(self, numbers: int, slowest: float) -> None:
        """a of each head, exp(a) in U(`slowest`, 16), and b, of so many numbers."""
        self.log_rate = self.create_parameter([self.num_heads], is_bias=True)
        self.log_rate.set_value(paddle.log(paddle.uniform([self.num_heads], min=slowest, max=16.0)))
        self.fade_bias = self.create_parameter([numbers], is_bias=True)
        small = paddle.exp(paddle.uniform([numbers], min=math.log(0.001), max=math.log(0.1)))
        self.fade_bias.set_value(paddle.log(paddle.expm1(small)))

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, head_dim: int | None = None, **options: object) -> Geometry:
        return Geometry(num_heads, num_heads, width_of_head(d_model, num_heads, head_dim))

    def project(self, source: Tensor, info: TokenInfo) -> Unread:
        return Unread(self.read, source, info.valid)

    def forward(self, x: Tensor, kv: Unread | Read, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        answers = self.norm(kv.read().outputs[:, :, -x.shape[1] :]).astype(x.dtype)  # [B, H, T, V]
        return project_out(merge_heads(answers) * self.squash(self.gate(x)), info, self.inner_norm, self.output)

    def read(self, x: Tensor, valid: Tensor, past: State | None) -> Read:
        """x [B, T, C], of which `valid` [B, T] are real, after `past` (None: from the beginning): the memory S [B, H,
        D, V], and the projections [B, K − 1, W] of the last K − 1 real tokens, zero where there are fewer."""
        batch, length, _ = x.shape
        memory, before = self._nothing(batch) if past is None else past
        when = paddle.arange(length, dtype="int64").unsqueeze(0)
        order = paddle.argsort(paddle.where(valid, when, length + when), 1)  # [B, T]: real tokens first
        x, number = _picked(x, order), valid.astype("int64").sum(1, keepdim=True)  # [B, T, C], [B, 1]
        projections = [layer(x).astype(memory.dtype) for layer in (self.query, self.key, self.value)]
        fade, write = (layer(x).astype(memory.dtype) for layer in (self.fade, self.write))  # [B, T, H]
        with paddle.amp.auto_cast(enable=False):  # a memory of many tokens needs more digits than half precision has
            real = (when < number).astype(memory.dtype).unsqueeze(-1)  # [B, T, 1]
            reach = paddle.concat([before, paddle.concat(projections, -1) * real], 1)  # [B, K - 1 + T, W]
            width = self.kernel.shape[0]
            convolved = ops.silu(sum(reach[:, i : i + length] * self.kernel[i] for i in range(width)))
            q, k, v = (split_heads(part, self.num_heads) for part in convolved.split(self.widths, -1))
            slow = (F.softplus(fade + self.fade_bias), F.sigmoid(write))
            fade, beta = (split_heads(each * real, self.num_heads) for each in slow)
            log_alpha = -paddle.exp(self.log_rate).reshape([-1, 1, 1]) * fade
            answers, memory = self.recall(_unit(q) * self.head_dim**-0.5, _unit(k), v, log_alpha, beta, memory)
        last = number + paddle.arange(width - 1, dtype="int64").unsqueeze(0)  # [B, K - 1]
        back = paddle.argsort(order, 1)
        answers = split_heads(_picked(merge_heads(answers), back), self.num_heads)
        return Read(answers, (memory, _picked(reach, last) if width > 1 else before))

    def recall(
        self, q: Tensor, k: Tensor, v: Tensor, log_alpha: Tensor, beta: Tensor, memory: Tensor
    ) -> tuple[Tensor, Tensor]:
        """q, k [B, H, T, D], v [B, H, T, V], log α [B, H, T, 1 or D], β [B, H, T, 1], S_0 [B, H, D, V] → o [B, H, T,
        V], S_T."""
        total = log_alpha.cumsum(2)  # log γ
        gamma, last = paddle.exp(total), total[:, :, -1:]
        asked, known = self.products(q, k, total)
        # The diagonal is written out: under `unitriangular` Paddle (3.3.1) gives a gradient to what is not read.
        system = paddle.eye(k.shape[2], dtype=k.dtype) + (beta * known).tril(-1)
        wrong = beta * (v - paddle.matmul(gamma * k, memory))
        written = paddle.linalg.triangular_solve(system, wrong, upper=False)  # [B, H, T, V]
        answers = paddle.matmul(gamma * q, memory) + paddle.matmul(asked.tril(), written)
        left = k * paddle.exp(last - total)  # [B, H, T, D]
        kept = paddle.exp(last).transpose([0, 1, 3, 2]) * memory
        return answers, kept + paddle.matmul(left, written, transpose_x=True)

    def products(self, q: Tensor, k: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        """(γ_t / γ_i) of q_t · k_i and of k_t · k_i, log γ = `total` [B, H, T, 1] → [B, H, T, T], right for i ≤ t."""
        faded = paddle.exp((total - total.transpose([0, 1, 3, 2])).clip(max=0.0))  # γ_t / γ_i
        return faded * paddle.matmul(q, k, transpose_y=True), faded * paddle.matmul(k, k, transpose_y=True)

    def _nothing(self, batch: int) -> State:
        keys, _, values = (width // self.num_heads for width in self.widths)
        memory = paddle.zeros([batch, self.num_heads, keys, values], self.kernel.dtype)
        return memory, paddle.zeros([batch, self.kernel.shape[0] - 1, sum(self.widths)], self.kernel.dtype)

    def branch_weights(self) -> list[Tensor]:
        return [self.output.weight]  # a scale of the values would be undone by the norm of each head


def _picked(x: Tensor, index: Tensor) -> Tensor:
    """Rows `index` int64 [B, N] of x [B, T, C] → [B, N, C]."""
    batch, length, width = x.shape
    first = paddle.arange(batch, dtype="int64").unsqueeze(1) * length
    return F.embedding(index + first, x.reshape([batch * length, width]))  # [B, T, C] -> [B·T, C]


def _unit(x: Tensor) -> Tensor:
    return x * paddle.rsqrt(paddle.square(x).sum(-1, keepdim=True) + EPS)
