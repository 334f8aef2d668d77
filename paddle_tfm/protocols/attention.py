"""Attention: how positions gather from others."""

from __future__ import annotations

from typing import Any, ClassVar

from paddle import Tensor

from paddle_tfm import kernels
from paddle_tfm.layers import Layer
from paddle_tfm.protocols.context import Geometry, KeyValue, TokenInfo
from paddle_tfm.protocols.layer_component import LayerComponent
from paddle_tfm.protocols.mask import Mask
from paddle_tfm.protocols.tap import Tap


class Attention(LayerComponent):
    """Attention(Q, K, V) = softmax(Q Kᵀ / sqrt(D) + mask) V: x [B, T, C], source [B, S, C] → [B, T, C].

    In self-attention the source is x itself, in cross-attention the encoder's output. Decoding calls `project` with the
    newest tokens only, and `forward` with all that the cache holds: nothing else carries over from call to call but the
    last `reach` inputs, where a class declares that it reads them.

    Givens:
        d_model: C. num_heads: H (settable). dropout: of the attention weights (settable). max_length: the longest text.
        site: where the layer stands; `site.causal` in the decoder's self-attention.
        inner_norm: a function width → Norm for the norm before the output projection, or None; a class without this
            parameter is refused by placements that need one. projection_norm: the same, for queries, keys and values.

    Invariances: padding and later tokens change no output; a batch's sentences do not see each other.
    Expected failures: `expected_failures` names checks ("attends", "averages", "temperature", "bidirectional", …).
    Raises: ValueError in the constructor, where head numbers or the site do not fit.

    Example::

        import paddle
        from paddle_tfm.layers import Linear
        from paddle_tfm.protocols import Attention, KeyValue

        class SharedKeys(Attention):  # one head, whose keys are its values
            def __init__(self, d_model: int):
                super().__init__()
                self.key = Linear(d_model, d_model)

            def project(self, source, info):
                key = self.key(source).unsqueeze(1)  # [B, S, C] -> [B, 1, S, C]
                return KeyValue(key, key)

            def forward(self, x, kv, info, mask, tap):
                scores = paddle.matmul(x.unsqueeze(1), kv.key, transpose_y=True) / x.shape[-1] ** 0.5  # [B, 1, T, S]
                weights = paddle.nn.functional.softmax(mask.add_to(scores), -1)
                return paddle.matmul(weights, kv.value).squeeze(1)  # [B, 1, T, C] -> [B, T, C]
    """

    kind: ClassVar[str] = "attention"
    givens = frozenset({"d_model", "num_heads", "dropout", "site", "inner_norm", "projection_norm", "max_length"})
    settable = frozenset({"num_heads", "dropout"})
    supports: ClassVar[frozenset[str]] = frozenset({"embed"})
    """The positional-encoding hooks that it calls, of {"embed", "rotate", "bias", "scores", "values"}; an encoding that
    uses another is refused."""

    reads_memory: ClassVar[bool] = False
    """Whether, as both attentions of a decoder, it attends to memory and text at once: `kv` then has the keys of the
    memory, all at position −1, before those of the text, and the layers have no cross-attention."""

    reach: int = 0
    """In self-attention, how many inputs before x it reads, of its own sublayer: ``info.window(x, reach)``."""

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, **options: object) -> Geometry:
        """The head layout under these options. Default: num_heads heads of d_model / num_heads."""
        return Geometry(num_heads, num_heads, d_model // num_heads)

    def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
        """Keys and values of `source` [B, S, C], rotated by ``info.encoding.key``; or a type of its own."""
        raise NotImplementedError

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        """x [B, T, C] attends to `kv` → [B, T, C]. `mask` covers all of `kv`; `info` is about x."""
        raise NotImplementedError

    def attend(
        self, x: Tensor, source: Tensor, source_info: TokenInfo, info: TokenInfo, mask: Mask, tap: Tap
    ) -> Tensor:
        """Both halves at once, where no cache is kept: x [B, T, C] attends to `source` [B, S, C] → [B, T, C]. The
        engine calls it in training; a kernel of the class computes it as one function."""
        return kernels.call(self, (x, source, source_info, info, mask, tap), self._attend)

    def _attend(
        self, x: Tensor, source: Tensor, source_info: TokenInfo, info: TokenInfo, mask: Mask, tap: Tap
    ) -> Tensor:
        return self(x, self.project(source, source_info), info, mask, tap)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Layer.__call__(self, *args, **kwargs)

    def branch_weights(self) -> list[Tensor]:
        """The weights that DeepNorm scales (value and output projections)."""
        return []
