"""The tokenizer of a tokenizer.json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm_plugins.tokenizer._file import OfFile
from paddle_tfm_plugins.tokenizer.sentencepiece import BYTES


class HuggingFace(OfFile):
    """The tokenizer of a tokenizer.json, the format of Hugging Face's `tokenizers`, which must be installed.

    `file` is relative to the current folder; the run keeps a copy. The file decides what its round trip does to a text
    (some lower the case, or write [UNK]), and `normalize` is that round trip; a remark says how many of the first
    hundred training texts it changes. The special tokens that it would add at both ends are left out. The vocabulary
    holds what the training texts show of its pieces, and its bytes, where it spells in bytes.

    Raises:
        ValueError: the package `tokenizers` is not installed.
    """

    COPY = "tokenizer.json"

    def __init__(self, file: str):
        if find_spec("tokenizers") is None:
            raise ValueError(_("`file` cannot be read without the package tokenizers: pip install tokenizers"))
        super().__init__(file)

    def use(self, content: bytes) -> None:
        import tokenizers  # an optional dependency

        with _sentences(ValueError, "no tokenizer"):
            self._tokenizer = tokenizers.Tokenizer.from_str(content.decode("utf-8"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()) if b'"ByteLevel"' in content else []
        known = self._tokenizer.get_vocab()
        self._bytes = [piece for piece in (*BYTES, *letters) if piece in known]

    def pieces(self) -> list[str]:
        return self._bytes

    def tokenize(self, text: str) -> list[str]:
        text = " ".join(text.split())
        with _sentences(UserError, f"{self.COPY} cannot encode a text"):
            return self._tokenizer.encode(text, add_special_tokens=False).tokens

    def detokenize(self, pieces: Iterable[str]) -> str:
        decoder, pieces = self._tokenizer.decoder, list(pieces)
        with _sentences(UserError, f"{self.COPY} cannot decode pieces"):
            return decoder.decode(pieces) if decoder else " ".join(pieces)


@contextmanager
def _sentences(kind: type[Exception], what: str) -> Iterator[None]:
    """Within this block whatever the library raises, also its panics, is an error of a kind, in a sentence."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise kind(f"{what}: {error}") from error
