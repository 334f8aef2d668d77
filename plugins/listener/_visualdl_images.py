"""Images of a model for VisualDL: attention weights and positional encodings."""

from __future__ import annotations

import numpy as np
import paddle

from paddle_tfm.data.batches import in_order
from paddle_tfm.data.codec import Codec, Encoded
from paddle_tfm.protocols import PositionalEncoding, Tap
from paddle_tfm_plugins.listener._visualdl_picture import Axes, draw

MAX_TOKENS = 40  # of an image's rows and columns
BEGIN, END = "<s>", "</s>"
MAX_HEADS = 8  # of attention, an image each; of a positional encoding, side by side
NUM_POSITIONS = 64


@paddle.no_grad()
def attention(model, codec: Codec, example: Encoded) -> list[np.ndarray]:
    """The weights with which the pieces of `example` are attended to under teacher forcing, in the last layer: of each
    head uint8 [height, width], a row for each query (the target piece that is to be written) and a column for each key
    (a source piece), with the pieces beside them, white 0 and black 1. Without cross-attention they are those of
    self-attention. None of them where an attention records no weights."""
    layer = len((model.decoder or model.encoder).layers) - 1
    stack = "encoder" if model.decoder is None else "decoder"
    cross = model.encoder is not None and model.decoder is not None
    name = f"{stack}.{layer}.{model.decoder.layers[layer].over_memory if cross else 'self'}.attention"
    tap, training = Tap(recording=True, only=frozenset({name})), model.training
    model.eval()
    try:
        (batch,) = in_order([example], 1 << 30)
        model(batch.tensors(), tap)
    finally:
        if training:
            model.train()
    if not tap.recorded:
        return []
    weights = tap.recorded[0][1].astype("float32")[0, :MAX_HEADS, :MAX_TOKENS, :MAX_TOKENS].numpy()  # [H, T, S]
    if cross:  # of an attention to both texts what it looks at in the source
        weights = weights[:, :, : len(example.source)]
    rows, columns = ("target piece", "source piece") if cross else ("piece (query)", "piece (key)")
    axes = Axes(rows, columns, "weight", 1.0, 0.0, *_pieces(codec, example, weights.shape[1:], stack, cross))
    return [draw(head[None], axes) for head in weights]


def _pieces(codec: Codec, example: Encoded, size: tuple[int, ...], stack: str, cross: bool) -> list[list[str]]:
    """What rows and columns are: pieces of the source, of the target as it is to be written, or as it is read."""
    source, target = (
        [*vocabulary.decode(ids[:-1]), END]
        for vocabulary, ids in ((codec.source_vocabulary, example.source), (codec.target_vocabulary, example.target))
    )
    sides = (target, source) if cross else (source, source) if stack == "encoder" else ([BEGIN, *target],) * 2
    return [[*side[:number], *[""] * (number - len(side))] for side, number in zip(sides, size)]


@paddle.no_grad()
def position(encoding: PositionalEncoding, d_model: int) -> np.ndarray | None:
    """What an encoding adds to embeddings at positions 0, 1, …, a row for each position and a column for each feature;
    or to attention scores, heads side by side, a row for each query's position and a column for each key's. uint8
    [height, width], black the smallest value and white the largest. None for encodings that do neither (rotary)."""
    uses, positions = encoding.uses(), encoding.remap(paddle.arange(NUM_POSITIONS).unsqueeze(0), None)
    if "embed" in uses:
        added = encoding.embed(paddle.zeros([1, NUM_POSITIONS, d_model]), positions)  # [1, T, C]
        names = ("position", "feature", "added to the embedding")
    elif "bias" in uses and (bias := encoding.bias(positions, positions)) is not None:
        added = bias[0]  # [H|1, T, T]
        names = ("position of the query", "position of the key", "added to the score")
    else:
        return None
    values = added.astype("float32")[:MAX_HEADS].numpy()
    finite = np.where(np.isfinite(values), values, 0.0)
    return draw(finite, Axes(*names, black=float(finite.min()), white=float(finite.max())))
