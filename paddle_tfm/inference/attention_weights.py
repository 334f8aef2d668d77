"""Attention weights of every layer and head, between a source and an output, from one pass with teacher forcing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from paddle_tfm.data.batches import collate
from paddle_tfm.data.codec import Codec
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Example, Tap

if TYPE_CHECKING:
    from paddle_tfm.train.run import Run

BEGIN, END = "<s>", "</s>"


class HeadWeights(NamedTuple):
    """Weights float32 [H, Tq, Tk] of one attention, `encoder.0.self`, and the pieces at both axes: what each query
    reads (in cross-attention what it is to write), and the keys."""

    name: str
    queries: Sequence[str]
    keys: Sequence[str]
    weights: np.ndarray

    def cut(self, pieces: int) -> HeadWeights:
        """Those of the first so many queries and keys."""
        return HeadWeights(self.name, self.queries[:pieces], self.keys[:pieces], self.weights[:, :pieces, :pieces])


class Reading(NamedTuple):
    """What a model wrote for a text, and where it looked."""

    output: str
    attentions: Sequence[HeadWeights]


def read_by(run: Run, text: str) -> Reading:
    """A text as a run's model reads it, with its own output; a decoder-only model reads it as what it would continue.

    Raises:
        UserError: the text is empty, has too many pieces for the model, or none of its attentions records weights.
    """
    if not text.strip():
        raise UserError(_("there is nothing to attend to in an empty text"))
    pieces, longest = len(run.codec.source.tokenize(text)), run.model.max_length - 1
    if pieces > longest:
        sentence = _("{pieces} pieces are more than the {longest} that the model reads (model.max_length)")
        raise UserError(sentence.format(pieces=pieces, longest=longest))
    if run.model.encoder is None:
        source, output = "", text
    else:
        source, output = text, run.hypotheses([text])[0][0].text
    if not (attentions := head_weights(run.model, run.codec, source, output)):
        raise UserError(_("no attention of this model has weights to show"))
    return Reading(output, attentions)


def head_weights(model: Transformer, codec: Codec, source: str, output: str) -> list[HeadWeights]:
    """Those of all attentions that record weights: the encoder's, then the decoder's cross-attention, then its
    self-attention, each from the lowest layer on. Where one is both, its keys are the source and then the output."""
    example = codec.encode(Example(source, output))
    batch = collate([example]).tensors()
    written = [*codec.pieces(example.target[:-1]), END]
    read, before = [*codec.source.tokenize(source), END], [BEGIN, *written[:-1]]
    axes = {"encoder.self": (read, read), "decoder.cross": (written, read), "decoder.self": (before, before)}
    if model.encoder is not None and model.decoder is not None and model.decoder.layers[0].over_memory == "self":
        axes["decoder.self"] = (before, [*read, *before])
    stacks = {"encoder": model.encoder, "decoder": model.decoder}
    counts = {name: 0 if stack is None else len(stack.layers) for name, stack in stacks.items()}
    names = [(place, layer) for place in axes for layer in range(counts[place.split(".")[0]])]
    full = {f"{place.replace('.', f'.{layer}.')}.attention": (place, layer) for place, layer in names}
    tap = Tap(recording=True, only=frozenset(full))
    with model.evaluated():
        model(batch, tap)
    recorded = {name: weights.astype("float32")[0].numpy() for name, weights in tap.recorded}
    results = []
    for name, (place, layer) in full.items():
        if name in recorded:
            queries, keys = axes[place]
            weights = recorded[name][:, : len(queries), : len(keys)]
            results.append(HeadWeights(f"{place.replace('.', f'.{layer}.')}", queries, keys, weights))
    return results
