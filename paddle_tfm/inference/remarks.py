"""What somebody should know of translated lines: which were cut, which are longer than any in training, and how much of
their text the model has no piece for."""

from __future__ import annotations

from collections.abc import Sequence

from paddle_tfm.data.codec import Codec
from paddle_tfm.data.vocabulary import UNKNOWN
from paddle_tfm.inference.translate import Translation
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Example, Search
from paddle_tfm.search.decoding import max_length


class Remarks:
    """Counts over all lines of a translation; `sentences` says at the end what is worth knowing, each thing once."""

    def __init__(self, model: Transformer, codec: Codec, search: Search):
        self.model, self.codec, self.search = model, codec, search
        self.lines = self.cut = self.long = self.pieces = self.unknown = 0

    def add(self, texts: Sequence[str], best: Sequence[Translation]) -> None:
        """Count lines and their best outputs. An output is taken as cut if it is as long as an output may be."""
        for text, output in zip(texts, best):
            source = self.codec.encode(Example(text, "")).source
            pieces = len(source) - 1  # without the end token
            if pieces < 1:
                continue
            self.lines += 1
            self.pieces += pieces
            self.unknown += source[:pieces].count(UNKNOWN)
            self.long += len(source) > self.model.max_length
            self.cut += len(output.ids) >= max_length(self.model, self.search, pieces, ())

    def sentences(self) -> list[str]:
        """None where all is well."""
        said = []
        if self.cut:
            said.append(
                f"{self.cut:,} of {_lines(self.lines)} got an output cut at the longest that is allowed: raise the "
                f"search's max_ratio, max_extra or max_length; the model's own bound, model.max_length, is "
                f"{self.model.max_length:,} pieces"
            )
        if self.long:
            said.append(
                f"{self.long:,} of {_lines(self.lines)} have more than the {self.model.max_length - 1:,} pieces that "
                "any text of its training had (model.max_length); split them into sentences"
            )
        if self.unknown:
            share = self.unknown / self.pieces
            said.append(
                f"{share:.1%} of the source's pieces ({self.unknown:,} of {self.pieces:,}) are unknown to the model: "
                "is the text of the language, the case and the cut into words that it learned?"
            )
        return said


def _lines(number: int) -> str:
    return f"{number:,} line{'' if number == 1 else 's'}"
