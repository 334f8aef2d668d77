"""A named corpus: where its files come from and how they are read. The engine opens and fetches it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from paddle_tfm.protocols.component import Component
from paddle_tfm.protocols.task import Example


class RemoteFile(NamedTuple):
    """A file of a dataset: its upstream name, where it can be fetched (`urls`, tried in turn), and what it must be.

    Without `sha256` the first copy is trusted, and later ones must equal it.
    `size` is in bytes.
    """

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
    size: int | None = None


class Dataset(Component):
    """A named corpus: where its files come from and how a split is read.

    A subclass says in one line of its docstring what it is, lists its files (`catalogue`; `files`, if options choose
    among them) and reads them (`read`). Fetching, checking and the place on disk are the engine's (`data.datasets`).
    `folder` is the name of its folder there. `languages` are those of source and target, where texts are in languages.

    Invariances: the same files give the same examples, in the same order.
    Expected failures: none are known; a corpus is tested on lines of its own.
    Raises: ValueError in the constructor, where an option is unknown; UserError in `read`, with file and line.

    Example::

        from paddle_tfm.data.pairs import Files, pairs
        from paddle_tfm.protocols import Dataset, Example, RemoteFile

        class Proverbs(Dataset):
            '''Proverbs in English and German, a line each: source, TAB, target.'''

            folder, languages = "proverbs", ("en", "de")
            home, licence, citation = "https://example.org/proverbs", "CC0-1.0", "Anonymous"

            @classmethod
            def catalogue(cls):
                return [RemoteFile(f"{name}.tsv", (f"{cls.home}/{name}.tsv",)) for name in ("train", "valid", "test")]

            def read(self, split, paths):
                return (Example(*pair) for pair in pairs(Files(str(paths[f"{split}.tsv"]))))
    """

    kind: ClassVar[str] = "dataset"
    folder: ClassVar[str] = ""
    home: ClassVar[str] = ""
    licence: ClassVar[str] = ""
    citation: ClassVar[str] = ""
    languages: tuple[str, str] | None = None

    @classmethod
    def catalogue(cls) -> Sequence[RemoteFile]:
        """Every file of the corpus, whatever the options."""
        return ()

    def files(self) -> Sequence[RemoteFile]:
        """The files that these options need."""
        return self.catalogue()

    def read(self, split: str, paths: Mapping[str, Path]) -> Iterator[Example]:
        """The examples of a split out of the files at hand: upstream name → path."""
        raise NotImplementedError
