"""What the tokenizers of a file from elsewhere share: the file is read once, and a run keeps a copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import ClassVar

from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import Tokenizer

PROBE_TEXTS = 100  # training texts whose round trip is checked
LARGEST = 1 << 28  # bytes of the file


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Within this block the user's file is read; what is wrong with it is a UserError."""
    try:
        yield
    except FileNotFoundError as error:
        text = _("{path}: no such file (looked in {folder})")
        raise UserError(text.format(path=path, folder=Path.cwd())) from error
    except (OSError, ValueError) as error:
        raise UserError(_("{path}: cannot be read: {why}").format(path=path, why=error)) from error


class OfFile(Tokenizer):
    """A tokenizer that learns nothing: `file`, relative to the current folder, says how texts are cut.

    The file decides what its round trip does to a text, and `normalize` is that round trip; a remark says how many of
    the first hundred training texts it changes.
    """

    COPY: ClassVar[str]  # the copy's name in a run's folder

    def __init__(self, file: str):
        self.file = file
        self._probed, self._changed = 0, list[tuple[str, str]]()

    def use(self, content: bytes) -> None:
        """Take what the file holds. Raises ValueError: it is not of the kind that is read."""
        raise NotImplementedError

    def _read(self, path: Path) -> None:
        if path.exists() and not path.is_file():
            raise OSError("it is no regular file")
        if path.exists() and path.stat().st_size > LARGEST:
            raise OSError(f"it has more than {LARGEST:,} bytes")
        self._content = path.read_bytes()
        self.use(self._content)

    def read_head(self) -> None:
        with reading(self.file):
            self._read(Path(self.file))

    def fit(self, texts: Iterable[str]) -> None:
        """Read the file, and check the round trip of some texts.

        Raises:
            UserError: it cannot be read.
        """
        self.read_head()
        probes = [" ".join(text.split()) for text in islice(texts, PROBE_TEXTS)]
        self._probed = len(probes)
        self._changed = [(text, again) for text in probes if (again := self.normalize(text)) != text]

    def remarks(self) -> list[str]:
        if not self._changed:
            return []
        (text, again), count = self._changed[0], len(self._changed)
        remark = _("{file}: of {texts} texts, {changed} do not come back as they are: '{text}' becomes '{again}'")
        return [remark.format(file=self.file, texts=self._probed, changed=count, text=text, again=again)]

    def normalize(self, text: str) -> str:
        return self.detokenize(self.tokenize(text))

    def save(self, folder: Path) -> None:
        (folder / self.COPY).write_bytes(self._content)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote; raises OSError or ValueError if that cannot be."""
        self._read(folder / self.COPY)
