"""Translation: from texts to ids, through a search, and back to texts; and what somebody should know of them."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from paddle_tfm.caveats import Reach
from paddle_tfm.data.codec import Codec, Encoded
from paddle_tfm.data.symbols import WithSymbols
from paddle_tfm.data.vocabulary import EOS, UNKNOWN
from paddle_tfm.errors import UserError, nearest
from paddle_tfm.language import _, counted
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Example, Hypothesis, Search
from paddle_tfm.search.decoding import decode_all, max_length

TAG = re.compile(r"<[^<>\s]+>")  # what symbols of many models look like: `<2en>`


class Translation(NamedTuple):
    """An output: its text, pieces and their ids, and its log-probability in nats, that of the end token included. The
    defaults are the output for a text without a piece."""

    text: str = ""
    pieces: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    score: float = 0.0

    @property
    def mean(self) -> float:
        """The mean log-probability of its tokens, the end token included, in nats."""
        return self.score / (len(self.ids) + 1)


@dataclass(frozen=True)
class TranslateOptions:
    """How texts are translated, whoever asks for it.

    Args:
        nbest: outputs of each text, at most.
        prefix: what outputs must begin with, one for all texts or one for each. It is cut into pieces like a whole
            target text, and these are forced: the output continues after its last piece, so that a word cut in two is
            completed only where the tokenizer has a piece for its rest. White space at its ends does not count.
        required: words that the outputs of each text must hold, a list for each. They are cut into pieces like a whole
            target text, and these stand in a row; a piece after them may lengthen the last word. Not with an engine
            that `decode` takes from an export.
        max_tokens: source tokens of a batch, padding included.
        progress: called with the number of texts that are done since its last call.
        first: the number of the first text, where these are part of more: draws of a search depend on numbers.
        decode: what `decode_all` does for this model, done by another engine (`paddle_tfm.export.ctranslate2.decoder`).
    """

    nbest: int = 1
    prefix: str | Sequence[str] = ""
    required: Sequence[Sequence[str]] | None = None
    max_tokens: int = 4096
    progress: Callable[[int], None] | None = None
    first: int = 0
    decode: Callable[..., list[list[Hypothesis]]] | None = None


def translate(
    model: Transformer, codec: Codec, texts: Sequence[str], search: Search, options: TranslateOptions
) -> list[list[Translation]]:
    """Up to `nbest` outputs of each text, best first; one empty output for a text without a piece.

    Raises:
        UserError: the search gives fewer than `nbest`; a prefix has a piece that the model lacks, or is too long; words
            are required that the search cannot place, of a piece that the model lacks, or too many for an output.
    """
    _check_nbest(options.nbest, search)
    prefixes = [options.prefix] * len(texts) if isinstance(options.prefix, str) else options.prefix
    examples = [codec.encode(Example(text, beginning)) for text, beginning in zip(texts, prefixes)]
    prefix_ids = [_prefix_ids(model, codec, example) for example in examples]
    nonempty = [i for i, example in enumerate(examples) if len(example.source) > 1]  # more than the end token
    if options.progress is not None and len(nonempty) < len(texts):
        options.progress(len(texts) - len(nonempty))
    decode = options.decode or functools.partial(decode_all, model)
    if options.required is not None and any(options.required):
        if not search.places_required:
            text = _("search {search} places no required words; `paddle-tfm ls components search` says which does")
            raise UserError(text.format(search=type(search).__name__))
        decode = functools.partial(
            decode,
            required=[
                _required_ids(model, codec, search, examples[i], prefix_ids[i], options.required[i]) for i in nonempty
            ],
        )
    hypotheses = decode(
        [examples[i] for i in nonempty],
        search,
        options.max_tokens,
        options.progress,
        [prefix_ids[i] for i in nonempty],
        [options.first + i for i in nonempty],
        options.nbest,
    )
    outputs = [[Translation()] for _ in texts]
    for i, several in zip(nonempty, hypotheses):
        outputs[i] = [_translation(codec, examples[i], *hypothesis) for hypothesis in several[: options.nbest]]
    return outputs


def _check_nbest(nbest: int, search: Search) -> None:
    if nbest > search.nbest:
        text = _(
            "{nbest} outputs of each text are required, but the search gives at most {most}; `paddle-tfm ls "
            "components search` says which give more"
        )
        raise UserError(text.format(nbest=nbest, most=search.nbest))


def _translation(codec: Codec, example: Encoded, ids: Sequence[int], score: float) -> Translation:
    pieces = codec.pieces(ids, example.extra)
    return Translation(codec.text(pieces), tuple(pieces), tuple(ids), score)


def _prefix_ids(model: Transformer, codec: Codec, example: Encoded) -> list[int]:
    """The ids of the prefix, which is encoded as the example's target."""
    text = example.example.target
    ids = _forced_ids(model, codec, example, _("prefix '{text}'").format(text=text))
    if len(ids) >= model.max_length:
        sentence = _("prefix '{text} …' has {number} pieces, but an output has at most {max_length} (model.max_length)")
        raise UserError(sentence.format(text=text[:40], number=len(ids), max_length=model.max_length - 1))
    return ids


def _required_ids(
    model: Transformer, codec: Codec, search: Search, example: Encoded, prefix: Sequence[int], required: Sequence[str]
) -> list[list[int]]:
    """The ids of required words, each encoded as the target of the example's source."""
    ids = []
    for words in required:
        where = _("required '{words}'").format(words=words)
        ids.append(_forced_ids(model, codec, codec.encode(Example(example.example.source, words)), where))
    longest = max_length(model.max_length, search, len(example.source) - 1, prefix)
    if (pieces := len(prefix) + sum(map(len, ids))) > longest:
        text = _("required {words} and the prefix have {pieces} pieces, but an output of this line has at most {most}")
        words = _(", ").join(map(repr, required))
        raise UserError(text.format(words=words, pieces=pieces, most=longest))
    return ids


def _forced_ids(model: Transformer, codec: Codec, example: Encoded, where: str) -> list[int]:
    """The ids of the example's target, without the end. Raises UserError: the model lacks a piece of it."""
    ids = example.target_copy if model.head.extends_vocabulary else example.target
    ids = ids[:-1] if ids and ids[-1] == EOS else ids
    if UNKNOWN in ids:
        unknown = [piece for piece, i in zip(codec.target.tokenize(example.example.target), ids) if i == UNKNOWN]
        text = _("{where}: the model has no piece {pieces}")
        raise UserError(text.format(where=where, pieces=", ".join(map(repr, unknown))))
    return ids


class Remarks:
    """Counts over all lines of a translation; `sentences` says at the end what is worth knowing, each thing once."""

    def __init__(self, model: Transformer, codec: Codec, search: Search):
        self.model, self.codec, self.search = model, codec, search
        self.reach, self.pieces, self.unknown = Reach(most=model.max_length - 1), 0, 0
        self.symbols = codec.source.symbols if isinstance(codec.source, WithSymbols) else ()
        self.tags: Counter[str] = Counter()  # like symbols, and none

    def add(self, texts: Sequence[str], best: Sequence[Translation]) -> None:
        """Count lines and their best outputs. An output is taken as cut if it is as long as an output may be."""
        for text, output in zip(texts, best):
            if self.symbols:
                self.tags.update(set(TAG.findall(text)) - {*self.symbols})
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
        for tag, number in self.tags.most_common(1):
            text = _("{tag} in {lines} is no symbol of this model{hint} Its symbols: {symbols}")
            lines, hint = counted(number, "line"), nearest(tag, self.symbols) or _(".")
            said.append(text.format(tag=tag, lines=lines, hint=hint, symbols=", ".join(self.symbols)))
        if self.unknown:
            text = _(
                "{share} of the source's pieces ({unknown} of {pieces}) are unknown to the model: is the text of the "
                "language, the case and the cut into words that it learned?"
            )
            numbers = {"unknown": f"{self.unknown:,}", "pieces": f"{self.pieces:,}"}
            said.append(text.format(share=f"{self.unknown / self.pieces:.1%}", **numbers))
        return said
