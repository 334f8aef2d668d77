"""Pieces of words, learned from the training texts."""

from __future__ import annotations

import io
import math
import random
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Literal

import numpy as np
import sentencepiece

from paddle_tfm.data.vocabulary import SPECIAL
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.validators import at_least, between
from paddle_tfm_plugins.tokenizer._segmentation import lattice, merge, walk
from paddle_tfm_plugins.tokenizer._words import SPACE, Words

FILE = "sentencepiece.model"
BYTES = {f"<0x{byte:02X}>": bytes([byte]) for byte in range(256)}
NAMES = list(BYTES)
RESERVED_CHARACTERS = str.maketrans("\0▅", "  ")  # sentencepiece skips a training text that holds one of these
MAX_TEXT_BYTES = 1 << 30  # sentencepiece skips longer training texts; its own default is 4,192

AUTO_FACTOR, AUTO_ABOVE_LEAST, AUTO_OF_MOST, AUTO_TRIES = 45, 1.25, 0.7, 4
OR_AUTO = "; `size: auto` chooses one"


class _WrongSize(UserError):
    """The texts have at least `least` pieces, and at most `most`."""

    def __init__(self, sentence: str, least: int = 1, most: float = math.inf):
        super().__init__(sentence)
        self.least, self.most = least, most


class SentencePiece(Words):
    """Pieces of words learned from the training texts (Kudo and Richardson 2018, arXiv:1808.06226).

    `unigram` finds the likeliest pieces of a word under a unigram model of pieces (Kudo 2018, arXiv:1804.10959), `bpe`
    merges pairs in the order learned (Sennrich et al. 2016, arXiv:1508.07909). A piece never spans a space; where there
    are no spaces, as in Chinese, a word is whatever stands between them. What `normalize` changes: runs of white space
    become one space, the ends are trimmed, "▁" becomes "_", half of a surrogate pair becomes "?", and `lowercase` does
    what it says; there is no Unicode normalization, so that "，" and "," stay two characters.

    `size` counts all pieces; with `byte_fallback` 256 of them are the bytes, in which a rare character is spelt, so
    that no character is unknown. `auto` chooses it by the number of texts n, 45 √n, which is 2,000 for 2,000 texts,
    8,000 for 30,000 and 32,000 from 500,000 on, but a quarter more than the characters need at least (of Chinese, some
    thousands), and at most seven tenths of what the texts can have. `character_coverage` is the share of the training
    texts' characters that become pieces themselves. It learns from at most `max_sentences` texts,
    drawn uniformly, the same at every run.

    `sampling` trains on other pieces of a text each time. For `unigram` it is α of subword regularization: a word's
    segmentation has P ∝ P_model^α, over all of them (Kudo 2018 with l → ∞), α = 0 being uniform. For `bpe` it is the
    probability that a merge is left out (BPE-dropout: Provilkov et al. 2020, arXiv:1910.13267, where it is 0.1).

    Raises:
        ValueError: `size` or `max_sentences` is below 1, `character_coverage` is not in (0, 1], or `sampling` is below
            0 or, with `bpe`, above 1.
    """

    def __init__(
        self,
        size: int | Literal["auto"] = "auto",
        model: Literal["unigram", "bpe"] = "unigram",
        byte_fallback: bool = True,
        character_coverage: float = 0.9999,
        split_digits: bool = False,
        lowercase: bool = False,
        sampling: float | None = None,
        max_sentences: int = 500_000,
    ):
        super().__init__(lowercase)
        at_least(1, max_sentences=max_sentences, **({} if size == "auto" else {"size": size}))
        between("(0, 1]", character_coverage=character_coverage)
        if sampling is not None and not (0 <= sampling <= 1 or (model == "unigram" and 1 < sampling < math.inf)):
            allowed = _("between 0 and 1 with `model` bpe") if model == "bpe" else _("at least 0 and finite")
            text = _("`sampling` must be {allowed}, but is {sampling}")
            raise ValueError(text.format(allowed=allowed, sampling=sampling))
        self.strength = sampling
        self.size, self.model, self.byte_fallback, self.max_sentences = size, model, byte_fallback, max_sentences
        self.character_coverage, self.split_digits = character_coverage, split_digits

    def normalize(self, text: str) -> str:
        return super().normalize(text).encode("utf-8", "replace").decode("utf-8")

    def fit(self, texts: Iterable[str]) -> None:
        """Learn the pieces.

        Raises:
            UserError: the texts are empty, or `size` is more or less than they can have.
        """
        sample = [*map(self._learnable, _reservoir(filter(self._is_text, texts), self.max_sentences))]
        if not sample:
            raise UserError(_("tokenizer 'sentencepiece' has nothing to learn from: all texts are empty"))
        self._use(self._train_automatic(sample) if self.size == "auto" else self._train(sample, self.size))

    def extend(self, texts: Iterable[str]) -> None:
        """Learn the pieces of these texts as `fit` does, and add those that it has not. They get the scores that they
        have among their own; merges of `bpe` come after those that were learned before."""
        from sentencepiece.sentencepiece_model_pb2 import ModelProto

        before = self._proto
        self.fit(texts)
        both, learned = ModelProto.FromString(before), ModelProto.FromString(self._proto)
        known, last = {each.piece for each in both.pieces}, min(each.score for each in both.pieces)
        for each in learned.pieces:
            if each.piece not in known:
                both.pieces.add(piece=each.piece, score=each.score + (last if self.model == "bpe" else 0.0))
        self._use(both.SerializeToString())

    def _learnable(self, text: str) -> str:
        return self.normalize(text.translate(RESERVED_CHARACTERS))

    def _is_text(self, text: str) -> bool:
        """Whether there is something to learn from; most texts need no look beyond their first character."""
        return text[:1].isalnum() or bool(self._learnable(text))

    def _train(self, sample: list[str], size: int) -> bytes:
        """The model of `size` pieces.

        Raises:
            _WrongSize: the texts need more pieces, or cannot have so many. UserError: any other failure.
        """
        reserved = SPECIAL[:3]  # never pieces, even where a text spells them out: they belong to the vocabulary
        model_file = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sample),
                model_writer=model_file,
                model_type=self.model,
                vocab_size=size + len(SPECIAL),
                control_symbols=list(reserved),
                unk_piece=SPECIAL[3],
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                byte_fallback=self.byte_fallback,
                character_coverage=self.character_coverage,
                split_digits=self.split_digits,
                normalization_rule_name="identity",
                max_sentence_length=MAX_TEXT_BYTES,
                num_threads=1,  # sums over several threads differ in the last bit, and so may the pieces
                minloglevel=2,
            )
        except RuntimeError as error:
            raise self._failure(str(error), size) from error
        return model_file.getvalue()

    def _train_automatic(self, sample: list[str]) -> bytes:
        """The model of the size that `auto` means for these texts."""
        size, least, most = round(AUTO_FACTOR * math.sqrt(len(sample))), 1, math.inf
        for _try in range(AUTO_TRIES):
            try:
                return self._train(sample, size)
            except _WrongSize as error:
                least, most = max(least, error.least), min(most, error.most)
                wanted = AUTO_OF_MOST * most if size > most else AUTO_ABOVE_LEAST * least
                size = int(min(max(wanted, least), most))
        return self._train(sample, size)

    def _failure(self, error: str, size: int) -> UserError:
        sentence = _("tokenizer 'sentencepiece': `size` must be {bound} for these texts, but is {size}: {why}")
        if match := re.search(r"Please set it to a value <= (\d+)", error):
            most = int(match[1]) - len(SPECIAL)
            return _WrongSize(
                sentence.format(
                    bound=_("at most {most}").format(most=most), size=size, why=_("they hold no more pieces")
                )
                + _(OR_AUTO),
                most=most,
            )
        if match := re.search(r"smaller than required_chars\. \d+ vs (\d+)", error):
            least = int(match[1]) - len(SPECIAL)
            bytes_too = _(" and the 256 of `byte_fallback`") if self.byte_fallback else ""
            why = _("so many are their characters{bytes_too}").format(bytes_too=bytes_too)
            return _WrongSize(
                sentence.format(bound=_("at least {least}").format(least=least), size=size, why=why) + _(OR_AUTO),
                least=least,
            )
        return UserError(_("tokenizer 'sentencepiece' cannot learn from these texts: {error}").format(error=error))

    def _use(self, proto: bytes) -> None:
        self._proto = proto
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        special = (processor.is_control, processor.is_unknown, processor.is_byte)
        plain = [i for i in range(len(processor)) if not any(test(i) for test in special)]
        self._scores = {processor.id_to_piece(i): processor.get_score(i) for i in plain}
        longest = max(map(len, self._scores))
        # Caches by word are exact, for no piece spans a space.
        self._cut = lru_cache(maxsize=1 << 16)(lambda word: tuple(processor.encode(word, out_type=str)))
        self._lattice = lru_cache(maxsize=1 << 14)(lambda word: lattice(word, self._scores, longest, self.strength))

    def cut(self, word: str) -> tuple[str, ...]:
        return self._cut(word)

    def tokenize(self, text: str) -> list[str]:
        return list(chain.from_iterable(map(self._cut, self.normalize(text).split())))  # as `Words` does, in C

    @property
    def sampling(self) -> bool:
        return self.strength is not None

    def sample(self, text: str, rng: np.random.Generator) -> list[str]:
        if self.strength is None:
            return self.tokenize(text)
        draw = random.Random(int(rng.integers(1 << 63))).random  # ten times as fast as single draws from NumPy
        words = [SPACE + word for word in self.normalize(text).split(" ") if word]
        if self.model == "bpe":
            cuts = (merge(word, self._scores, self.strength, draw) for word in words)
        else:
            cuts = (walk(word, self._lattice(word), draw) for word in words)
        return self._spell_unknown([piece for cut in cuts for piece in cut])

    def _spell_unknown(self, pieces: list[str]) -> list[str]:
        """Bytes, or one unknown piece, instead of a run of characters that are no pieces, as sentencepiece does it."""
        if self._scores.keys() >= set(pieces):
            return pieces
        result: list[str] = []
        for known, run in groupby(pieces, self._scores.__contains__):
            if known:
                result += run
            else:
                unknown = "".join(run)
                result += [NAMES[byte] for byte in unknown.encode("utf-8")] if self.byte_fallback else [unknown]
        return result

    def pieces(self) -> list[str]:
        return [*(BYTES if self.byte_fallback else ()), *self._scores]

    def detokenize(self, pieces: Iterable[str]) -> str:
        """The text of pieces; bytes that make no character, which a model may put out, become U+FFFD."""
        if not self.byte_fallback:
            return super().detokenize(pieces)
        content = b"".join(BYTES.get(piece) or piece.encode("utf-8") for piece in pieces)
        return super().detokenize(content.decode("utf-8", "replace"))

    def save(self, folder: Path) -> None:
        (folder / FILE).write_bytes(self._proto)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is damaged.
        """
        proto = (folder / FILE).read_bytes()
        damaged = ValueError(f"{FILE} is damaged")
        if not proto:
            raise damaged
        try:
            self._use(proto)
        except RuntimeError as error:
            raise damaged from error


def _reservoir(texts: Iterable[str], size: int) -> list[str]:
    """At most `size` of `texts`, each with the same chance, the same at every call (Vitter 1985, algorithm R)."""
    draw = random.Random(0)
    sample: list[str] = []
    for number, text in enumerate(texts):
        if number < size:
            sample.append(text)
        elif (i := int(draw.random() * (number + 1))) < size:
            sample[i] = text
    return sample
