"""Text ↔ ids for both sides of a model: tokenizers and vocabularies, learned from the training split and kept with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from paddle_tfm.data.task import Example
from paddle_tfm.data.tokenizer import Tokenizer
from paddle_tfm.data.vocabulary import EOS, UNKNOWN, Vocabulary
from paddle_tfm.errors import UserError
from paddle_tfm.files import write_whole
from paddle_tfm.registry import Registry
from paddle_tfm.settings import Settings, tokenizer_specs


class Encoded(NamedTuple):
    """An example as ids, each side closed by the end token.

    `copy` and `target_copy` are in the target vocabulary extended by `extra`, the source pieces that it lacks: what a
    pointer head reads and predicts. `target` holds `UNKNOWN` there.
    """

    example: Example
    source: list[int]
    copy: list[int]
    target: list[int]
    target_copy: list[int]
    extra: tuple[str, ...]


class Codec:
    """Encodes sources and targets, and decodes targets."""

    def __init__(
        self, source: Tokenizer, target: Tokenizer, source_vocabulary: Vocabulary, target_vocabulary: Vocabulary
    ):
        self.source, self.target = source, target
        self.source_vocabulary, self.target_vocabulary = source_vocabulary, target_vocabulary

    @classmethod
    def learn(cls, settings: Settings, registry: Registry, examples: Sequence[Example]) -> Codec:
        """Tokenizers and vocabularies from the training examples."""
        source, target = _tokenizers(settings, registry)
        options = settings.vocabulary
        if source is target:
            source.fit(text for example in examples for text in (example.source, example.target))
        else:
            source.fit(example.source for example in examples)
            target.fit(example.target for example in examples)
        sources = [source.tokenize(example.source) for example in examples]
        targets = [target.tokenize(example.target) for example in examples]
        limits = (options.min_frequency, options.max_size)
        if options.shared:
            both = Vocabulary.learn([*sources, *targets], *limits)
            return cls(source, target, both, both)
        return cls(source, target, Vocabulary.learn(sources, *limits), Vocabulary.learn(targets, *limits))

    def encode(self, example: Example) -> Encoded:
        """Ids of one example."""
        pieces = self.source.tokenize(example.source)
        wanted = self.target.tokenize(example.target)
        known = self.target_vocabulary.ids
        extra = tuple(dict.fromkeys(piece for piece in pieces if piece not in known))
        beyond = {piece: len(self.target_vocabulary) + i for i, piece in enumerate(extra)}
        return Encoded(
            example,
            [*self.source_vocabulary.encode(pieces), EOS],
            [*(known.get(piece, beyond.get(piece, UNKNOWN)) for piece in pieces), EOS],
            [*self.target_vocabulary.encode(wanted), EOS],
            [*(known.get(piece, beyond.get(piece, UNKNOWN)) for piece in wanted), EOS],
            extra,
        )

    def encode_all(self, examples: Iterable[Example]) -> list[Encoded]:
        """Ids of many."""
        return [self.encode(example) for example in examples]

    def pieces(self, ids: Iterable[int], extra: Sequence[str] = ()) -> list[str]:
        """The target pieces of `ids`."""
        return self.target_vocabulary.decode(ids, extra)

    def text(self, pieces: Iterable[str]) -> str:
        """The target text of pieces."""
        return self.target.detokenize(pieces)

    def save(self, folder: Path) -> None:
        """Write vocabularies and what the tokenizers learned into `folder`."""
        for side, tokenizer, vocabulary in self._sides():
            (folder / side).mkdir(parents=True, exist_ok=True)
            tokenizer.save(folder / side)
            pieces = vocabulary.pieces[4:]
            write_whole(folder / side / "vocabulary.json", json.dumps(pieces, ensure_ascii=False, indent=0))

    @classmethod
    def load(cls, settings: Settings, registry: Registry, folder: Path) -> Codec:
        """Read what `save` wrote.

        Raises:
            UserError: a file is missing or broken.
        """
        source, target = _tokenizers(settings, registry)
        vocabularies = {}
        for side, tokenizer in (("source", source), ("target", target)):
            path = folder / side / "vocabulary.json"
            try:
                pieces = json.loads(path.read_text("utf-8"))
                tokenizer.load(folder / side)
            except (OSError, ValueError) as error:
                raise UserError(f"{path}: cannot be read: {error}") from error
            if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
                raise UserError(f"{path}: must hold a list of pieces")
            vocabularies[side] = Vocabulary(pieces)
        return cls(source, target, vocabularies["source"], vocabularies["target"])

    def _sides(self) -> Iterable[tuple[str, Tokenizer, Vocabulary]]:
        return ("source", self.source, self.source_vocabulary), ("target", self.target, self.target_vocabulary)


def _tokenizers(settings: Settings, registry: Registry) -> tuple[Tokenizer, Tokenizer]:
    specs = tokenizer_specs(settings.tokenizer)
    (source_path, source_spec), (target_path, target_spec) = specs["source"], specs["target"]
    source = registry.build("tokenizer", source_spec, source_path)
    if source_path == target_path:
        return source, source
    return source, registry.build("tokenizer", target_spec, target_path)
