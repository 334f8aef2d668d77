"""Where a model looks: the weights of every attention and head on one text, or on those that were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import islice

from paddle_tfm.errors import UserError
from paddle_tfm.inference.attention_weights import read_by
from paddle_tfm.pages.attention import MOST_PIECES, ROWS_AND_COLUMNS, Reader, Sentence, attention_maps
from paddle_tfm.train.run import Run

PIECES = (4, 14)  # of a text that is shown where none was chosen: fewer say little, more have no room on a phone


def html(run: Run, texts: Sequence[str], chosen: Sequence[str] = ()) -> str:
    """The maps of the chosen texts, or of the first one of a handy length; a sentence where nothing can be shown."""
    handy = (text for text in texts if PIECES[0] <= len(run.codec.source.tokenize(text)) <= PIECES[1])
    sentences, lacking = [], []
    for text in chosen or islice(handy, 1):
        try:
            reading = read_by(run, text)
        except UserError as error:
            lacking.append(f"“{text}”: {error}")
            continue
        heading = f'<p>output: <span dir="auto">{escape(reading.output)}</span></p>' if reading.output != text else ""
        sentences.append(Sentence(text, [Reader(heading, [item.cut(MOST_PIECES) for item in reading.attentions])]))
    if not sentences and not lacking:
        return "<p>No text of a length that can be drawn is known; paddle-tfm report --sentence TEXT chooses one.</p>"
    return attention_maps(sentences, [ROWS_AND_COLUMNS, *lacking])
