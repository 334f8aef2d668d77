"""Text ↔ ids for both sides of a model: tokenizers and vocabularies, learned from the training split."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, overload

import numpy as np

from paddle_tfm.data.symbols import JOIN, WithSymbols
from paddle_tfm.data.vocabulary import EOS, SPECIAL, UNKNOWN, Vocabulary
from paddle_tfm.data.vocabulary_file import read_pieces
from paddle_tfm.errors import Problem, UserError
from paddle_tfm.files import json_value, write_whole
from paddle_tfm.language import _
from paddle_tfm.protocols import Example, Tokenizer
from paddle_tfm.recipe.plan import ComponentPlan, Plan
from paddle_tfm.recipe.settings import VocabularySettings
from paddle_tfm.recipe.sites import DECODER_ONLY, ENCODER_ONLY

MAX_CACHED_IDS = 8_000_000  # of a split, in memory


class Encoded(NamedTuple):
    """An example as ids, each side closed by the end token; except a target that is an excerpt of a longer text
    (`Excerpt`), and one of labels, whose number the source decides.

    `copy` and `target_copy` are in the target vocabulary extended by `extra`, the source pieces that it lacks: what a
    pointer head reads and predicts. `target` holds `UNKNOWN` there.
    """

    example: Example
    source: list[int]
    copy: list[int]
    target: list[int]
    target_copy: list[int]
    extra: tuple[str, ...]
    text: str = ""  # the target, as people read it


class _Cache(dict[int, Encoded]):
    """Encoded examples by number, as many as fit into MAX_CACHED_IDS."""

    def __init__(self):
        super().__init__()
        self.free_ids = MAX_CACHED_IDS

    def offer(self, number: int, encoded: Encoded) -> None:
        size = 2 * (len(encoded.source) + len(encoded.target))  # twice: `copy` and `target_copy` hold as many
        if size <= self.free_ids:
            self.free_ids -= size
            self[number] = encoded


class EncodedTexts(Sequence[Encoded]):
    """The ids of `texts`: cached up to MAX_CACHED_IDS, encoded again at each use beyond, so that memory is bounded.

    `lengths` [N, 2] are those of source and target. `only` selects examples by number.
    """

    def __init__(self, codec: Codec, texts: Sequence[Example], only: Sequence[int] | None = None):
        self.codec, self._texts = codec, texts
        self._only = range(len(texts)) if only is None else only
        self._cache = _Cache()
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
        encoded = self._cache.get(number)
        if encoded is None:
            encoded = self.codec.encode(self._texts[number])
            self._cache.offer(number, encoded)
        return encoded

    def sample(self, i: int, rng: np.random.Generator) -> Encoded:
        """One random segmentation of example i."""
        return self.codec.encode(self._texts[self._only[i]], rng)

    @property
    def sampling(self) -> bool:
        """Whether `sample` draws, so that it differs from the example itself."""
        return self.codec.source.sampling or self.codec.target.sampling

    def select(self, positions: Sequence[int]) -> EncodedTexts:
        """The examples at these positions; the cache is shared."""
        index = np.asarray(positions, dtype=np.int64)
        subset = EncodedTexts(self.codec, self._texts, array("q", (self._only[i] for i in index)))
        subset._cache = self._cache
        subset._lengths = None if self._lengths is None else self._lengths[index]
        return subset

    @property
    def lengths(self) -> np.ndarray:
        """int64 [N, 2]: how many ids source and target have, end tokens included."""
        if self._lengths is None:
            pairs = array("q", (length for i in self._only for length in self.codec.lengths(self._texts[i])))
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
        self._learned: tuple[Sequence[Example], np.ndarray] | None = None  # the examples it is of, and their lengths

    def vocabulary_hash(self) -> str:
        """Of the pieces of both vocabularies, in their order."""
        pieces = [self.source_vocabulary.pieces, self.target_vocabulary.pieces]
        return hashlib.sha256(json.dumps(pieces).encode()).hexdigest()

    def cut(self, texts: EncodedTexts) -> dict[str, object]:
        """How targets are cut: into how many pieces, ends included, and the hash of these, unknown ones as `<unk>`."""
        number, digest = 0, hashlib.sha256()
        for encoded in texts:
            number += len(encoded.target)
            digest.update(json.dumps(self.target_vocabulary.decode(encoded.target)).encode())
        return {"number": number, "sha256": digest.hexdigest()}

    def remarks(self) -> list[str]:
        """What a user should know of how the training texts are cut, where it has just learned from them."""
        sides = self.source, self.target
        unseen = set.intersection(*(each.unseen if isinstance(each, WithSymbols) else set() for each in sides))
        text = _("vocabulary.symbols: {symbol} stands in no training text")
        of_symbols = [text.format(symbol=symbol) for symbol in sorted(unseen)]
        return list(dict.fromkeys([*of_symbols, *self.source.remarks(), *self.target.remarks()]))

    @classmethod
    def learn(cls, plan: Plan, examples: Sequence[Example], old: Codec | None = None) -> Codec:
        """Tokenizers and vocabularies from the training examples; a decoder-only model has those of the target
        alone. With `old` it is that codec with more pieces, whose ids follow those that it has."""
        settings, (source, target) = plan.settings, (old.source, old.target) if old else _tokenizers(plan)
        options, closes = settings.vocabulary, settings.model.shape != ENCODER_ONLY
        more = old is not None
        if settings.model.shape == DECODER_ONLY:
            _fit(target, (example.target for example in examples), _("texts"), more)
        elif source is target:
            _fit(
                source,
                (text for example in examples for text in (example.source, example.target)),
                _("both sides"),
                more,
            )
        else:
            _fit(source, (example.source for example in examples), _("the source side"), more)
            _fit(target, (example.target for example in examples), _("the target side"), more)
        lengths = np.zeros((len(examples), 2), np.int64)  # what `lengths` says of each; counted here, it costs nothing
        sources = _tokenized(source, examples, 0, lengths, closes)
        targets = _tokenized(target, examples, 1, lengths, closes)
        if settings.model.shape == DECODER_ONLY:
            vocabulary = _vocabulary(options, "target", targets, target.pieces(), old)
            return cls(target, target, vocabulary, vocabulary)
        if options.shared:
            both = _vocabulary(options, "source", chain(sources, targets), {*source.pieces(), *target.pieces()}, old)
            vocabularies = both, both
        else:
            of_source = _vocabulary(options, "source", sources, source.pieces(), old)
            vocabularies = of_source, _vocabulary(options, "target", targets, target.pieces(), old)
        codec = cls(source, target, *vocabularies, closes)
        codec._learned = examples, lengths
        return codec

    def lengths(self, example: Example) -> tuple[int, int]:
        """How many ids `encode` gives source and target, end tokens included."""
        source, target = _ends(example, self.closes)
        sizes = len(self.source.tokenize(example.source)), len(self.target.tokenize(example.target))
        return sizes[0] + source, sizes[1] + target

    def encode(self, example: Example, rng: np.random.Generator | None = None) -> Encoded:
        """Ids of one example; with `rng`, of one random segmentation where the tokenizers have several."""
        if rng is None:
            source_pieces, target_pieces = self.source.tokenize(example.source), self.target.tokenize(example.target)
        else:
            source_pieces = self.source.sample(example.source, rng)
            target_pieces = self.target.sample(example.target, rng)
        ids = self.target_vocabulary.ids
        extra = tuple(dict.fromkeys([piece for piece in source_pieces if piece not in ids]))
        extra_ids = {piece: len(self.target_vocabulary) + i for i, piece in enumerate(extra)}
        source_end, end = ([EOS] * each for each in _ends(example, self.closes))
        target = [*self.target_vocabulary.encode(target_pieces), *end]
        target_copy = target
        if extra_ids and UNKNOWN in target:
            target_copy = [*[ids.get(piece, extra_ids.get(piece, UNKNOWN)) for piece in target_pieces], *end]
        return Encoded(
            example,
            [*self.source_vocabulary.encode(source_pieces), *source_end],
            [*[ids[piece] if piece in ids else extra_ids[piece] for piece in source_pieces], *source_end],
            target,
            target_copy,
            extra,
            self.target.joined(example.target),
        )

    def encode_all(self, examples: Iterable[Example]) -> EncodedTexts:
        """Ids of many examples."""
        texts = EncodedTexts(self, examples if isinstance(examples, Sequence) else list(examples))
        if self._learned is not None and self._learned[0] is examples:
            texts._lengths = self._learned[1]
        return texts

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
            pieces = json_value(path)
            try:
                tokenizer.load(folder / side)
            except (OSError, ValueError) as error:
                text = _("{folder}: its tokenizer cannot be read: {error}")
                raise UserError(text.format(folder=folder / side, error=error)) from error
            if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
                raise UserError(_("{path}: must hold a list of pieces").format(path=path))
            vocabularies[side] = Vocabulary(pieces)
        closes = plan.settings.model.shape != ENCODER_ONLY
        return cls(source, target, vocabularies["source"], vocabularies["target"], closes)

    def _sides(self) -> Iterable[tuple[str, Tokenizer, Vocabulary]]:
        return ("source", self.source, self.source_vocabulary), ("target", self.target, self.target_vocabulary)


def _ends(example: Example, closes: bool) -> tuple[int, int]:
    """How many end tokens source and target get: the target none that is cut out of a longer text, and none of labels,
    which are not closed."""
    return 1, int(closes and example.ends)


def _tokenized(
    tokenizer: Tokenizer, examples: Sequence[Example], side: Literal[0, 1], lengths: np.ndarray, closes: bool
) -> Iterator[list[str]]:
    """The pieces of one side of each example; `lengths` [N, 2] gets their number, end tokens included."""
    for i, example in enumerate(examples):
        pieces = tokenizer.tokenize(example[side])
        lengths[i, side] = len(pieces) + _ends(example, closes)[side]
        yield pieces


def _fit(tokenizer: Tokenizer, texts: Iterable[str], side: str, extend: bool) -> None:
    """`fit`, or `extend`; what is wrong names the side."""
    try:
        (tokenizer.extend if extend else tokenizer.fit)(texts)
    except UserError as error:
        raise UserError(_("{side} of the training split: {why}").format(side=side, why=error)) from error


def _tokenizers(plan: Plan) -> tuple[Tokenizer, Tokenizer]:
    """Those of source and target; a decoder-only model has that of the target alone."""
    target = plan.tokenizer("target")
    source = target if plan.settings.model.shape == DECODER_ONLY else plan.tokenizer("source")
    built = _built(plan, source)
    return built, built if source is target else _built(plan, target)


def _built(plan: Plan, tokenizer: ComponentPlan) -> Tokenizer:
    symbols = plan.settings.vocabulary.symbols
    return WithSymbols(tokenizer.build(), symbols) if symbols else tokenizer.build()


def _vocabulary(
    options: VocabularySettings, side: str, texts: Iterable[Sequence[str]], always: Iterable[str], old: Codec | None
) -> Vocabulary:
    """Of a side: learned from its texts, or read from its file, to which symbols are added; that of `old` with what the
    texts have beside it.

    Raises:
        UserError: the file cannot be read, or its pieces are not those of the texts.
    """
    if old is not None:
        known = old.source_vocabulary if side == "source" else old.target_vocabulary
        fresh = ([piece for piece in pieces if piece not in known.ids] for pieces in texts)
        most = None if options.max_size is None else max(0, options.max_size - len(known)) + len(SPECIAL)
        more = Vocabulary.learn(fresh, options.min_frequency, most, {*always} - known.ids.keys())
        return Vocabulary([*known.pieces[len(SPECIAL) :], *more.pieces[len(SPECIAL) :]])
    if options.file is None:
        return Vocabulary.learn(texts, options.min_frequency, options.max_size, always)
    file = options.file if isinstance(options.file, str) else options.file[side == "target"]
    pieces = dict.fromkeys([*read_pieces(file), *((*options.symbols, JOIN) if options.symbols else ())])
    counts = Counter(chain.from_iterable(texts))
    unknown = Counter({piece: count for piece, count in counts.items() if piece not in pieces})
    if 2 * unknown.total() > counts.total():
        text = _(
            "{file}: {share}% of the pieces of the training texts are not in it, such as '{piece}'; it must hold "
            "pieces as the tokenizer cuts them"
        )
        share = 100 * unknown.total() // counts.total()
        raise UserError(text.format(file=file, share=share, piece=unknown.most_common(1)[0][0]))
    return Vocabulary(list(pieces))


def problems_of_files(plan: Plan) -> Iterator[Problem]:
    """What is wrong with the files that tokenizers and vocabulary are read from."""
    files = plan.settings.vocabulary.file or []
    for file in [files] if isinstance(files, str) else files:
        try:
            read_pieces(file)
        except UserError as error:
            yield Problem("vocabulary.file", str(error))
    for component in {each.path: each for each in map(plan.tokenizer, ("source", "target"))}.values():
        try:
            _built(plan, component).read_head()
        except UserError as error:
            yield Problem(component.path, str(error))
