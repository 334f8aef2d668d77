"""Text ↔ ids for both sides of a model: tokenizers and vocabularies, learned from the training split and kept with it."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np

from paddle_tfm.data.vocabulary import EOS, UNKNOWN, Vocabulary
from paddle_tfm.errors import UserError
from paddle_tfm.files import write_whole
from paddle_tfm.protocols import Example, Tokenizer
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.recipe.sites import DECODER_ONLY, ENCODER_ONLY

KEPT = 8_000_000  # ids of a split that are kept in memory


class Encoded(NamedTuple):
    """An example as ids, each side closed by the end token; not a target that goes on (`Excerpt`), nor one of labels, whose
    number the source decides.

    `copy` and `target_copy` are in the target vocabulary extended by `extra`, the source pieces that it lacks: what a
    pointer head reads and predicts. `target` holds `UNKNOWN` there.
    """

    example: Example
    source: list[int]
    copy: list[int]
    target: list[int]
    target_copy: list[int]
    extra: tuple[str, ...]


class _Kept(dict[int, Encoded]):
    """What fits into the room that is left."""

    def __init__(self):
        super().__init__()
        self.room = KEPT

    def offer(self, number: int, encoded: Encoded) -> None:
        size = 2 * (len(encoded.source) + len(encoded.target))  # they are there twice, `copy` and `target_copy`
        if size <= self.room:
            self.room -= size
            self[number] = encoded


class EncodedTexts(Sequence[Encoded]):
    """The ids of `texts`: kept up to `KEPT` of them, made anew at each use beyond, so that memory is bounded.

    `lengths` [N, 2] are those of source and target. `only` selects examples.
    """

    def __init__(self, codec: Codec, texts: Sequence[Example], only: Sequence[int] | None = None):
        self._codec, self._texts = codec, texts
        self._only = range(len(texts)) if only is None else only
        self._kept = _Kept()
        self._lengths: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self._only)

    @overload
    def __getitem__(self, i: int) -> Encoded: ...

    @overload
    def __getitem__(self, i: slice) -> EncodedTexts: ...

    def __getitem__(self, i):
        if isinstance(i, slice):
            return self.select(range(*i.indices(len(self))))
        number = self._only[i]
        found = self._kept.get(number)
        if found is None:
            found = self._codec.encode(self._texts[number])
            self._kept.offer(number, found)
        return found

    def sample(self, i: int, draw: np.random.Generator) -> Encoded:
        """One random segmentation of example i."""
        return self._codec.encode(self._texts[self._only[i]], draw)

    @property
    def sampling(self) -> bool:
        """Whether `sample` gives anything but the example itself."""
        return self._codec.source.sampling or self._codec.target.sampling

    def select(self, positions: Sequence[int]) -> EncodedTexts:
        """The examples at these positions; what is known of them is shared."""
        positions = np.asarray(positions, dtype=np.int64)
        chosen = EncodedTexts(self._codec, self._texts, array("q", (self._only[i] for i in positions)))
        chosen._kept = self._kept
        chosen._lengths = None if self._lengths is None else self._lengths[positions]
        return chosen

    @property
    def lengths(self) -> np.ndarray:
        """int64 [N, 2]: ids of source and target, the end tokens counted."""
        if self._lengths is None:
            pairs = array("q", (length for e in self for length in (len(e.source), len(e.target))))
            self._lengths = np.frombuffer(pairs, dtype=np.int64).reshape(-1, 2)
        return self._lengths


class Codec:
    """Encodes sources and targets, and decodes targets. `closes`: whether a target gets an end token."""

    def __init__(
        self,
        source: Tokenizer,
        target: Tokenizer,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        closes: bool = True,
    ):
        self.source, self.target = source, target
        self.source_vocabulary, self.target_vocabulary = source_vocabulary, target_vocabulary
        self.closes = closes

    @classmethod
    def learn(cls, plan: Plan, examples: Sequence[Example]) -> Codec:
        """Tokenizers and vocabularies from the training examples; a decoder-only model has those of the target alone."""
        settings, (source, target) = plan.settings, _tokenizers(plan)
        options, closes = settings.vocabulary, settings.model.shape != ENCODER_ONLY
        if settings.model.shape == DECODER_ONLY:
            target.fit(example.target for example in examples)
        elif source is target:
            source.fit(text for example in examples for text in (example.source, example.target))
        else:
            source.fit(example.source for example in examples)
            target.fit(example.target for example in examples)
        limits = (options.min_frequency, options.max_size)
        sources = (source.tokenize(example.source) for example in examples)
        targets = (target.tokenize(example.target) for example in examples)
        if settings.model.shape == DECODER_ONLY:
            only = Vocabulary.learn(targets, *limits, target.pieces())
            return cls(target, target, only, only)
        if options.shared:
            both = Vocabulary.learn(chain(sources, targets), *limits, {*source.pieces(), *target.pieces()})
            return cls(source, target, both, both, closes)
        return cls(
            source,
            target,
            Vocabulary.learn(sources, *limits, source.pieces()),
            Vocabulary.learn(targets, *limits, target.pieces()),
            closes,
        )

    def encode(self, example: Example, draw: np.random.Generator | None = None) -> Encoded:
        """Ids of one example; with `draw`, of one random segmentation where the tokenizers have several."""
        if draw is None:
            pieces, wanted = self.source.tokenize(example.source), self.target.tokenize(example.target)
        else:
            pieces, wanted = self.source.sample(example.source, draw), self.target.sample(example.target, draw)
        known = self.target_vocabulary.ids
        extra = tuple(dict.fromkeys([piece for piece in pieces if piece not in known]))
        beyond = {piece: len(self.target_vocabulary) + i for i, piece in enumerate(extra)}
        end = [EOS] if self.closes and example.ends else []
        target = [*self.target_vocabulary.encode(wanted), *end]
        copied = target
        if beyond and UNKNOWN in target:
            copied = [*[known.get(piece, beyond.get(piece, UNKNOWN)) for piece in wanted], *end]
        return Encoded(
            example,
            [*self.source_vocabulary.encode(pieces), EOS],
            [*[known[piece] if piece in known else beyond[piece] for piece in pieces], EOS],
            target,
            copied,
            extra,
        )

    def encode_all(self, examples: Iterable[Example]) -> EncodedTexts:
        """Ids of many."""
        return EncodedTexts(self, examples if isinstance(examples, Sequence) else list(examples))

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
    def load(cls, plan: Plan, folder: Path) -> Codec:
        """Read what `save` wrote.

        Raises:
            UserError: a file is missing or broken.
        """
        source, target = _tokenizers(plan)
        vocabularies = {}
        for side, tokenizer in (("source", source), ("target", target)):
            path = folder / side / "vocabulary.json"
            try:
                pieces = json.loads(path.read_text("utf-8"))
            except (OSError, ValueError) as error:
                raise UserError(f"{path}: cannot be read: {error}") from error
            try:
                tokenizer.load(folder / side)
            except (OSError, ValueError) as error:
                raise UserError(f"{folder / side}: its tokenizer cannot be read: {error}") from error
            if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
                raise UserError(f"{path}: must hold a list of pieces")
            vocabularies[side] = Vocabulary(pieces)
        closes = plan.settings.model.shape != ENCODER_ONLY
        return cls(source, target, vocabularies["source"], vocabularies["target"], closes)

    def _sides(self) -> Iterable[tuple[str, Tokenizer, Vocabulary]]:
        return ("source", self.source, self.source_vocabulary), ("target", self.target, self.target_vocabulary)


def _tokenizers(plan: Plan) -> tuple[Tokenizer, Tokenizer]:
    """Those of source and target; a decoder-only model has that of the target alone."""
    target = plan.tokenizer("target")
    source = target if plan.settings.model.shape == DECODER_ONLY else plan.tokenizer("source")
    built = source.build()
    return built, built if source is target else target.build()
