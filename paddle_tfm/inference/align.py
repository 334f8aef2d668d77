"""Which source pieces the pieces of an output looked at: cross-attention, read off one pass over both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.data.batches import in_order
from paddle_tfm.data.codec import Codec
from paddle_tfm.data.vocabulary import EOS
from paddle_tfm.errors import UserError
from paddle_tfm.inference.translate import Translation
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Example, Tap


class Alignment(NamedTuple):
    """Pieces of both sides and weights float32 [T, S]: how much of its attention target piece j gave to source piece i,
    the mean over heads. The end tokens are left out, so that a row sums to 1 or less."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: np.ndarray

    def pairs(self) -> list[tuple[int, int]]:
        """(i, j) for each target piece j: i is the source piece that it looked at most."""
        return [(int(row.argmax()), j) for j, row in enumerate(self.weights)]


@dataclass(frozen=True)
class _Ear(Tap):
    """A tap that keeps the observation `name` alone: those of all layers together would fill the memory."""

    name: str = ""

    def record(self, name: str, value: Tensor) -> None:
        if f"{self.scope}.{name}" == self.name:
            super().record(name, value)


def align(
    model: Transformer,
    codec: Codec,
    texts: Sequence[str],
    outputs: Sequence[Translation],
    layer: int | None = None,
    max_tokens: int = 4096,
) -> list[Alignment]:
    """The alignment of each text with its output: the cross-attention of a decoder layer (0: the lowest; None: the
    last) while the output is fed (teacher forcing).

    Raises:
        UserError: there is no such layer, or its attention has no weights to show.
    """
    if len(model.stacks()) < 2:
        raise UserError("what an output looked at is cross-attention, which takes an encoder and a decoder")
    layers = len(model.decoder.layers)
    layer = layers - 1 if layer is None else layer
    if not 0 <= layer < layers:
        raise UserError(f"attention layer {layer}: the decoder has the layers 0 to {layers - 1}")
    sources = [tuple(codec.source.tokenize(text)) for text in texts]
    weights = [np.zeros((len(out.ids), len(source)), np.float32) for source, out in zip(sources, outputs)]
    asked = [i for i, part in enumerate(weights) if part.size]
    examples = [codec.encode(Example(texts[i], ""))._replace(target=[*outputs[i].ids, EOS]) for i in asked]
    for batch in in_order(examples, max_tokens):
        seen = _observe(model, batch.tensors(), layer)  # [B, T, S]
        for i, rows in zip(batch.index, seen):
            part = weights[asked[i]]
            part[:] = rows[: part.shape[0], : part.shape[1]]
    return [Alignment(source, out.pieces, part) for source, out, part in zip(sources, outputs, weights)]


def _observe(model: Transformer, batch, layer: int) -> np.ndarray:
    """Weights [B, T, S] of a layer's cross-attention, the mean over heads."""
    tap = _Ear(recording=True, name=f"decoder.{layer}.cross.attention")
    training = model.training
    model.eval()
    with paddle.no_grad():
        model(batch, tap)
    if training:
        model.train()
    if not tap.recorded:
        raise UserError(
            f"attention layer {layer}: the cross-attention of this model has no weights to show "
            f"({type(model.decoder.layers[layer].cross_attention).__name__})"
        )
    ((_, maps),) = tap.recorded  # [B, H, T, S]
    return maps.astype("float32").mean(1).numpy()
