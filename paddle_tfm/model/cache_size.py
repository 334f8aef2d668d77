"""How much of the key/value cache a token of output takes."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Attention, KeyValue, Mask, TokenInfo

TOKENS = 3  # of the text whose cache is looked at


def cache_bytes(model: Transformer) -> int | None:
    """By how many bytes the key/value caches of the decoder's self-attentions grow with a token of one output: keys and
    values of all layers. Multi-head attention: 2 · layers · heads · width of a head · 4 in float32; with groups of
    queries (arXiv:2305.13245) kv_heads / heads of it; 0 where a state of one size takes all tokens. None without a
    decoder."""
    if model.decoder is None or model.target_embedding is None:
        return None
    positions = paddle.arange(TOKENS).unsqueeze(0)
    mask = Mask(positions, positions, paddle.ones([1, TOKENS], "bool"), True, model.decoder.encodings[0])
    x = paddle.zeros([1, TOKENS, model.target_embedding.weight.shape[1]])
    with model.evaluated():
        contexts = model.decoder.contexts(model.decoder.encodings, positions, mask.k_valid, mask)
        sizes = [
            _growth(layer.self_attention, x, context.info) for layer, context in zip(model.decoder.layers, contexts)
        ]
    return sum(sizes)


def _growth(attention: Attention, x: Tensor, info: TokenInfo) -> int:
    """The bytes of the cache of three tokens, less those of two: a state of one size has it from the second on."""

    def of_token(i: int) -> KeyValue:
        part = slice(i, i + 1)
        return attention.project(x[:, part], TokenInfo(info.encoding, info.positions[:, part], info.valid[:, part]))

    two = of_token(0).extend(of_token(1))
    before = _bytes(two)  # what follows may be added in place
    return _bytes(two.extend(of_token(2))) - before


def _bytes(kv: KeyValue) -> int:
    parts = (kv.key, kv.value) if isinstance(kv, KeyValue) else vars(kv).values()
    tensors = {id(part): part for part in parts if isinstance(part, Tensor)}
    return sum(int(tensor.size) * tensor.element_size() for tensor in tensors.values())
