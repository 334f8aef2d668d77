"""Alignments: the cross-attention weights between a source and an output, from one pass with teacher forcing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import paddle

from paddle_tfm.data.batches import Batch, in_order
from paddle_tfm.data.codec import Codec
from paddle_tfm.data.vocabulary import EOS
from paddle_tfm.errors import UserError
from paddle_tfm.inference.translate import Translation
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Example, Tap


class Alignment(NamedTuple):
    """Pieces of both sides and weights float32 [T, S]: the attention weight of target piece j on source piece i,
    averaged over heads. The end tokens are left out, so that a row sums to 1 or less."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: np.ndarray

    def pairs(self) -> list[tuple[int, int]]:
        """(i, j) for each target piece j: i is the source piece with its largest weight."""
        return [(int(row.argmax()), j) for j, row in enumerate(self.weights)]


def align(
    model: Transformer,
    codec: Codec,
    texts: Sequence[str],
    outputs: Sequence[Translation],
    layer: int | None = None,
    max_tokens: int = 4096,
) -> list[Alignment]:
    """The alignment of each text with its output: the cross-attention of a decoder layer (0: the lowest; None: the
    last) under teacher forcing with that output.

    Raises:
        UserError: there is no such layer, or its attention has no weights to show.
    """
    decoder = model.decoder
    if decoder is None or model.encoder is None:
        raise UserError("an alignment is cross-attention, for which a model must have an encoder and a decoder")
    layers = len(decoder.layers)
    layer = layers - 1 if layer is None else layer
    if not 0 <= layer < layers:
        raise UserError(f"attention layer {layer}: the decoder has the layers 0 to {layers - 1}")
    sources = [tuple(codec.source.tokenize(text)) for text in texts]
    weights = [np.zeros((len(out.ids), len(source)), np.float32) for source, out in zip(sources, outputs)]
    nonempty = [i for i, matrix in enumerate(weights) if matrix.size]
    examples = [codec.encode(Example(texts[i], ""))._replace(target=[*outputs[i].ids, EOS]) for i in nonempty]
    for batch in in_order(examples, max_tokens):
        batch_weights = _cross_attention(model, batch.tensors(), layer)  # [B, T, S]
        if batch_weights is None:
            raise UserError(
                f"attention layer {layer}: the cross-attention of this model has no weights to show "
                f"({type(decoder.layers[layer].cross_attention).__name__})"
            )
        for i, padded in zip(batch.index, batch_weights):
            matrix = weights[nonempty[i]]
            matrix[:] = padded[: matrix.shape[0], : matrix.shape[1]]
    return [Alignment(source, out.pieces, matrix) for source, out, matrix in zip(sources, outputs, weights)]


def _cross_attention(model: Transformer, batch: Batch, layer: int) -> np.ndarray | None:
    """Weights [B, T, S] of a layer's cross-attention, averaged over heads; None where it records none."""
    # Only this layer's are recorded: those of all layers together would fill the memory.
    tap = Tap(recording=True, only=frozenset({f"decoder.{layer}.cross.attention"}))
    training = model.training
    model.eval()
    with paddle.no_grad():
        model(batch, tap)
    if training:
        model.train()
    if not tap.recorded:
        return None
    ((_, by_head),) = tap.recorded  # [B, H, T, S]
    return by_head.astype("float32").mean(1).numpy()
