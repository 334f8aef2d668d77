"""A model with its codec and its recipe: translating texts, and continuing them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddle_tfm.data.codec import Codec
from paddle_tfm.errors import UserError
from paddle_tfm.inference.generate import generate
from paddle_tfm.inference.translate import TranslateOptions, Translation, translate
from paddle_tfm.language import _
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Hypothesis, Search
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.recipe.settings import Settings
from paddle_tfm.recipe.sites import DECODER_ONLY
from paddle_tfm.search.decoding import decode_all


@dataclass
class TrainedModel:
    """What a run's folder holds for whoever uses it. An encoder translates, a decoder alone continues texts."""

    folder: Path
    plan: Plan
    codec: Codec
    model: Transformer

    @property
    def settings(self) -> Settings:
        """The resolved recipe, as validated fields."""
        return self.plan.settings

    @property
    def is_decoder_only(self) -> bool:
        """Whether it reads no source, but continues a text."""
        return self.settings.model.shape == DECODER_ONLY

    def search(self) -> Search:
        """The recipe's search."""
        return self.plan.components["search"].build()

    def translate(self, texts: Sequence[str], search: Search | None = None, **options: Any) -> list[str]:
        """One output text for each input text, in order; an empty one for a text without tokens."""
        texts = [texts] if isinstance(texts, str) else texts
        return [best.text for best, *_ in self.hypotheses(texts, search, **options)]

    def hypotheses(self, texts: Sequence[str], search: Search | None = None, **options: Any) -> list[list[Translation]]:
        """Outputs of each text, best first, with scores and pieces. `options`: the fields of `TranslateOptions`.

        Raises:
            UserError: the model is decoder-only, or `inference.translate` raises.
        """
        if self.is_decoder_only:
            text = _("{folder} is decoder-only: it has no source to translate, but continues a text")
            raise UserError(text.format(folder=self.folder))
        return translate(self.model, self.codec, texts, search or self.search(), TranslateOptions(**options))

    def ensemble(self, others: Sequence[TrainedModel]) -> Callable[..., list[list[Hypothesis]]]:
        """The option `decode` of `translate`: at each step the mean of the probabilities of this model and of others.

        Raises:
            UserError: one of them has other pieces, or another kind of model.
        """
        for other in others:
            self._require_alike(other)
        return functools.partial(decode_all, self.model, others=[other.model for other in others])

    def _require_alike(self, other: TrainedModel) -> None:
        of_both = [
            {
                "tokenizer": _but_files(each.settings.tokenizer),
                "vocabulary.symbols": each.settings.vocabulary.symbols,
                "vocabulary": each.codec.vocabulary_hash(),
                "codec/": _files(each.folder / "codec"),
                "model.head": each.model.head.extends_vocabulary,  # by words of the source
                "model.decoder_layers": each.settings.model.shape,
            }
            for each in (self, other)
        ]
        for what, value in of_both[0].items():
            if value != of_both[1][what]:
                text = _("{other} differs from {run} in {what}; runs of an ensemble must share their pieces")
                raise UserError(text.format(other=other.folder, run=self.folder, what=what))

    def generate(
        self, prompt: str = "", length: int = 200, search: Search | None = None, **options: Any
    ) -> Translation:
        """A continuation of `prompt` by a decoder-only model; `options` are those of `inference.generate`.

        Raises:
            UserError: the model reads a source, or `inference.generate` raises.
        """
        if not self.is_decoder_only:
            text = _("{folder} is {shape}: it reads a source, and continues no text")
            raise UserError(text.format(folder=self.folder, shape=self.settings.model.shape))
        return generate(self.model, self.codec, prompt, length, search or self.search(), **options)


def _but_files(tokenizer: Any) -> Any:
    """Its settings without the paths that it was read from: what these files held lies in codec/."""
    if isinstance(tokenizer, Mapping):
        return {key: _but_files(value) for key, value in tokenizer.items() if key != "file"}
    return tokenizer


def _files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
