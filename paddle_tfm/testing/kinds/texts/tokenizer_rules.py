"""What a tokenizer learned is its own and whole: texts of few letters, whose pieces overlap, so that rules compete."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path

import numpy as np

from paddle_tfm.errors import UserError
from paddle_tfm.protocols import Tokenizer
from paddle_tfm.testing.kinds.texts.tokenizer import TRAINING, cut, differs, reloaded
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, Skip

# Georgian has no capitals and is in none of `SENTENCES`; the order is the same, for rules that go by it
LETTERS, SAVED_LETTERS, ALONE = "აბგდე", "ვზთიკ", (("ლმნოპ", "ჟრსტუ"), ("ფქღყშ", "ჩცძწჭ"))
BREAKS = "ვ\nთ\u2028\t"  # a file of one piece a line has other lines then
WORDS, TEXTS, WORDS_OF_A_TEXT = 60, 120, 7
RARE = 12  # words that each list of texts has once

Pieces = dict[str, list[str]]


def _texts(seed: int, letters: str = LETTERS) -> list[str]:
    """Texts of `WORDS` words, of which the first are frequent, and one of words that are rare for every seed; those of
    other letters are the same but for these."""

    def words(rng: np.random.Generator, count: int) -> list[str]:
        return ["".join(letters[i] for i in rng.integers(len(letters), size=rng.integers(3, 10))) for _ in range(count)]

    rng = np.random.default_rng([seed, 31])
    own, share = words(rng, WORDS), 1.0 / np.arange(1, WORDS + 1)
    texts = [" ".join(rng.choice(own, WORDS_OF_A_TEXT, p=share / share.sum())) for _ in range(TEXTS)]
    return [*texts, " ".join(words(np.random.default_rng(32), RARE))]


def _fitted(subject: ComponentUnderTest, texts: list[str]) -> Tokenizer:
    """After it learned from them, and from `TRAINING`, for which its size was chosen."""
    tokenizer = subject.build()
    tokenizer.fit(iter([*texts, *TRAINING]))
    return tokenizer


def _skips_what_it_refuses(function: Callable[[ComponentUnderTest], Result]) -> Callable[[ComponentUnderTest], Result]:
    """A size that fits no texts but those of the other checks is no fault."""

    @wraps(function)
    def checked(subject: ComponentUnderTest) -> Result:
        try:
            return function(subject)
        except UserError as error:
            return Skip(f"it does not learn from these texts: {error}")

    return checked


def _cut(tokenizer: Tokenizer, texts: list[str]) -> Pieces:
    """The pieces of each text, and if it draws those of a draw behind them."""
    cuts = cut(tokenizer, texts)
    if tokenizer.sampling:
        for text, pieces in cuts.items():
            pieces += tokenizer.sample(text, np.random.default_rng(0))
    return cuts


@check(
    "tokenizer",
    invariant="saved and loaded, it keeps the order in which it learned",
    consequence="a finished run translates with other ids than it was trained with",
    hint="merges and their ranks, which of two rules goes first: a list in that order, neither sorted nor a set",
)
@_skips_what_it_refuses
def saved_order(subject: ComponentUnderTest) -> Result:
    for letters in (SAVED_LETTERS, BREAKS):
        tokenizer, texts = _fitted(subject, _texts(0, letters)), _texts(1, letters)
        if failed := differs(_cut(tokenizer, texts), _cut(reloaded(subject, tokenizer), texts), "and loaded"):
            return failed
    return Passed()


@check(
    "tokenizer",
    invariant="two tokenizers in one process, learned from different texts, do not affect each other",
    consequence="the target's tokenizer cuts words as the source's does, and a run depends on earlier ones",
    hint="a cache or a table that the class, the module or a default argument holds: make it in the constructor, and "
    "again in `fit` and `load`",
)
@_skips_what_it_refuses
def apart(subject: ComponentUnderTest) -> Result:
    def in_usual_letters(corpus: int, texts: tuple[int, ...], letters: str) -> Pieces:
        """What one of its own gives, of these letters: nobody has cut words of them before."""
        table = str.maketrans(letters, LETTERS)
        cuts = _cut(_fitted(subject, _texts(corpus, letters)), _several(texts, letters))
        return {text.translate(table): [piece.translate(table) for piece in pieces] for text, pieces in cuts.items()}

    alone: list[Pieces] = []
    for corpus, texts in ((0, (2, 1)), (1, (3, 0))):  # new ones, and those that the other learns from
        one, other = (in_usual_letters(corpus, texts, letters) for letters in ALONE[corpus])
        if differs(one, other, ""):
            return Skip("texts of other letters are cut in another way")
        alone.append(one)
    first, second = _fitted(subject, _texts(0)), _fitted(subject, _texts(1))
    if failed := differs(alone[0], _cut(first, _several((2, 1))), "and after another tokenizer has learned"):
        return failed
    _cut(first, _texts(3))
    return differs(alone[1], _cut(second, _several((3, 0))), "and after another tokenizer has cut it") or Passed()


def _several(seeds: tuple[int, ...], letters: str = LETTERS) -> list[str]:
    return [text for seed in seeds for text in _texts(seed, letters)]


@check(
    "tokenizer",
    invariant="learning again from other texts leaves nothing of the first texts",
    consequence="an object used for a second corpus has words that this corpus lacks",
    hint="lists, counts and tables that the constructor makes and `fit` adds to: make them in `fit`; a cache of what "
    "was cut before, which `fit` and `load` must empty",
)
@_skips_what_it_refuses
def learned_again(subject: ComponentUnderTest) -> Result:
    once, texts = _fitted(subject, _texts(0)), _several((0, 1, 2))
    usual, pieces = _cut(once, texts), set(once.pieces())
    with tempfile.TemporaryDirectory() as folder:
        once.save(Path(folder))
        for how, before in (("learned", ""), ("learned", ", and cut some,"), ("loaded", ", and cut some,")):
            used = _fitted(subject, _texts(1))
            if before:
                _cut(used, texts)  # what it remembers of them is of the first texts
            if how == "learned":
                used.fit(iter([*_texts(0), *TRAINING]))
            else:
                used.load(Path(folder))
            what = f"and {how} by one that had learned from other texts before{before}"
            if failed := differs(usual, _cut(used, texts), what):
                return failed
            if extra := set(used.pieces()) - pieces:
                return Failed(f"{how} again, `pieces()` names {len(extra)} pieces of the texts before")
    return Passed()
