"""What somebody should know of translated lines: which were cut, which are longer than any in training, and how much of
their text the model has no piece for."""

from __future__ import annotations

from collections.abc import Sequence

from paddle_tfm.caveats import Reach
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
        self.reach, self.pieces, self.unknown = Reach(most=model.max_length - 1), 0, 0

    def add(self, texts: Sequence[str], best: Sequence[Translation]) -> None:
        """Count lines and their best outputs. An output is taken as cut if it is as long as an output may be."""
        for text, output in zip(texts, best):
            source = self.codec.encode(Example(text, "")).source
            pieces = len(source) - 1  # without the end token
            if pieces < 1:
                continue
            self.pieces += pieces
            self.unknown += source[:pieces].count(UNKNOWN)
            limit = max_length(self.model.max_length, self.search, pieces)
            self.reach.add(pieces, limit, len(output.ids), whole=self.model.decoder is None)

    def sentences(self) -> list[str]:
        """None where all is well."""
        said = self.reach.sentences()
        if self.unknown:
            share = self.unknown / self.pieces
            said.append(
                f"{share:.1%} of the source's pieces ({self.unknown:,} of {self.pieces:,}) are unknown to the model: "
                "is the text of the language, the case and the cut into words that it learned?"
            )
        return said
