"""The pieces of a SentencePiece model from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

import sentencepiece

from paddle_tfm.language import _
from paddle_tfm_plugins.tokenizer._file import OfFile
from paddle_tfm_plugins.tokenizer.sentencepiece import BYTES, FILE


class SentencePieceFile(OfFile):
    """The pieces of a SentencePiece model (`.model`) that exists already (arXiv:1808.06226).

    `file` is relative to the current folder; the run keeps a copy. The model decides what its round trip does to a text
    (most write "，" as ","), and `normalize` is that round trip; a remark says how many of the first hundred training
    texts it changes. Its own symbols, such as `<2en>`, stay whole. The vocabulary holds what the training texts show of
    its pieces, and its bytes, where it spells in bytes. To learn pieces from the training texts: `sentencepiece`.
    """

    COPY = FILE

    def use(self, content: bytes) -> None:
        if not content:
            raise ValueError(_("it is empty"))
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        except RuntimeError as error:
            raise ValueError(_("no SentencePiece model (a file.model; the file.vocab beside it is a list)")) from error
        pieces = (self._processor.id_to_piece(i) for i in range(len(self._processor)) if self._processor.is_byte(i))
        self._bytes = [piece for piece in pieces if piece in BYTES]

    def pieces(self) -> list[str]:
        return self._bytes

    def tokenize(self, text: str) -> list[str]:
        return self._processor.encode(" ".join(text.split()).encode("utf-8", "replace").decode(), out_type=str)

    def detokenize(self, pieces: Iterable[str]) -> str:
        return self._processor.decode_pieces(list(pieces))
