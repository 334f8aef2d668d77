"""Self- and cross-attention as one."""

from __future__ import annotations

from paddle_tfm.language import _
from paddle_tfm.protocols import LayerSite
from paddle_tfm_plugins.attention.multihead import MultiHead


class Merged(MultiHead):
    """Merged attention: a decoder attends to the source and its own text at once (T5Gemma 2, arXiv:2512.14856).

    head_h = softmax(q_h [k_h^m; k_h]ᵀ / sqrt(D)) [v_h^m; v_h] with q, k, v of the text so far and k^m = m W_k,
    v^m = m W_v of the memory m, by the same matrices; out = [head_1 … head_H] W_o. One softmax divides a token's
    attention between both, and a layer has two branches where it had three: 4 C² parameters less. It stands for both
    attentions of a decoder: `attention: {encoder: multihead, decoder: merged}`.

    It supports encodings that are added to embeddings or rotate. As in the paper's code, queries and the text's keys
    are rotated and the memory's are not; with `position: {…, cross: rotary}` these are too, by their positions in the
    source. Encodings by distances (a bias) are refused: a token of the source has none to one of the text. Dropout is
    applied to the attention weights.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D], the memory's first.

    Options:
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: in an encoder, or in a decoder without an encoder, where nothing is to be merged; what `multihead`
            raises.
    """

    supports = frozenset({"embed", "rotate"})
    reads_memory = True

    def __init__(self, *, site: LayerSite | None = None, **parent):
        super().__init__(**parent)
        if site is not None and (site.stack == "encoder" or site.encoder_layers == 0):
            raise ValueError(_("it merges self- and cross-attention, and only a decoder beside an encoder has both"))
