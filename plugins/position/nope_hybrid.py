"""Positions in some layers, none in others."""

from __future__ import annotations

from collections.abc import Callable

from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.protocols import LayerSite, PositionalEncoding
from paddle_tfm.validators import at_least
from paddle_tfm_plugins.position.rotary import Rotary


class NoPEHybrid(PositionalEncoding):
    """Another encoding in most layers, and none in every fourth (Yang 2025, arXiv:2501.18795; Llama 4's iRoPE).

    Of the layers 1, 2, 3 … of a stack, those that `every` divides have no positions (NoPE), the others those of
    `encoding`, by rotation in both sources. A layer without looks up words by content, wherever they stand. In the
    sources it sees all words, and the layers with positions a part of the text: that is an attention's to choose. Llama
    4 also makes queries beyond the 8,192nd position longer in layers without, which is not done here. A stack of fewer
    layers than `every` has positions in all of them.

    query, key, bias, scores and values are the other encoding's, or nothing. Each layer has one of its own, so that an
    encoding with one table for a stack (`t5`) has one for each layer here.

    Options: `encoding` is the other encoding; None: `rotary`. `every`: 4 in both sources.

    Raises:
        ValueError: `every` is below 2; `encoding` is added to the embeddings, which all layers see; it is None, and
            `head_dim` odd.
    """

    per_layer = True

    def __init__(self, head_dim: int, site: LayerSite, encoding: PositionalEncoding | None = None, every: int = 4):
        super().__init__()
        at_least(2, every=every)
        encoding = Rotary(head_dim) if encoding is None else encoding
        if "embed" in encoding.uses():
            raise ValueError(
                _("`encoding` must act in each layer by itself (rotary, alibi, shaw), but is added to the embeddings")
            )
        self.every = every
        self.encoding = encoding if (site.layer + 1) % every else PositionalEncoding()

    def uses(self) -> frozenset[str]:
        return self.encoding.uses()

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        return self.encoding.query(q, positions)

    def key(self, k: Tensor, positions: Tensor) -> Tensor:
        return self.encoding.key(k, positions)

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        return self.encoding.bias(q_positions, k_positions)

    def scores(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        return self.encoding.scores(q, k, q_positions, k_positions)

    def values(self, weights: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        return self.encoding.values(weights, q_positions, k_positions)

    def remap(self, positions: Tensor, draw: Callable[[], object] | None) -> Tensor:
        return self.encoding.remap(positions, draw)
