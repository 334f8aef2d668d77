"""Whether a model of a certain shape can learn from these texts."""

from __future__ import annotations

import numpy as np

from paddle_tfm.data.codec import EncodedTexts
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.recipe.settings import ModelSettings
from paddle_tfm.recipe.sites import DECODER_ONLY, ENCODER_ONLY


def check_texts(model: ModelSettings, split: str, texts: EncodedTexts) -> None:
    """A model with both stacks can learn from all texts.

    Raises:
        UserError: with an example: a source for a decoder-only model, which reads none; for an encoder-only one,
            another number of labels than positions for them, or pieces that are sampled again in each epoch.
    """
    if model.shape == DECODER_ONLY:
        bad = np.flatnonzero(texts.lengths[:, 0] > 1)
        if bad.size:
            sentence = _(
                "a decoder-only model (model.encoder_layers: 0) reads no source, but example {number} of the {split} "
                "split has one: {text}; choose a task of texts alone"
            )
            raise UserError(
                sentence.format(number=bad[0] + 1, split=split, text=_cut(texts[int(bad[0])].example.source))
            )
    if model.shape == ENCODER_ONLY:
        if texts.sampling:
            raise UserError(
                _(
                    "an encoder-only model (model.decoder_layers: 0) needs the same pieces in every epoch, but the "
                    "tokenizer samples them"
                )
            )
        pieces, labels = texts.lengths[:, 0] - 1, texts.lengths[:, 1]
        bad = np.flatnonzero(labels != (pieces if model.labels == "token" else 1))
        if bad.size:
            first = int(bad[0])
            rule = _("as many as source pieces") if model.labels == "token" else _("one for each source")
            source, target = (_cut(text) for text in texts[first].example[:2])
            sentence = _(
                "an encoder-only model with `labels: {labels}` writes {rule}, but example {number} of the {split} "
                "split has {sources} source and {targets} target pieces: {source} → {target}"
            )
            raise UserError(
                sentence.format(
                    labels=model.labels,
                    rule=rule,
                    number=first + 1,
                    split=split,
                    sources=pieces[first],
                    targets=labels[first],
                    source=source,
                    target=target,
                )
            )


def check_padding(max_length: int, name: str, padding: int, texts: EncodedTexts) -> None:
    """A further test's texts fit into the model with their padding.

    Raises:
        UserError: they do not.
    """
    longest = int(texts.lengths.max(initial=0))
    if padding and longest + padding > max_length:
        raise UserError(
            _(
                "evaluate.tests.{name}: {padding} columns of padding and texts of up to {longest} tokens "
                "are more than model.max_length={max_length}; use {room} columns or fewer, or "
                "raise it"
            ).format(name=name, padding=padding, longest=longest, max_length=max_length, room=max_length - longest)
            if longest < max_length
            else _(
                "evaluate.tests.{name}: texts of {longest} tokens leave no room for padding within "
                "model.max_length={max_length}; raise it"
            ).format(name=name, longest=longest, max_length=max_length)
        )


def _cut(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]} …")
