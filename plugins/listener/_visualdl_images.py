"""Images of a model for VisualDL: attention weights and positional encodings, drawn with NumPy in milliseconds."""

from __future__ import annotations

import numpy as np
import paddle

from paddle_tfm.data.batches import in_order
from paddle_tfm.data.codec import Codec, Encoded
from paddle_tfm.protocols import PositionalEncoding, Tap

MAX_TOKENS = 40  # of an image's rows and columns
MAX_HEADS = 8  # side by side
CELL, GAP = 8, 3  # pixels of a weight, and of the line between heads
NUM_POSITIONS = 64


@paddle.no_grad()
def attention(model, example: Encoded) -> np.ndarray | None:
    """The weights with which the pieces of `example` are attended to under teacher forcing, in the last layer: uint8
    [height, width], heads side by side, a row for each query (a target piece) and a column for each key (a source
    piece), the darker the more. Without cross-attention they are those of self-attention. None where an attention
    records no weights."""
    layer = len((model.decoder or model.encoder).layers) - 1
    if model.decoder is None:
        name = f"encoder.{layer}.self.attention"
    else:
        name = f"decoder.{layer}.{'self' if model.encoder is None else 'cross'}.attention"
    tap, training = Tap(recording=True, only=frozenset({name})), model.training
    model.eval()
    try:
        (batch,) = in_order([example], 1 << 30)
        model(batch.tensors(), tap)
    finally:
        if training:
            model.train()
    if not tap.recorded:
        return None
    weights = tap.recorded[0][1].astype("float32")[0, :MAX_HEADS, :MAX_TOKENS, :MAX_TOKENS].numpy()  # [H, T, S]
    return side_by_side(255 * (1 - weights.clip(0, 1)))


@paddle.no_grad()
def position(encoding: PositionalEncoding, d_model: int) -> np.ndarray | None:
    """What an encoding adds to embeddings at positions 0, 1, …, a row for each position and a column for each feature;
    or to attention scores, heads side by side, a row for each query's position and a column for each key's. uint8
    [height, width], black the smallest value and white the largest. None for encodings that do neither (rotary)."""
    uses, positions = encoding.uses(), encoding.remap(paddle.arange(NUM_POSITIONS).unsqueeze(0), None)
    if "embed" in uses:
        rows = encoding.embed(paddle.zeros([1, NUM_POSITIONS, d_model]), positions)  # [1, T, C]
    elif "bias" in uses:
        rows = encoding.bias(positions, positions)  # [1, H|1, T, T]
        rows = None if rows is None else rows[0]
    else:
        rows = None
    if rows is None:
        return None
    values = rows.astype("float32")[:MAX_HEADS].numpy()
    finite = np.where(np.isfinite(values), values, 0.0)
    low, high = finite.min(), finite.max()
    return side_by_side(255 * (finite - low) / (high - low if high > low else 1.0))


def side_by_side(maps: np.ndarray) -> np.ndarray:
    """Maps [N, height, width] of grey values 0 (black) to 255, next to each other with black lines between: uint8."""
    large = maps.round().astype(np.uint8).repeat(CELL, 1).repeat(CELL, 2)
    gap = np.full((large.shape[1], GAP), 0, np.uint8)
    parts = [part for one in large for part in (one, gap)]
    return np.concatenate(parts[:-1], 1)


def legend(codec: Codec, example: Encoded) -> str:
    """What the rows and columns of `attention` are, as text."""
    target = " ".join(codec.pieces(example.target)[:MAX_TOKENS])
    source = " ".join(codec.source_vocabulary.decode(example.source)[:MAX_TOKENS])
    return f"columns: {source}   rows: {target}"
