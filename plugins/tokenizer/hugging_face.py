"""The tokenizer of a tokenizer.json."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from paddle_tfm.errors import UserError
from paddle_tfm.protocols import Tokenizer

FILE = "tokenizer.json"
PROBE_TEXTS = 100  # training texts whose round trip is checked
LARGEST = 1 << 28  # bytes of the file

_log = logging.getLogger(__name__)


class HuggingFace(Tokenizer):
    """The tokenizer of a tokenizer.json, the format of Hugging Face's `tokenizers`, which must be installed.

    `file` is relative to the current folder; the run keeps a copy. The file decides what its round trip does to a text
    (some lower the case, or write [UNK]), and `normalize` is that round trip; a warning says how many of the first
    hundred training texts it changes. The special tokens that it would add at both ends are left out.

    Raises:
        ValueError: the package `tokenizers` is not installed.
    """

    def __init__(self, file: str):
        if find_spec("tokenizers") is None:
            raise ValueError("`file` cannot be read without the package tokenizers: pip install tokenizers")
        self.file = file

    def fit(self, texts: Iterable[str]) -> None:
        """Read the file, and check the round trip of some texts.

        Raises:
            UserError: it cannot be read.
        """
        try:
            self._use(_content(Path(self.file)))
        except (OSError, ValueError) as error:
            raise UserError(f"{self.file}: cannot be read: {error}") from error
        probes = [" ".join(text.split()) for text in islice(texts, PROBE_TEXTS)]
        if changes := [text for text in probes if self.normalize(text) != text]:
            _log.warning(
                "%s: of %d texts, %d do not come back as they are: '%s' becomes '%s'",
                *(self.file, len(probes), len(changes), changes[0], self.normalize(changes[0])),
            )

    def _use(self, content: bytes) -> None:
        import tokenizers  # an optional dependency

        self._content = content
        with _sentences(ValueError, "no tokenizer"):
            self._tokenizer = tokenizers.Tokenizer.from_str(content.decode("utf-8"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def normalize(self, text: str) -> str:
        return self.detokenize(self.tokenize(text))

    def tokenize(self, text: str) -> list[str]:
        text = " ".join(text.split())
        with _sentences(UserError, f"{FILE} cannot encode a text"):
            return self._tokenizer.encode(text, add_special_tokens=False).tokens

    def detokenize(self, pieces: Iterable[str]) -> str:
        decoder, pieces = self._tokenizer.decoder, list(pieces)
        with _sentences(UserError, f"{FILE} cannot decode pieces"):
            return decoder.decode(pieces) if decoder else " ".join(pieces)

    def save(self, folder: Path) -> None:
        (folder / FILE).write_bytes(self._content)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote; raises OSError or ValueError if that cannot be."""
        self._use(_content(folder / FILE))


def _content(path: Path) -> bytes:
    """What a file holds, which may come from anyone. Raises OSError: it cannot be read, or is no file of that kind."""
    if path.exists() and not path.is_file():
        raise OSError("it is no regular file")
    if path.is_file() and path.stat().st_size > LARGEST:
        raise OSError(f"it has more than {LARGEST:,} bytes")
    return path.read_bytes()


@contextmanager
def _sentences(kind: type[Exception], what: str) -> Iterator[None]:
    """Within this block whatever the library raises, also its panics, is an error of a kind, in a sentence."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise kind(f"{what}: {error}") from error
